"""Find the functions of C++ texts, and those that an edit changes, by their tokens or through a macro.

A function is a free function, or a class with all that is in it. Nothing is expanded: the branches of a conditional
are all read, each from where the first one began.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fp4patch.edits.cxx import Source, Token, lex

_CLASSES = frozenset({"struct", "class", "union"})
_OPEN, _CLOSE = {"(": ")", "[": "]", "<": ">"}, frozenset(")]>")


@dataclass(frozen=True)
class Function:
    """One definition: its name, its tokens with those of the directives in it, and the conditions around it."""

    name: str
    """``cutlass::NumericConverter<float_e2m1_t, float, Round>``, ``vllm::f(float (&array)[8])``."""
    words: tuple[str, ...]
    conditions: tuple[str, ...]
    lines: range = field(compare=False)
    """Its lines in the text."""


@dataclass(frozen=True)
class Macro:
    """One ``#define`` or ``#undef``: the macro's name, the line, and the conditions around it."""

    name: str
    words: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Outline:
    """The definitions of a text."""

    functions: tuple[Function, ...]
    macros: tuple[Macro, ...]
    statements: tuple[tuple[str, ...], ...]
    """All other declarations, each with the conditions around it."""


WHOLE = (range(1, sys.maxsize),)
"""All lines of a file."""


def touched(
    before: Mapping[str, str], after: Mapping[str, str], mentioning: Callable[[frozenset[str]], Mapping[str, str]]
) -> dict[str, dict[str, tuple[range, ...]]]:
    """Return the functions that differ between two versions of some files, by file, each with the lines of its
    definitions; LexError as of ``lex``.

    A function counts if its own tokens or the conditions around it differ, or if it has the name of a macro that is
    defined otherwise, or on other conditions, or by way of another such macro. ``mentioning`` returns the other files
    of the tree that have one of these names. A file that differs in what is in no function counts as a whole, by its
    path.
    """
    old = {path: outline(text) for path, text in before.items()}
    new = {path: outline(text) for path, text in after.items()}
    changed = _changed_macros(old, new)
    known = {macro.name for one in old.values() for macro in one.macros}
    while others := {path: outline(text) for path, text in mentioning(frozenset(changed & known)).items()}:
        if not others.keys() - new.keys():
            break
        old, new = others | old, others | new
        changed = _changed_macros(old, new)
        known |= {macro.name for one in others.values() for macro in one.macros}
    found = {}
    for path, one in new.items():
        same = set(old[path].functions) if path in old else set[Function]()
        functions: dict[str, tuple[range, ...]] = {}
        for f in one.functions:
            if f not in same or not changed.isdisjoint((*f.words, *f.conditions)):
                functions[f.name] = (*functions.get(f.name, ()), f.lines)
        if path not in old or set(one.statements) != set(old[path].statements):
            functions[path] = WHOLE
        if functions:
            found[path] = functions
    return found


def _changed_macros(old: Mapping[str, Outline], new: Mapping[str, Outline]) -> set[str]:
    """Return the macros that differ between two versions of some files, and all that depend on one of these."""
    defined = {path: (set(old[path].macros if path in old else ()), set(one.macros)) for path, one in new.items()}
    changed = {macro.name for one, other in defined.values() for macro in one ^ other}
    every = [macro for pair in defined.values() for macros in pair for macro in macros]
    while more := {m.name for m in every if not changed.isdisjoint((*m.words, *m.conditions))} - changed:
        changed |= more
    return changed


def outline(text: str) -> Outline:
    """Return the functions and macros of a text; LexError as of ``lex``."""
    walk = _Walk(lex(text))
    return Outline(tuple(walk.functions), tuple(walk.macros), tuple(walk.statements))


@dataclass
class _Scope:
    """Owner of an open brace. ``name`` is empty except for namespaces."""

    name: str = ""
    inside: bool = False
    """True if it is a function, a class or anything else that holds no further functions."""


class _Walk:
    """Goes through the tokens once, with the open braces and the open conditionals."""

    def __init__(self, source: Source) -> None:
        self.functions: list[Function] = []
        self.macros: list[Macro] = []
        self.statements: list[tuple[str, ...]] = []
        self._source = source
        self._scopes: list[_Scope] = []
        self._head: list[Token] = []
        self._start = 0
        self._began: tuple[str, int, tuple[str, ...], int] | None = None
        """Of the definition that is open: its name, the braces around it, the conditions, and its first token."""
        self._conditions: list[str] = []
        self._saved: list[tuple[list[_Scope], list[Token]]] = []
        directive = -1
        for at, token in enumerate(source.tokens):
            if token.directive >= 0:
                if token.directive != directive:
                    directive = token.directive
                    self._direct(directive)
            else:
                self._step(at, token)

    def _direct(self, number: int) -> None:
        directive = self._source.directives[number]
        said = " ".join((directive.name, *(token.text for token in directive.tokens)))
        if directive.name in ("define", "undef") and directive.tokens:
            self.macros.append(Macro(directive.tokens[0].text, tuple(said.split(" ")), self._around()))
        elif directive.name in ("if", "ifdef", "ifndef"):
            self._conditions.append(said)
            self._saved.append((list(self._scopes), list(self._head)))
        elif directive.name.startswith("el") and self._conditions:
            self._conditions[-1] += f" / {said}"
            self._scopes, self._head = list(self._saved[-1][0]), list(self._saved[-1][1])
        elif directive.name == "endif" and self._conditions:
            self._conditions.pop()
            self._saved.pop()

    def _around(self) -> tuple[str, ...]:
        return tuple(word for condition in self._conditions for word in condition.split(" "))

    def _step(self, at: int, token: Token) -> None:
        inside = bool(self._scopes) and self._scopes[-1].inside
        if token.text == "{":
            if inside:
                self._scopes.append(_Scope(inside=True))
                return
            scope, name = _opened(self._head)
            if scope.inside:
                self._began = name, len(self._scopes), self._around(), self._start if self._head else at
            self._scopes.append(scope)
            self._head = []
        elif token.text == "}":
            if self._scopes:
                self._scopes.pop()
            if self._began and len(self._scopes) == self._began[1]:
                self._finish(at)
            if not inside:
                self._head = []
        elif inside:
            return
        elif token.text == ";":
            if self._head:
                self.statements.append((*self._around(), *(one.text for one in self._head)))
            self._head = []
        else:
            if not self._head:
                self._start = at
            self._head.append(token)

    def _finish(self, last: int) -> None:
        assert self._began
        name, _, conditions, start = self._began
        self._began, self._head = None, []
        body = self._source.words[start : last + 1]
        if name:
            spaces = [scope.name for scope in self._scopes if scope.name]
            first, end = self._source.tokens[start].line, self._source.tokens[last].line + 1
            self.functions.append(Function("::".join([*spaces, name]), body, conditions, range(first, end)))
        else:
            self.statements.append((*conditions, *body))


def _opened(head: Sequence[Token]) -> tuple[_Scope, str]:
    """Return the owner of an opening brace after these tokens, and its name if it is a function or a class."""
    texts = [token.text for token in head]
    if "namespace" in texts[:2]:
        return _Scope("".join(texts[texts.index("namespace") + 1 :])), ""
    if texts[:1] == ["extern"] and len(texts) == 2:  # extern "C" {
        return _Scope(), ""
    if "enum" in texts[:1]:
        return _Scope(inside=True), ""
    texts = list(_without_attributes(texts))
    outer = list(_outermost(texts))
    for at in outer:
        if texts[at] in _CLASSES and not any(texts[other] == "(" for other in outer if other > at):
            end = next((other for other in outer if other > at and texts[other] == ":"), len(texts))
            return _Scope(inside=True), _joined(texts[at + 1 : end])
    for at in outer:
        if texts[at] == "=" and "operator" not in texts[:at]:
            break
        if texts[at] == "(" and at and (texts[at - 1].isidentifier() or "operator" in texts[:at]):
            name = texts.index("operator") if "operator" in texts[:at] else at - 1
            while name > 1 and texts[name - 1] == ":":
                name -= 3
            return _Scope(inside=True), _joined(texts[name : _closing(texts, at) + 1])
    return _Scope(inside=True), ""


_ATTRIBUTES = frozenset(("__launch_bounds__", "__align__", "__attribute__", "alignas", "decltype", "noexcept"))


def _without_attributes(texts: Sequence[str]) -> Iterator[str]:
    """Yield the tokens without ``alignas(16)`` and all else whose parentheses hold no parameters."""
    at = 0
    while at < len(texts):
        if texts[at] in _ATTRIBUTES and texts[at + 1 : at + 2] == ["("]:
            at = _closing(texts, at + 1)
        else:
            yield texts[at]
        at += 1


def _outermost(texts: Sequence[str]) -> Iterator[int]:
    """Yield the indices of what is in no brackets; an opening bracket is outside of itself."""
    at = 0
    while at < len(texts):
        yield at
        at = _closing(texts, at) + 1 if texts[at] in _OPEN else at + 1


def _closing(texts: Sequence[str], at: int) -> int:
    """Return the index of the bracket that closes the one at ``at``; its own where none does: it is a comparison."""
    want = [_OPEN[texts[at]]]
    for other in range(at + 1, len(texts)):
        if texts[other] == want[-1]:
            want.pop()
            if not want:
                return other
        elif texts[other] in _OPEN and (texts[other] != "<" or want[-1] == ">"):
            want.append(_OPEN[texts[other]])
    return at


def _joined(texts: Sequence[str]) -> str:
    """Tokens as people write them: ``f(float (&array)[8], int n)``."""
    out = ""
    for text in texts:
        spaced = out and (out[-1] == "," or (_is_word(out[-1]) and (_is_word(text[0]) or text in "&*")))
        out += f" {text}" if spaced else text
    return out


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
