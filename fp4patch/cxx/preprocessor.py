"""Conditions of the preprocessor, evaluated for a compile target from the files of a project alone.

No compiler is needed: only ``#define``, ``#undef``, ``#include`` and conditions are read. Headers outside the project
are left out; what nvcc predefines is known. What these do not decide is None, and never a guess: whether a condition
holds, and with it whether a macro is defined. The tests compare with ``g++ -E``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from posixpath import dirname, join, normpath
from typing import NamedTuple

from fp4patch.core.arch import Arch
from fp4patch.core.lex_error import LexError
from fp4patch.cxx.condition import holds
from fp4patch.cxx.text import SPLICE
from fp4patch.cxx.tokens import CONTINUES, OPENS, Source, lex

_DEFINITION = re.compile(r"(\w+)(?:\(([^)]*)\))?(.*)")
_WORDS = re.compile(r"\w+|\S")
_NOT_DEFINED = re.compile(
    r"_MSC_VER|__HIP\w*|\w*USE_(?:ROCM|HIP)|__clang__|__CUDACC_RTC__|__MINGW\w*|_WIN32|WIN32|__APPLE__|__INTEL\w*"
)
_DEEPEST = 100
"""Includes inside includes that are followed."""
_LONGEST = 10_000
"""Words of a condition whose macros are replaced."""


class SourceText:
    """A source with blanks in the place of its comments and continuations: all offsets are those of the file.

    A comment or a raw string that never ends is none of it, nor what is on its line before it.
    """

    def __init__(self, path: str, written: str) -> None:
        self.path = path
        self.written = written

    @cached_property
    def source(self) -> Source:
        """The text as it is read."""
        readable = self.written
        while True:
            try:
                return lex(readable)
            except LexError as error:
                readable = "".join(readable.splitlines(keepends=True)[: error.line - 1])

    @cached_property
    def text(self) -> str:
        """The text with blanks."""
        pieces: list[str] = []
        at = 0
        splices = [found.span() for found in SPLICE.finditer(self.source.text)]
        for start, end in sorted([*self.source.comments, *splices]):
            if start >= at:
                pieces += self.source.text[at:start], " " * (end - start)
                at = end
        pieces.append(self.source.text[at:])
        return "".join(pieces)

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset."""
        return self.source.line(offset)

    @cached_property
    def directives(self) -> list[tuple[int, int, str, str]]:
        """Begin, end, name and rest of each directive."""
        found = []
        for directive in self.source.directives:
            begin = self.text.rfind("\n", 0, directive.start) + 1
            behind = directive.words[1 if directive.name else 0].end
            found.append((begin, directive.stop, directive.name, self.text[behind : directive.stop].strip()))
        return found

    @cached_property
    def defined(self) -> set[str]:
        """The macros that it defines somewhere."""
        definitions = (_DEFINITION.match(rest) for *_, name, rest in self.directives if name == "define")
        return {found[1] for found in definitions if found}


class Macro(NamedTuple):
    """A macro that is defined, or that may be."""

    body: tuple[str, ...] | None
    """None if its value is not known."""
    parameters: tuple[str, ...] | None = None
    """None for one that is not function-like."""
    undecided: str = ""
    """What is not known, and decides whether it is defined; empty if it is."""
    source: SourceText | None = None
    """None for a macro of the compiler or the build."""
    offset: int = 0

    @property
    def place(self) -> tuple[str, int | None]:
        """The file that defines it, and the line."""
        return (self.source.path, self.source.line(self.offset)) if self.source else ("", None)


class EvaluatedBranch(NamedTuple):
    """A branch of a conditional: where it is, and whether it is compiled (None: not known)."""

    begin: int
    end: int
    live: bool | None


@dataclass
class EvaluatedConditional:
    """A conditional: its branches so far, whether one of them is taken, and the first name that is not known."""

    branches: list[EvaluatedBranch]
    taken: bool | None
    why: str


@dataclass
class Preprocessor:
    """One pass over sources for one target. ``given``: what the build defines; the target's own macros are added."""

    target: Arch
    cuda: str
    given: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], SourceText | None] = lambda _: None
    """The file of a path that ``include`` returned."""
    include: Callable[[str, str], str] = lambda _path, _name: ""
    """The path of the file that an ``#include`` in another file names; nothing if it is not part of the project."""
    undefined: Callable[[str], object] = lambda _name: False
    """Tells if a macro is known not to be defined, until a file defines it."""

    def __post_init__(self) -> None:
        """Add what nvcc defines in the device pass."""
        major, _, minor = self.cuda.partition(".")
        version = f"{int(major) * 1000 + int(minor or 0) * 10}"
        own = {"__CUDACC_VER_MAJOR__": major, "__CUDACC_VER_MINOR__": minor or "0", "__cplusplus": "201703"}
        own |= {"CUDA_VERSION": version, "CUDART_VERSION": version, "__CUDACC__": "1", "__NVCC__": "1"}
        given = {name: value for name, value in self.given.items() if not _NOT_DEFINED.fullmatch(name)}
        texts = {**own, **given, **self.target.macros}
        self.macros = {name: Macro(tuple(_WORDS.findall(text))) for name, text in texts.items()}
        self._once: set[str] = set()
        self._own: set[str] = set()

    def run(self, file: SourceText, depth: int = 0, undecided_before: str = "") -> list[EvaluatedConditional]:
        """Read a file and what it includes, each once, and return its own conditionals in the order of ``#if``.

        ``undecided_before``: what is not known, and decides whether the file is included.
        """
        every: list[EvaluatedConditional] = []
        open_: list[EvaluatedConditional] = []
        size = len(file.text)
        self._own |= file.defined
        for begin, end, name, rest in file.directives:
            if name in OPENS:
                state, why = self.condition(name, rest)
                open_.append(EvaluatedConditional([EvaluatedBranch(end, size, state)], state, why))
                every.append(open_[-1])
            elif (name in CONTINUES or name == "endif") and open_:
                last = open_[-1]
                last.branches[-1] = last.branches[-1]._replace(end=begin)
                if name == "endif":
                    open_.pop()
                    continue
                state, why = self.condition(name, rest)
                last.branches.append(EvaluatedBranch(end, size, unless(state, last.taken)))
                last.taken, last.why = either(last.taken, state), last.why or why
            elif all(conditional.branches[-1].live is not False for conditional in open_):
                unknown = (c.why or "its condition" for c in open_ if c.branches[-1].live is None)
                undecided = next(unknown, undecided_before)
                if name == "include" and depth < _DEEPEST:
                    path = self.include(file.path, rest[1:-1])
                    if path and path not in self._once and (inner := self.read(path)):
                        self._once.add(path)
                        self.run(inner, depth + 1, undecided)
                elif name in ("define", "undef") and (found := _DEFINITION.fullmatch(rest)):
                    _, parameters, body = found.groups()
                    of_function = None if parameters is None else tuple(re.findall(r"\w+", parameters))
                    place = undecided, file, begin
                    macro = Macro(tuple(_WORDS.findall(body)), of_function, *place) if name == "define" else None
                    self._set(found[1], macro, Macro(None, None, *place))
        return every

    def _set(self, name: str, macro: Macro | None, unknown: Macro) -> None:
        """Define or undefine a macro, or perhaps: then it is known to be defined only if it was before."""
        before = self.macros.pop(name, None)
        if unknown.undecided and (macro or before):
            is_defined = macro and before and not before.undecided
            macro = before._replace(body=None) if before and is_defined else unknown
        if macro:
            self.macros[name] = macro

    def condition(self, name: str, rest: str) -> tuple[bool | None, str]:
        """Return whether the condition of a directive holds, and the first name that is not known."""
        missing: list[str] = []

        def defined(word: str) -> int | None:
            if word in self.macros:
                missing.extend([word] if self.macros[word].undecided else [])
                return None if self.macros[word].undecided else 1
            known = word in self._own or word.startswith("__CUDA_ARCH") or _NOT_DEFINED.fullmatch(word)
            if known or self.undefined(word):
                return 0  # the project defines it elsewhere, or for other targets
            missing.append(word)
            return None

        def value(word: str) -> int | None:
            missing.extend([word] if word in self.macros else [])
            return 0 if defined(word) == 0 else None

        words = _WORDS.findall(rest)
        try:
            state = holds(name, words if name.endswith("def") else self._expanded(words), defined, value)
        except (ValueError, RecursionError):
            state = None
        return state, "" if state is not None else missing[0] if missing else rest[:60]

    def _expanded(self, words: Sequence[str], hidden: frozenset[str] = frozenset()) -> list[str]:
        """Replace macros, but for the operand of ``defined``. ValueError: that has no end."""
        result: list[str] = []
        at = 0
        while at < len(words):
            word, at = words[at], at + 1
            macro = self.macros.get(word)
            is_called = "".join(words[at : at + 1]) == "("
            if word == "defined":
                size = 3 if is_called else 1
                result += [word, *words[at : at + size]]
                at += size
            elif not macro or macro.body is None or word in hidden or (macro.parameters is not None and not is_called):
                result.append(word)
            else:
                body = list(macro.body)
                if macro.parameters is not None:
                    arguments, at = _arguments(words, at)
                    given = dict(zip(macro.parameters, arguments, strict=False))
                    body = [part for name in body for part in (given.get(name) or [name])]
                result += self._expanded(body, hidden | {word})
            if len(result) > _LONGEST:
                raise ValueError("a condition without an end")
        return result


def _arguments(words: Sequence[str], at: int) -> tuple[list[list[str]], int]:
    """Return the arguments of a call whose parenthesis is at ``at``, and the index behind it."""
    arguments: list[list[str]] = [[]]
    depth = 0
    for index in range(at, len(words)):
        word = words[index]
        depth += (word == "(") - (word == ")")
        if not depth:
            return arguments, index + 1
        if depth == 1 and word == ",":
            arguments.append([])
        elif depth > 1 or word != "(":
            arguments[-1].append(word)
    raise ValueError("a macro's arguments are never closed")


class Header:
    """A header with what it includes of its tree. ``include``: directories that the compiler searches."""

    def __init__(self, path: str, read: Callable[[str], str | None], include: Sequence[str]) -> None:
        self._path = path
        self._places = include
        self._read = cache(lambda path: None if (text := read(path)) is None else SourceText(path, text))

    def macro(self, name: str, target: Arch, cuda: str) -> Macro | None:
        """Return a macro as it is for a target, or None. ValueError: there is no such header."""
        header = self._read(self._path)
        if header is None:
            raise ValueError(f"{self._path} is not there")
        preprocessor = Preprocessor(target, cuda, {}, self._read, self._included)
        preprocessor.run(header)
        return preprocessor.macros.get(name)

    def _included(self, path: str, name: str) -> str:
        candidates = (normpath(join(place, name)) for place in (dirname(path), *self._places))
        return next((file for file in candidates if not file.startswith(("..", "/")) and self._read(file)), "")


def either(one: bool | None, other: bool | None) -> bool | None:
    """Return whether one of two holds; None: not known."""
    return True if one or other else None if one is None or other is None else False


def unless(state: bool | None, taken: bool | None) -> bool | None:
    """Return whether a branch is taken whose condition is ``state``, after branches of which one was ``taken``."""
    return False if taken or state is False else None if taken is None or state is None else True
