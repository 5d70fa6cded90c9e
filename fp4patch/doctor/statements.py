"""FP4 statements in CUDA sources, and what the preprocessor leaves of each for one target of a build.

No compiler is needed. Only the conditions of the files themselves, and of the headers beside them, are evaluated; what
those do not decide is unknown, and never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from fp4patch.core.arch import Arch
from fp4patch.edits.condition import evaluate

Include = Callable[[str, str], str]
"""The path of the file that an ``#include`` in another file names, or nothing if it is not part of the project."""


class StatementKind(StrEnum):
    """Kind of statement. Closed."""

    CONVERSION = "conversion to E2M1"
    STOCHASTIC = "stochastic conversion to E2M1"
    DECODING = "conversion from E2M1"
    MATRIX = "mma on E2M1"
    SPARSE = "sparse mma on E2M1"
    TENSOR_MEMORY = "tcgen05.mma on E2M1"
    INTRINSIC = "cuda_fp4.h conversion"

    def supported(self, target: Arch) -> bool:
        """Return whether a target has the instruction.

        The table is that of docs/facts.md: what each ptxas from CUDA 12.9 on accepts.
        """
        if not target.suffix:
            return False
        if self in (StatementKind.STOCHASTIC, StatementKind.TENSOR_MEMORY):
            return target.major in (10, 11)
        if self is StatementKind.MATRIX:
            return target.major == 12
        if self is StatementKind.SPARSE:
            return target.major == 12 and target.suffix == "a"
        return target.major in (10, 11, 12)

    def compiles(self, target: Arch) -> bool:
        """Return whether it can be compiled for a target: an intrinsic for all, to software on those without it."""
        return self is StatementKind.INTRINSIC or self.supported(target)


_PATTERNS = (
    (StatementKind.STOCHASTIC, r"\bcvt\.rs[\w.]*\.e2m1x4"),
    (StatementKind.CONVERSION, r"\bcvt\.rn[\w.]*\.e2m1x2\.(?:f32|f16x2|bf16x2)"),
    (StatementKind.DECODING, r"\bcvt\.rn[\w.]*\.(?:f16x2|bf16x2)\.e2m1x2"),
    (
        StatementKind.MATRIX,
        r"kind::mxf4(?:nvf4)?\b|kind::mxf8f6f4\b[^;]{0,200}?\.e2m1|kind::f8f6f4\b[^;]{0,200}?\.e2m1",
    ),
    (StatementKind.INTRINSIC, r"\b__nv_cvt_\w*fp4x?\d?\w*(?=\s*\()"),
)
_STATEMENTS = re.compile("|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _PATTERNS))
_MAY_HAVE = re.compile(r"e2m1|kind::mxf4|__nv_cvt_\w*fp4")
_SKIPPED = re.compile(r"/\*.*?\*/|//(?:\\\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
_WORDS = re.compile(r"\w+|\S")
_NOT_DEFINED = re.compile(
    r"_MSC_VER|__HIP\w*|\w*USE_(?:ROCM|HIP)|__clang__|__CUDACC_RTC__|__MINGW\w*|_WIN32|WIN32|__APPLE__|__INTEL\w*"
)
_OF_TARGET = re.compile(r"__CUDA_ARCH_\w+|__CUDA_ARCH__")
_NOTHING_OF_USE = re.compile(
    r"(return\s*(\(?[\w:<>]*\)?\s*[({]?\s*(0[xX]?[\da-fA-F.]*[uUlLfF]*|false|nullptr)?\s*[)}]?)|[*\w.\[\]>-]+\s*=\s*[({]?\s*0[\w.]*\s*[)}]?"
    r"|(std::)?(printf|assert|__trap|abort|__assert_fail|static_assert|\w+_(ERROR|TRAP|UNREACHABLE)|\(void\)\s*\w+)\b.*|\(\s*void\s*\)\s*[\w.]+|[{}\s]*)",
    re.DOTALL,
)
"""A statement that computes nothing: a constant, a message, a trap."""
_HEAD = re.compile(r"(?!.*\b(?:if|for|while|switch|else)\b)[^()=]+\(.*\)\s*(?:const|noexcept)?", re.DOTALL)
"""The head of a function, in the place of another with its body."""
_EARLY = re.compile(
    r"\bif\s*(?:constexpr\s*)?\(((?:[^()]|\([^()]*\))*?__CUDA_ARCH__(?:[^()]|\([^()]*\))*)\)\s*"
    r"(?:\{\s*(return\b[^;{}]*;)\s*\}|(return\b[^;{}]*;))"
)
"""An ``if`` of the language on the target, with nothing but a return."""
_RETURNS = re.compile(r"[;{}]\s*return\b[^;{}]*;$")
_BLOCKS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|[{};]")
_DEEPEST = 12
"""Includes inside includes that are followed."""
UNKNOWN = "?"


class Left(StrEnum):
    """What the preprocessor leaves of a statement for one target. Closed."""

    COMPILED = "compiled"
    CONSTANT = "a constant, a message or nothing in its place"
    OTHER = "other code in its place"
    UNKNOWN = "not decided by the files that were read"


@dataclass(frozen=True)
class Statement:
    """An FP4 statement outside of comments."""

    path: str
    line: int
    kind: StatementKind
    offset: int

    @property
    def place(self) -> str:
        """``csrc/quant.cu:12``."""
        return f"{self.path}:{self.line}"


@dataclass
class SourceFile:
    """A source with blanks in the place of its comments: all offsets and lines are those of the file."""

    path: str
    text: str

    @classmethod
    def of(cls, path: str, text: str) -> SourceFile:
        """Return a source without its comments."""

        def blank(found: re.Match[str]) -> str:
            return found[0] if found[0][0] in "\"'" else re.sub(r"[^\n]", " ", found[0])

        return cls(path, _SKIPPED.sub(blank, text))

    @cached_property
    def directives(self) -> list[tuple[int, int, str, str]]:
        """Begin, end, name and rest of each directive."""
        return [
            (found.start(), found.end(), found[1], found[2].replace("\\\n", " ").strip())
            for found in _DIRECTIVE.finditer(self.text)
        ]

    @cached_property
    def statements(self) -> list[Statement]:
        """FP4 statements in the order of the file."""
        found = []
        for match in _STATEMENTS.finditer(self.text):
            kind = StatementKind[match.lastgroup or ""]
            if kind is StatementKind.MATRIX:
                before = self.text[max(0, match.start() - 200) : match.start()].rpartition(";")[2]
                if "tcgen05" in before:
                    kind = StatementKind.TENSOR_MEMORY
                elif "mma.sp" in before:
                    kind = StatementKind.SPARSE
                elif "mma" not in before:
                    continue
            line = self.text.count("\n", 0, match.start()) + 1
            found.append(Statement(self.path, line, kind, match.start()))
        return found


def may_have_statements(text: str) -> bool:
    """Return whether a text can have FP4 statements: a fast search."""
    return bool(_MAY_HAVE.search(text))


class _Branch(NamedTuple):
    """A branch of a conditional: where it is, and whether it is compiled (None: not known)."""

    begin: int
    end: int
    live: bool | None


@dataclass
class _Conditional:
    """A conditional: its branches so far, whether one of them is taken, and the first name that is not known."""

    branches: list[_Branch]
    taken: bool | None
    why: str


@dataclass
class Preprocessor:
    """One pass over a source for one target. ``macros``: what the build defines; the target's own are added."""

    target: Arch
    cuda: str
    macros: dict[str, str] = field(default_factory=dict)
    read: Callable[[str], SourceFile | None] = lambda _: None
    include: Include = lambda _path, _name: ""

    def __post_init__(self) -> None:
        """Add what nvcc defines in the device pass."""
        major, _, minor = self.cuda.partition(".")
        version = f"{int(major) * 1000 + int(minor or 0) * 10}"
        own = {"__CUDACC_VER_MAJOR__": major, "__CUDACC_VER_MINOR__": minor or "0", "__cplusplus": "201703"}
        own |= {"CUDA_VERSION": version, "CUDART_VERSION": version, "__CUDACC__": "1", "__NVCC__": "1"}
        given = {name: value for name, value in self.macros.items() if not _NOT_DEFINED.fullmatch(name)}
        self.macros = {**own, **given, **self.target.macros}
        self.once: set[str] = set()
        self.maybe: set[str] = set()
        self.own: set[str] = set()
        self.conditionals: list[_Conditional] = []

    def left(self, file: SourceFile) -> dict[Statement, tuple[Left, str]]:
        """Return what is left of each statement of a file, and the name that decides if that is not known."""
        self.conditionals = []
        self._file(file, 0)
        live = _EARLY.sub(self._without_condition, self._live_text(file, {False}))
        after_return = _unreachable(live)
        surely = _unreachable(_EARLY.sub(self._without_condition, self._live_text(file, {False, None})))
        found = {}
        for one in file.statements:
            left, why = self._of(one, live)
            if left is Left.COMPILED and _within(one, after_return):
                undecided = next((c.why for c in self.conditionals if any(b.live is None for b in c.branches)), "")
                left, why = (Left.CONSTANT, "") if _within(one, surely) else (Left.UNKNOWN, undecided)
            found[one] = left, why
        return found

    def _without_condition(self, found: re.Match[str]) -> str:
        """Return the ``return`` of an ``if`` on the target that holds; any other ``if`` as it is."""
        text = f";{found[2] or found[3]}"
        return text.ljust(len(found[0])) if self._condition("if", found[1])[0] else found[0]

    def _of(self, statement: Statement, live: str) -> tuple[Left, str]:
        around = [(c, b) for c in self.conditionals for b in c.branches if b.begin <= statement.offset < b.end]
        gone = next((conditional for conditional, branch in around if branch.live is False), None)
        if gone is None:
            unknown = next((conditional.why for conditional, branch in around if branch.live is None), "")
            return (Left.UNKNOWN if unknown else Left.COMPILED), unknown
        if taken := next((branch for branch in gone.branches if branch.live), None):
            return (Left.CONSTANT if _computes_nothing(live[taken.begin : taken.end]) else Left.OTHER), ""
        undecided = any(branch.live is None for branch in gone.branches)
        return (Left.UNKNOWN, gone.why) if undecided else (Left.CONSTANT, "")

    def _live_text(self, file: SourceFile, out: Collection[bool | None]) -> str:
        """Return the text with blanks in the place of directives and of the branches in these states."""
        cuts = [(b.begin, b.end) for conditional in self.conditionals for b in conditional.branches if b.live in out]
        cuts = sorted([*cuts, *((begin, end) for begin, end, *_ in file.directives)])
        parts, at = [], 0
        for begin, end in cuts:
            if end > at:
                parts += [file.text[at:begin], " " * (end - max(begin, at))]
                at = end
        return "".join([*parts, file.text[at:]])

    def _file(self, file: SourceFile, depth: int) -> None:
        open_: list[_Conditional] = []
        size = len(file.text)
        self.own |= {
            rest.partition("(")[0].split()[0] for *_, name, rest in file.directives if name == "define" and rest
        }
        for begin, end, name, rest in file.directives:
            live = _all(conditional.branches[-1].live for conditional in open_)
            if name in ("if", "ifdef", "ifndef"):
                state, why = self._condition(name, rest)
                open_.append(_Conditional([_Branch(end, size, state)], state, why))
                if not depth:
                    self.conditionals.append(open_[-1])
            elif name in ("elif", "elifdef", "elifndef", "else", "endif") and open_:
                last = open_[-1]
                last.branches[-1] = last.branches[-1]._replace(end=begin)
                if name == "endif":
                    open_.pop()
                    continue
                state, why = (True, "") if name == "else" else self._condition(name.removeprefix("el"), rest)
                last.branches.append(_Branch(end, size, unless(state, last.taken)))
                last.taken, last.why = either(last.taken, state), last.why or why
            elif live is not False:
                self._line(file, name, rest, depth, known=live is True)

    def _line(self, file: SourceFile, name: str, rest: str, depth: int, *, known: bool) -> None:
        if name == "define" and (found := re.match(r"(\w+)(\()?\s*(.*)", rest)):
            if known:
                self.macros[found[1]] = UNKNOWN if found[2] else found[3].strip()
            else:
                self.maybe.add(found[1])
        elif name == "undef" and known:
            self.macros.pop(rest.split(maxsplit=1)[0] if rest else "", None)
        elif name == "include" and depth < _DEEPEST and len(rest) > 2:
            path = self.include(file.path, rest[1:-1])
            if path and path not in self.once:
                self.once.add(path)
                if (inner := self.read(path)) is not None:
                    self._file(inner, depth + 1)

    def _condition(self, name: str, rest: str) -> tuple[bool | None, str]:
        """Return whether a condition holds (None: not known), and the first name that is not known."""
        missing: list[str] = []

        def defined(word: str) -> int | None:
            if word in self.macros:
                return 1
            if word in self.own - self.maybe:
                return 0  # the project defines it elsewhere, or for other targets
            if _OF_TARGET.fullmatch(word) or _NOT_DEFINED.fullmatch(word) or word.startswith("__CUDA_ARCH"):
                return 0
            missing.append(word)
            return None

        def value(word: str) -> int | None:
            if word in self.macros:
                missing.append(word)
            return 0 if defined(word) == 0 else None

        if name in ("ifdef", "ifndef"):
            state = defined(rest.split(maxsplit=1)[0]) if rest.split() else None
            return (None, missing[0] if missing else rest) if state is None else (bool(state) != (name == "ifndef"), "")
        try:
            result = evaluate(list(self._expanded(_WORDS.findall(rest), frozenset())), defined, value)
        except (ValueError, IndexError, RecursionError):
            return None, rest[:60]
        return (None, missing[0] if missing else rest[:60]) if result is None else (bool(result), "")

    def _expanded(self, words: Sequence[str], hidden: frozenset[str]) -> Iterator[str]:
        """Replace macros without parameters, except for the operand of ``defined``."""
        after = ""
        for at, word in enumerate(words):
            operand = after == "defined" or (after == "(" and at > 1 and words[at - 2] == "defined")
            text = self.macros.get(word, UNKNOWN)
            if operand or word in hidden or text == UNKNOWN or not word.isidentifier():
                yield word
            else:
                yield from self._expanded(_WORDS.findall(text), hidden | {word})
            after = word


def _within(statement: Statement, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(begin <= statement.offset < end for begin, end in ranges)


def _unreachable(text: str) -> list[tuple[int, int]]:
    """Return what follows a return in the same block, up to the end of that block."""
    found, returned = [], [-1]
    for token in _BLOCKS.finditer(text):
        letter = token[0]
        if letter == "{":
            returned.append(-1)
        elif letter == "}":
            begin = returned.pop() if len(returned) > 1 else -1
            if begin >= 0:
                found.append((begin, token.start()))
        elif letter == ";" and returned[-1] < 0 and _RETURNS.search(text, max(0, token.start() - 300), token.end()):
            returned[-1] = token.end()
    return found


def _computes_nothing(text: str) -> bool:
    text = re.sub(r'\basm\b[^;"]*\(\s*"\s*(?:trap|exit|brkpt)\s*;?\s*"[^;]*\)', "__trap()", text)
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    parts = [(part.strip(), end) for part, end in re.findall(r"([^;{}]*)([;{}]|\Z)", bare)]
    return all(_NOTHING_OF_USE.fullmatch(part) or (end == "{" and _HEAD.fullmatch(part)) for part, end in parts)


def _all(states: Iterator[bool | None]) -> bool | None:
    every = list(states)
    return False if False in every else None if None in every else True


def either(one: bool | None, other: bool | None) -> bool | None:
    """Return whether one of two holds; None: not known."""
    return True if one or other else None if one is None or other is None else False


def unless(state: bool | None, taken: bool | None) -> bool | None:
    """Return whether a branch is taken whose condition is ``state``, after branches of which one was ``taken``."""
    return False if taken or state is False else None if taken is None or state is None else True


def summary(kinds: Mapping[StatementKind, int]) -> str:
    """Return ``3 conversions to E2M1, 2 mma on E2M1``."""
    plural = {kind: kind.value.replace("conversion", "conversions", 1) for kind in StatementKind}
    return ", ".join(f"{n} {kind.value if n == 1 else plural[kind]}" for kind, n in kinds.items() if n)
