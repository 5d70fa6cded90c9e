"""The edit ``add-element``: CMake lists get an element beside another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from typing import Annotated, Literal

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import SOME, SomeText
from fp4patch.edits.cmake import Argument, Command, Cut, Form, Script, parse
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import Change, Operation, PatchedTree, Place, Search, Template
from fp4patch.edits.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class AddElement(Operation):
    """Add ``element`` before the element ``beside`` of every CMake list that has the latter and not the former.

    The lists are the arguments of ``commands`` after the name of the variable that they set: ``set(NAME
    "9.0a;12.0f")``, ``list(APPEND NAME "12.0f")``, ``f(NAME "9.0a;12.0f" …)``. If all of them have ``element``, the
    edit is upstreamed. It does not apply to a file without such a list.
    """

    op: Literal["add-element"] = "add-element"
    commands: Annotated[tuple[SomeText, ...], SOME]
    """Names of the commands whose arguments are lists."""
    variable: str = "*"
    """Glob of the variable's name."""
    but: tuple[str, ...] = ()
    """Globs of variables to leave out."""
    beside: SomeText
    """Element that the lists have."""
    element: SomeText
    """Element to add before it, or several with semicolons between them."""
    unless: str = ""
    """Glob of elements that do the same: a list with one of them counts as one that has ``element``."""
    drop: tuple[str, ...] = ()
    """Elements that the new one replaces. They are removed from the lists that get it."""
    since: str = ""
    """Release in which upstream's lists had the element."""

    @property
    def subject(self) -> str:
        """The element that the lists have."""
        return self.beside

    def passes_over(self, text: str, /) -> NothingToDo | None:
        """Return that the edit is not about a text without the element that the lists have."""
        return None if self.beside in text else self._outside

    @property
    def _outside(self) -> NothingToDo:
        return NothingToDo(State.NOT_NEEDED, self.not_needed, elsewhere=True)

    def change(self, script: Script, _template: Template, _options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return the change that adds the element to every list that needs it."""
        return _add_element(self, script) or self._outside

    def searches(self, language: str, /) -> Iterator[Search]:
        """Yield the search for lists without the element, whatever command makes them."""
        if language == self.language:
            yield Search(Look(words_of([self.beside])), self._left)

    def _left(self, _tree: PatchedTree, _file: str, text: str, /) -> Iterable[Place]:
        try:
            return [Place(line, found) for line, found in (*_lacking(self, text), *_taken_out(self, text))]
        except LexError as error:
            return [Place(error.line, error.message)]


def _add_element(edit: AddElement, script: Script) -> Change | NothingToDo | None:
    changed = set[tuple[int, int]]()  # the arguments that change: the index of the command, and of the argument in it
    lists = 0
    for index in script.live:
        for part in _wanting(edit, script, index):
            lists += 1
            if not _has(edit, part):
                _must_be_one_argument(script.commands[index])
                changed |= _changed(edit, part)
    if not lists:
        return None
    if not changed:
        return NothingToDo(
            State.UPSTREAMED, f"each list with {edit.beside} has {edit.unless or edit.element}", edit.since
        )
    cuts = [_cut(edit, script, number, position) for number, position in sorted(changed)]
    return Change(cuts, tuple(sorted({script.line(cut.start) for cut in cuts})))


def _cut(edit: AddElement, script: Script, number: int, position: int) -> Cut:
    """Return the change of one argument of a command."""
    command = script.commands[number]
    argument = command.arguments[position]
    new = ";".join(_becoming(edit, argument))
    is_quoted, old = argument.meaning
    quotes = ""
    if not is_quoted and not command.takes_lists_apart:  # unquoted, a list is several arguments
        if argument.passed != 1:
            raise Refusal(f"`{edit.beside}` in one argument of {command.name}", f"`{old}`", command.line)
        quotes = '"'
    becomes = (is_quoted or bool(quotes), new)
    return Cut(argument.start, argument.end, quotes + new + quotes, number, position, becomes)


def _becoming(edit: AddElement, argument: Argument) -> Iterator[str]:
    """Yield the elements that an argument is to have."""
    for element in argument.elements:
        if element == edit.beside:
            yield edit.element
        if element not in edit.drop:
            yield element


def _must_be_one_argument(command: Command) -> None:
    """Refuse a command that gets a list of another length as so many arguments: `f(OUT ${LIST} more)`."""
    for argument in command.arguments[1:2]:
        if argument.form is Form.UNQUOTED and "${" in argument.text and not command.takes_lists_apart:
            raise Refusal(f"a list in quotes for {command.name}", f"`{argument.text}`", command.line)


def _lacking(edit: AddElement, text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each live command, whatever it is, that has ``beside`` in a list without ``element``."""
    script = parse(text)
    for index in script.live:
        command = script.commands[index]
        if command.name in _NO_LISTS or (command.name == "list" and command.arguments[:1] != () and not _adds(command)):
            continue
        part = _Part.of(script, index, 1)
        versions = [element for element in part.elements if re.fullmatch(r"[0-9]+\.[0-9]+[af]?(?:\+PTX)?", element)]
        if edit.beside not in versions or (len(versions) < 2 and not edit.beside[-1:].isalpha()):
            continue  # a lone bare number is a release of something
        others = _definitions(script, command.arguments[1 if command.name == "list" else 0].text)
        wholes = [part.beside(other) for other in (part, *others)]
        if not any(_has(edit, whole) or whole.elements_of(*edit.drop) for whole in wholes):
            yield command.line, script.text[command.start : command.end]


def _taken_out(edit: AddElement, text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each live command that takes an element out again of a list that has it by then."""
    script = parse(text)
    having: dict[str, set[str]] = {}
    wanted = {element for element in edit.element.split(";") if element}
    for index in script.live:
        command = script.commands[index]
        words = [element for argument in command.arguments for element in argument.elements]
        if command.name == "set" and words:
            having[words[0]] = wanted.intersection(words[1:])
            having[words[0]].update(*(have for name, have in having.items() if f"${{{name}}}" in words[1:]))
        elif command.name == "list" and len(words) > 1:
            name, have = words[1], having.setdefault(words[1], set())
            if words[0] in ("APPEND", "PREPEND", "INSERT"):
                have |= wanted.intersection(words[2:])
            elif lost := have - _kept(words, have):
                yield command.line, script.text[command.start : command.end]
                having[name] = have - lost
        elif command.name == "string" and words[:1] in (["REPLACE"], ["REGEX"]):
            search = words[1 if words[0] == "REPLACE" else 2 : 3 if words[0] == "REGEX" else 2]
            used = set().union(*(have for name, have in having.items() if f"${{{name}}}" in command.arguments[-1].text))
            is_hit = {element for element in used for part in search if _matches(part, element, words[0] == "REGEX")}
            if is_hit:
                yield command.line, script.text[command.start : command.end]


def _kept(words: Sequence[str], have: Set[str]) -> set[str]:
    """Return which elements a command on a list leaves in it. One that is chosen by its place is not known to stay."""
    if words[0] == "REMOVE_ITEM":
        return {element for element in have if element not in words[2:]}
    if words[0] == "FILTER" and len(words) > 4:
        return {element for element in have if _matches(words[4], element, True) == (words[2] == "INCLUDE")}
    if words[0] == "TRANSFORM" and words[2:3] == ["REPLACE"]:
        return {element for element in have if not _matches("".join(words[3:4]), element, True)}
    return set() if words[0] in ("REMOVE_AT", "POP_BACK", "POP_FRONT", "SUBLIST") else {*have}


def _matches(pattern: str, element: str, is_regex: bool) -> bool:
    pattern = pattern.replace("\\\\", "\\")
    try:
        return bool(re.search(pattern, element)) if is_regex else pattern in element
    except re.error:
        return True  # nobody knows what it takes


_NO_LISTS = frozenset(
    {"if", "elseif", "while", "message", "find_package", "cmake_minimum_required", "project", "string"}
)
"""Commands in which a version is that of something else, or text."""


@dataclass(frozen=True)
class _Part:
    """Elements that one command puts into a list: those of its arguments from a certain one on."""

    script: Script
    index: int
    places: tuple[tuple[str, int], ...]
    """Each element, and the number of its argument."""
    more: frozenset[str] = frozenset()
    """Elements that are in the list whenever this command runs, by other commands."""

    @classmethod
    def of(cls, script: Script, index: int, first: int, last: int | None = None) -> _Part:
        arguments = list(enumerate(script.commands[index].arguments))[first:last]
        return cls(script, index, tuple((e, number) for number, argument in arguments for e in argument.elements))

    @property
    def elements(self) -> list[str]:
        return [element for element, _ in self.places]

    def beside(self, other: _Part) -> _Part:
        """With what another command adds, if it runs whenever this one does."""
        own, others = (self.script.blocks[part.index][1] for part in (self, other))
        always = own[: len(others)] == others
        return replace(self, more=self.more | set(other.elements)) if always else self

    def elements_of(self, *globs: str) -> list[str]:
        """Return the elements of the list, by this command or others, that match one of the globs."""
        return [element for element in (*self.elements, *self.more) if any(fnmatchcase(element, g) for g in globs)]


def _has(edit: AddElement, part: _Part) -> bool:
    """Return whether the list of a part has what the edit adds."""
    alike = bool(edit.unless) and bool(part.elements_of(edit.unless))
    return alike or all(part.elements_of(element) for element in edit.element.split(";"))


def _adds(command: Command) -> bool:
    return command.arguments[0].text in ("APPEND", "PREPEND", "INSERT")


def _definitions(script: Script, variable: str) -> list[_Part]:
    """Return the elements that ``set`` and ``list(APPEND …)`` put into a variable in this file."""
    parts = []
    for index in script.live:
        command = script.commands[index]
        own = 1 if command.name == "list" else 0  # list(APPEND NAME …)
        named = [argument.text for argument in command.arguments[own : own + 1]] if command.takes_lists_apart else []
        if named == [variable] and (not own or _adds(command)):
            parts.append(_Part.of(script, index, own + 1))
    return parts


def _wanting(edit: AddElement, script: Script, index: int) -> list[_Part]:
    """Return the parts with ``beside`` of the list of a command; none if it is no list that is meant."""
    command = script.commands[index]
    if command.name not in edit.commands:
        return []
    own = 1 if command.name == "list" else 0  # list(APPEND NAME …)
    names = [argument.text for argument in command.arguments[own : own + 1]]
    if not names or not fnmatchcase(names[0], edit.variable) or (own and not _adds(command)):
        return []
    if any(fnmatchcase(names[0], glob) for glob in edit.but):
        return []
    parts = _definitions(script, names[0]) if command.name in ("list", "set") else _followed(edit, script, index)
    return [reduce(_Part.beside, parts, part) for part in parts if edit.beside in part.elements]


def _followed(edit: AddElement, script: Script, index: int) -> list[_Part]:
    """Return the list that a command gets as its second argument: written out, or in variables that it names."""
    parts = []
    todo = [_Part.of(script, index, 1, 2)]
    seen = set[str]()
    while todo:
        part = todo.pop()
        parts.append(part)
        for element in part.elements:
            name = _REFERENCE.fullmatch(element)
            if "${" not in element or (name and name[1] in seen):
                continue
            definitions = _definitions(script, name[1]) if name else []
            line = script.commands[part.index].line
            if not definitions:
                raise Refusal("a list that is written out, or set in the same file", f"`{element}`", line)
            seen.add(str(name and name[1]))
            removed = _removal(script, str(name and name[1]))
            if removed:
                raise Refusal(f"a list that only grows, with {edit.element}", "one that loses it", removed.line)
            todo += definitions
    return parts


def _removal(script: Script, variable: str) -> Command | None:
    """Return a command that takes elements out of a variable again."""
    for index in script.live:
        command = script.commands[index]
        texts = [argument.text for argument in command.arguments]
        if command.name == "list" and texts[1:2] == [variable] and texts[0] in ("REMOVE_ITEM", "FILTER", "TRANSFORM"):
            return command
    return None


_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w]*)\}")


def _changed(edit: AddElement, part: _Part) -> set[tuple[int, int]]:
    """Return the arguments of a part of a list that have ``beside``, which lacks the element."""
    numbers = {number for element, number in part.places if element == edit.beside}
    elsewhere = {element for element, number in part.places if number not in numbers} | (part.more - {*part.elements})
    if dropped := sorted(elsewhere & {*edit.drop}):
        line = part.script.commands[part.index].line
        raise Refusal(f"{edit.element} in the place of {dropped[0]}", f"{dropped[0]} by itself", line)
    return {(part.index, number) for number in numbers}
