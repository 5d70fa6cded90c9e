"""What a reader of a language returns: values with what is not known of them, settings, commands, what is unread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Kind(StrEnum):
    """How a setting is made. Closed."""

    ASSIGNED = "assigned"
    DEFAULT = "default"
    """It holds where the user sets nothing: ``ARG``, ``${X:-…}``, ``?=``, ``CACHE``, ``environ.get(…, …)``."""
    PASSED = "passed"
    """It is an argument of a command, or in the environment of that command alone."""
    APPENDED = "appended"


@dataclass(frozen=True)
class Value:
    """A text of a build file, as its program would have it."""

    text: str
    unknown: str = ""
    """What is not followed in it; empty if all of it is known."""
    default: bool = False
    """True if the user's environment comes before it."""
    condition: str = ""
    """What decides whether it is there, if that is not known."""

    def __add__(self, other: Value) -> Value:
        # A text is not known if it is not known whether a part of it is there.
        mark = self.unknown or other.unknown or self.condition or other.condition
        return Value(self.text + other.text, mark, self.default or other.default)

    @property
    def known(self) -> str | None:
        """Its text; None if it is not known."""
        return None if self.unknown else self.text


EMPTY = Value("")


def unknown(text: str) -> Value:
    """Return a value of which nothing is known but the words that the file has for it."""
    return Value(text, text or "a text")


def joined(values: Iterable[Value], by: str = " ") -> Value:
    """Return values with a separator between them."""
    result = None
    for value in values:
        result = value if result is None else result + Value(by) + value
    return result or EMPTY


@dataclass(frozen=True)
class Variable:
    """A variable at one point of a file."""

    value: Value
    line: int
    kind: Kind = Kind.ASSIGNED
    exported: bool = False
    condition: str = ""
    """What decides whether it is set, or whether it is exported, if that is not known."""
    export_condition: str = ""
    """What decides whether it is exported, if that alone is not known."""
    items: tuple[Value, ...] | None = None
    """Elements of a list."""


Variables = dict[str, Variable]


@dataclass(frozen=True)
class Truth:
    """Whether a condition holds."""

    holds: bool | None
    """None: it is not known."""
    by_default: bool = False
    """True if it is so because the user sets nothing."""
    assumed: bool = False
    """True if a program ran, and is taken to succeed."""

    def __invert__(self) -> Truth:
        return Truth(None if self.holds is None or self.assumed else not self.holds, self.by_default)


YES, NO, UNKNOWN = Truth(True), Truth(False), Truth(None)


def all_of(truths: Sequence[Truth]) -> Truth:
    """Return whether each of some conditions holds."""
    by_default = any(truth.by_default for truth in truths)
    if any(truth.holds is False and not truth.by_default for truth in truths):
        return NO
    if any(truth.holds is False for truth in truths):
        return Truth(False, by_default=True)
    return Truth(None if any(truth.holds is None for truth in truths) else True, by_default)


def any_of(truths: Sequence[Truth]) -> Truth:
    """Return whether one of some conditions holds."""
    return ~all_of([~truth for truth in truths])


@dataclass(frozen=True)
class Command:
    """A command that a file has run, with what it is given."""

    words: tuple[Value, ...]
    """The program and its arguments."""
    line: int
    condition: str = ""
    environment: Mapping[str, Variable] = field(default_factory=dict)
    """Variables that the file puts into its environment."""
    own: frozenset[str] = frozenset()
    """Names of those that are in the environment of this command alone."""
    folder: str = ""
    """Directory into which the file has changed, as it names it."""
    image: str = ""
    """Base image of its stage, if the file is a Dockerfile."""
    reads: str = ""
    """Text on its standard input, if the file has it."""

    @property
    def program(self) -> str:
        """Name of the program, without its directory."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""

    def __str__(self) -> str:
        text = " ".join(word.text for word in self.words)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 60


@dataclass(frozen=True)
class Reading:
    """One setting of a build file."""

    name: str
    """Variable, property or option: ``TORCH_CUDA_ARCH_LIST``, ``CMAKE_CUDA_FLAGS``, ``-gencode``."""
    values: tuple[Value, ...]
    """Its value; the elements, if it is a list."""
    line: int
    kind: Kind = Kind.ASSIGNED
    condition: str = ""
    command: Command | None = None
    """The command that it is passed to."""
    group: str = ""
    """What it belongs to with others: a variable, a target of CMake, a command."""
    partial: bool = False
    """True if it is for one target or source, and not for all that the file builds."""
    image: str = ""
    """Base image of the stage, if the file is a Dockerfile."""

    def under(self, condition: str) -> Reading:
        """Return the same under another condition."""
        return replace(self, condition=condition or self.condition)


@dataclass(frozen=True)
class Rewrite:
    """A text that a script replaces in another file's."""

    line: int
    old: str
    new: str


@dataclass(frozen=True)
class Image:
    """An image that a file names: the base of a stage, or what a service runs."""

    name: Value
    line: int
    final: bool = True
    """False for the base of a stage from which the last one is not made."""


@dataclass
class Read:
    """What one file says."""

    readings: list[Reading] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """Variables of the environment whose values the file asks for."""
    unread: list[tuple[int, str]] = field(default_factory=list)
    """Lines that are not understood, and why."""
    macros: dict[str, str] = field(default_factory=dict)
    """Macros that are defined for every compilation."""
    rewrites: list[Rewrite] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)

    def skip(self, first: int, last: int, why: str) -> str:
        """Note lines that are not read, and return what they are called."""
        part = f"line {first}" if first == last else f"lines {first}-{last}"
        self.unread.append((first, f"{part} not read: {why}"))
        return part

    def add(self, other: Read) -> None:
        """Add what a part of the file says that is in another language."""
        self.readings += other.readings
        self.commands += other.commands
        self.used |= other.used
        self.unread += other.unread
        self.macros |= other.macros
        self.images += other.images


def merged(condition: str, branches: Iterable[Variables]) -> Variables:
    """Return what is known of variables after branches of which one was taken."""
    states = list(branches)
    result: Variables = {}
    for name in dict.fromkeys(name for state in states for name in state):
        having = [state.get(name) for state in states]
        first = having[0]
        if all(one == first for one in having) and first:
            result[name] = first
            continue
        set_ = [one for one in having if one]
        same = {(one.value, one.items) for one in set_}
        value = set_[0].value if len(same) == 1 and len(set_) == len(having) else unknown(f"{name}, under {condition}")
        exported = [bool(one and one.exported) for one in having]
        doubt = (
            condition
            if any(exported) and not all(exported)
            else next((one.export_condition for one in set_ if one.export_condition), "")
        )
        last = max(set_, key=lambda one: one.line)
        items = last.items if not value.unknown else None
        result[name] = Variable(value, last.line, last.kind, any(exported), condition, doubt, items)
    return result


def elements_of(*states: tuple[str, tuple[Value, ...] | None]) -> tuple[Value, ...]:
    """Return the elements of a list after branches: what all have is certain, the others have their conditions."""
    lists = [values or () for _, values in states]
    if all(values == lists[0] for values in lists) and all(values is not None for _, values in states):
        return lists[0]
    common = shared(lists)
    result = list(common)
    for (under, _), values in zip(states, lists, strict=True):
        rest = without(values, common)
        result += [replace(value, condition=both(value.condition, under)) for value in rest]
    return tuple(result)


def shared(lists: Sequence[Sequence[T]]) -> list[T]:
    """Return what all lists have, as often as all have it; nothing if its order is not that of all."""
    counts = Counter(lists[0])
    for values in lists[1:]:
        counts &= Counter(values)
    orders = list[list[T]]()
    for values in lists:
        left = counts.copy()
        orders.append([])
        for value in values:
            if left[value]:
                left[value] -= 1
                orders[-1].append(value)
    return orders[0] if all(order == orders[0] for order in orders) else []


def without(values: Sequence[T], common: Sequence[T]) -> list[T]:
    """Return what is in a list but for the items that it shares with others, each as often as they are shared."""
    left, rest = Counter(common), []
    for value in values:
        if left[value]:
            left[value] -= 1
        else:
            rest.append(value)
    return rest


def both(*conditions: str) -> str:
    """Return conditions of which each must hold."""
    return " and ".join(dict.fromkeys(filter(None, conditions)))


def texts(values: Iterable[Value]) -> Iterator[str]:
    """Yield the texts of values."""
    return (value.text for value in values)
