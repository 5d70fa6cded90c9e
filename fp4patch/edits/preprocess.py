"""Evaluate which macros a header defines for a compile target, from the directives of the tree's own files.

No compiler is needed: only ``#define``, ``#undef``, ``#include`` and conditions are read, and only in the files that
could change the answer. Headers outside the tree are left out: what they define is in :func:`target_macros`, as
``nvcc --dryrun`` states it. What cannot be evaluated is a refusal, never a guess. The tests compare with ``g++ -E``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import NamedTuple

from fp4patch.core.arch import Arch
from fp4patch.edits.condition import evaluate
from fp4patch.edits.cxx import Directive, Source, lex

Read = Callable[[str], str | None]
"""The text of a file of the tree; None if there is none."""

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
_BETWEEN = r"(?:[ \t]|\\\r?\n|/\*.*?\*/)"
_HOST = {
    "__cplusplus": "201703",
    "__GNUC__": "13",
    "__linux__": "1",
    "__x86_64__": "1",
    "__CUDACC__": "",
    "__NVCC__": "",
}


class Macro(NamedTuple):
    """A macro. ``parameters`` is None for one that is not function-like, ``file`` is empty for one of the compiler."""

    parameters: tuple[str, ...] | None
    body: tuple[str, ...]
    file: str = ""
    line: int = 0


def target_macros(arch: str, cuda: str) -> dict[str, Macro]:
    """Return what nvcc of that CUDA release predefines in the device pass for ``sm_121a`` and the like."""
    major, _, minor = cuda.partition(".")
    texts = {**_HOST, "__CUDACC_VER_MAJOR__": major, "__CUDACC_VER_MINOR__": minor, **Arch.parse(arch).macros}
    return {name: Macro(None, (text,) if text else ()) for name, text in texts.items()}


@dataclass(frozen=True)
class Header:
    """A header with all that it includes from the tree, narrowed to the files that matter for one macro."""

    path: str
    macro: str
    read: Read
    include: tuple[str, ...]
    """Directories of the tree that the compiler searches."""
    texts: dict[str, str] = field(default_factory=dict)
    """All files that may be included."""
    sources: dict[str, Source] = field(default_factory=dict)
    """The files that define or undefine the macro, or a name on which that depends, and those that include one."""

    @classmethod
    def at(cls, path: str, macro: str, read: Read, include: Sequence[str]) -> Header:
        """Read the header and its includes. LexError: one that matters cannot be read."""
        header = cls(path, macro, read, tuple(include))
        texts = header.texts
        texts.update(header._texts())
        names, seen = {macro}, set[str]()
        while new := names - seen:
            seen |= new
            defines = re.compile(rf"#{_BETWEEN}*(?:define|undef){_BETWEEN}+(?:{'|'.join(new)})\b", re.DOTALL)
            for file, text in texts.items():
                if file not in header.sources and defines.search(text):
                    header._lex(file, text)
            for source in header.sources.values():
                names |= set(_named(source, seen))
        includes = {file: {*header._included(file, text)} for file, text in texts.items()}
        while including := {f for f in texts if f not in header.sources and includes[f] & header.sources.keys()}:
            for file in including:
                header._lex(file, texts[file])
        return header

    def _lex(self, file: str, text: str) -> None:
        self.sources[file] = lex(text)
        _ = self.sources[file].conditionals

    def _texts(self) -> Iterator[tuple[str, str]]:
        todo, seen = [self.path], {self.path}
        while todo:
            file = todo.pop()
            text = self.read(file)
            if text is None:
                continue
            yield file, text
            for name in self._included(file, text):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)

    def _included(self, file: str, text: str) -> Iterator[str]:
        for angled, quoted in _INCLUDE.findall(text):
            yield from self._candidates(file, angled or quoted, quoted=bool(quoted))

    def _candidates(self, file: str, name: str, *, quoted: bool) -> Iterator[str]:
        places = ([dirname(file)] if quoted else []) + list(self.include)
        return (path for place in places if not (path := normpath(join(place, name))).startswith(".."))

    def defined(self, macros: Mapping[str, Macro]) -> Macro | None:
        """Return the macro as it is for a target, or None. ValueError: a condition is not understood."""
        run = _Run(self, dict(macros))
        run.file(self.path)
        return run.macros.get(self.macro)

    def undecided(self, cuda: str) -> Iterator[tuple[str, int, str]]:
        """Yield file, line and name of what the macro depends on and neither the tree nor the compiler defines."""
        known = {*target_macros("sm_121a", cuda), self.macro, "defined"}
        for file, source in self.sources.items():
            for branch in (branch for conditional in source.conditionals for branch in conditional.branches):
                if self.macro in branch.defines and source.is_live(branch.body[0].start):
                    names = (token.text for token in branch.condition if token.text.isidentifier())
                    yield from ((file, branch.opening.line, n) for n in names if n not in known and not self.defines(n))

    def defines(self, name: str) -> bool:
        """Tell whether some file of the tree that matters has a live ``#define`` of the name."""
        return any(
            directive.name == "define" and directive.tokens and directive.tokens[0].text == name
            for source in self.sources.values()
            for directive in source.directives
        )


def _named(source: Source, wanted: set[str]) -> Iterator[str]:
    """Yield the identifiers on which these names' definitions depend: in their bodies and in conditions around them."""
    open_: list[list[str]] = []
    for directive in source.directives:
        words = [token.text for token in directive.tokens if token.text.isidentifier()]
        if directive.name.startswith("if"):
            open_.append(words)
        elif directive.name.startswith("el") and open_:
            open_[-1] = open_[-1] + words
        elif directive.name == "endif" and open_:
            open_.pop()
        elif directive.name in ("define", "undef") and words and words[0] in wanted:
            yield from words
            for condition in open_:
                yield from condition


class _Run:
    """One pass of the directives, as the preprocessor makes it."""

    def __init__(self, header: Header, macros: dict[str, Macro]) -> None:
        self.header = header
        self.macros = macros
        self.once: set[str] = set()
        self.open: list[str] = []

    def file(self, path: str) -> None:
        if path in self.once or path in self.open or path not in self.header.sources:
            return
        self.open.append(path)
        active: list[tuple[bool, bool]] = []  # of each open conditional: whether it is compiled, whether a branch was
        for directive in self.header.sources[path].directives:
            live = all(here for here, _ in active)
            if directive.name in ("if", "ifdef", "ifndef"):
                taken = live and self.condition(path, directive)
                active.append((taken, taken))
            elif directive.name in ("elif", "elifdef", "elifndef", "else"):
                _, done = active.pop()
                taken = not done and all(here for here, _ in active) and self.condition(path, directive)
                active.append((taken, done or taken))
            elif directive.name == "endif":
                active.pop()
            elif live:
                self.line(path, directive)
        self.open.pop()

    def condition(self, path: str, directive: Directive) -> bool:
        words = [token.text for token in directive.tokens]
        if directive.name == "else":
            return True
        if directive.name.endswith("def"):
            return (words[:1] != [] and words[0] in self.macros) != ("n" in directive.name.removesuffix("def"))
        try:
            result = evaluate(self.expand(words), lambda name: int(name in self.macros), lambda _name: 0)
        except ValueError as error:
            raise ValueError(f"{path}:{directive.line}: {error}") from error
        if result is None:
            raise ValueError(f"{path}:{directive.line}: a condition that the tree alone does not decide")
        return bool(result)

    def expand(self, words: Sequence[str], hidden: frozenset[str] = frozenset()) -> list[str]:
        """Replace macros, but for the operand of ``defined``."""
        result: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            macro = self.macros.get(word)
            if word == "defined":
                size = 4 if words[at + 1 : at + 2] == ["("] else 2
                result += words[at : at + size]
                at += size
            elif macro is None or word in hidden:
                result.append(word)
                at += 1
            elif macro.parameters is None:
                result += self.expand(list(macro.body), hidden | {word})
                at += 1
            elif words[at + 1 : at + 2] == ["("]:
                arguments, at = _arguments(words, at + 1)
                given = dict(zip(macro.parameters, arguments, strict=False))
                body = [part for name in macro.body for part in (given.get(name) or [name])]
                result += self.expand(body, hidden | {word})
            else:
                result.append(word)
                at += 1
        return result

    def line(self, path: str, directive: Directive) -> None:
        tokens = directive.tokens
        if directive.name == "include" and tokens:
            text = "".join(token.text for token in tokens)
            name, quoted = text[1:-1], text[:1] == '"'
            for candidate in self.header._candidates(path, name, quoted=quoted):
                if candidate in self.header.texts:
                    self.file(candidate)
                    break
        elif directive.name == "pragma" and [t.text for t in tokens] == ["once"]:
            self.once.add(path)
        elif directive.name == "undef" and tokens:
            self.macros.pop(tokens[0].text, None)
        elif directive.name == "define" and tokens:
            first, rest = tokens[0], tokens[1:]
            parameters: tuple[str, ...] | None = None
            if rest and rest[0].text == "(" and rest[0].start == first.end:
                end = next((n for n, token in enumerate(rest) if token.text == ")"), len(rest) - 1)
                parameters = tuple(token.text for token in rest[1:end] if token.text != ",")
                rest = rest[end + 1 :]
            self.macros[first.text] = Macro(parameters, tuple(token.text for token in rest), path, directive.line)


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
