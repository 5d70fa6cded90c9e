"""The kinds of edit that a patch can hold: each is a table of ``patch.toml``, its fields are the keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fp4patch.model.manifest import Manifest
from fp4patch.model.state import State


@dataclass(frozen=True, kw_only=True)
class Retired(Manifest):
    """A sign in the pristine source that an edit has nothing to do, and why.

    ``tokens`` is C++ text compared token by token (white space, comments and continuations do not count); for edits of
    Python and CMake it is an expression or a command.
    """

    tokens: str
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    since: str = ""
    because: str = ""


@dataclass(frozen=True, kw_only=True)
class DropOperand(Manifest):
    """Remove operands from the ``#if`` conditions whose body defines a macro.

    Each condition must be a disjunction of ``defined(NAME)``. ``conditions`` is how many such ``#if`` there are;
    each must lose exactly one operand. No condition that has one: not needed.
    """

    op: Literal["drop-operand"] = "drop-operand"
    file: str
    defines: str
    operands: tuple[str, ...]
    conditions: int
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AddOperand(Manifest):
    """Put operands back into the ``#if`` conditions whose body defines a macro, where someone took them out.

    The conditions are those of ``drop-operand``. The first of ``operands`` goes behind the first of ``beside``, and so
    on, in a condition that also has one of ``signs``: the operands that came to upstream's conditions together with
    them. A condition without a sign never had the operand: not needed.
    """

    op: Literal["add-operand"] = "add-operand"
    file: str
    defines: str
    operands: tuple[str, ...]
    beside: tuple[str, ...]
    signs: tuple[str, ...]
    conditions: int
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Insert(Manifest):
    """Put a template before the declaration that starts with these tokens, ahead of its own comment.

    ``absent``: token sequences that must not occur in the pristine file, else the edit refuses. ``about``: a file
    without these tokens needs nothing, because of ``otherwise``.
    """

    op: Literal["insert"] = "insert"
    file: str
    before: str
    template: str
    absent: tuple[str, ...] = ()
    about: str = ""
    otherwise: str = ""
    present: str = ""
    """Version specifier of the releases that have what the edit is about: there, absence is drift."""
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WrapAsm(Manifest):
    """Give each inline-assembly statement that converts floats to E2M1 a software twin, and a guard that chooses.

    The files are found by content below ``search`` (globs, ``**`` allowed): upstream moves them. Two options, set by
    the variant: ``encoder``, a file ``<encoders>/<encoder>.cuh`` that holds ``namespace fp4patch_<encoder>``; and
    ``guard``, the preprocessor condition under which the software is compiled.
    """

    op: Literal["wrap-asm"] = "wrap-asm"
    search: tuple[str, ...]
    encoders: str
    """The folder of the encoders, relative to the patch's directory."""
    floor: str = ""
    """``__CUDA_ARCH__ >= 1000``: an ``#if`` of this alone, around code that does nothing, or returns zero, below it.

    Such a condition is opened to the software: ``|| (lowered && (guard))`` is added. One whose other branches do the
    work themselves stays, and so does one around assembly of another kind.
    """
    lowered: str = ""
    """``__CUDA_ARCH__ >= 900``: the oldest GPUs that have all else that stands above the floor."""
    allows: tuple[str, ...] = ()
    """What assembly above the floor may begin with, since these GPUs have it: ``griddepcontrol.``."""
    callers: tuple[str, ...] = ()
    """Names. A file that has one of them has such an ``#if`` as well, if it has no statement of its own."""
    unless: tuple[str, ...] = ()
    """Parts of PTX that is assembled for targets with a suffix alone. A file with one of them in a string can lose
    no suffix: it is left as it is."""
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Replacement(Manifest):
    """Something else in the place of ``find``, in each file below ``search`` that has what the edit is ``about``.

    A file without ``about`` is not one that this edit speaks of; a tree without such a file needs nothing, because of
    ``otherwise``, or drifted, if that is empty. A file with ``about`` must have ``find`` exactly ``count`` times, or
    else a sign that retires the edit; all else is drift.
    """

    search: tuple[str, ...]
    about: str
    otherwise: str = ""
    present: str = ""
    """Version specifier of the releases that have what the edit is about: there, absence is drift."""
    find: str
    replace: str
    count: int = 1
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReplaceTokens(Replacement):
    """A replacement of C++ tokens by others."""

    op: Literal["replace-tokens"] = "replace-tokens"
    within: str = ""
    """The tokens that a declaration begins with: sites and signs count only in its braces. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class ReplaceExpression(Replacement):
    """A replacement of a Python expression by another, in files that have the name ``about``.

    Expressions are compared by their syntax tree: layout, comments and parentheses do not count. What ``retired`` calls
    tokens is an expression here.
    """

    op: Literal["replace-expression"] = "replace-expression"
    within: str = ""
    """The name of a function. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class AddElement(Manifest):
    """Add ``element`` before the element ``beside`` of every CMake list that has the latter and not the former.

    The lists are what ``commands`` are given behind the name of the variable that they set: ``set(NAME "9.0a;12.0f")``,
    ``list(APPEND NAME "12.0f")``, ``f(NAME "9.0a;12.0f" …)``. All of them have ``element``: upstreamed. No such list:
    not needed, because of ``otherwise``, or drift, if that is empty.
    """

    op: Literal["add-element"] = "add-element"
    search: tuple[str, ...]
    commands: tuple[str, ...]
    variable: str = "*"
    """A glob."""
    but: tuple[str, ...] = ()
    """Globs of variables that are not meant."""
    beside: str
    element: str
    drop: tuple[str, ...] = ()
    """Elements that the new one stands in for: they leave the lists that get it."""
    since: str = ""
    """The release in which upstream's lists had the element."""
    otherwise: str = ""
    present: str = ""
    """Version specifier of the releases that have what the edit is about: there, absence is drift."""


@dataclass(frozen=True, kw_only=True)
class ReplaceCommand(Replacement):
    """A replacement of a CMake command's arguments, written out: ``elseif(ARCHS MATCHES "12\\\\.0a")``.

    Commands are compared by name and arguments. ``about`` is a command's name and first argument, ``set(ARCHS``, or the
    name alone. What ``retired`` calls tokens is a command.
    """

    op: Literal["replace-command"] = "replace-command"


@dataclass(frozen=True, kw_only=True)
class InsertCommands(Manifest):
    """Put a template of CMake commands behind the one command ``after`` in the body of a CMake function.

    A file without such a function is not meant: not needed, because of ``otherwise``. What ``retired`` calls tokens is
    a command in that body.
    """

    op: Literal["insert-commands"] = "insert-commands"
    search: tuple[str, ...]
    function: str
    otherwise: str = ""
    present: str = ""
    """Version specifier of the releases that have what the edit is about: there, absence is drift."""
    after: str
    template: str
    retired: tuple[Retired, ...] = ()


Edit = (
    DropOperand
    | AddOperand
    | Insert
    | WrapAsm
    | ReplaceTokens
    | ReplaceExpression
    | AddElement
    | ReplaceCommand
    | InsertCommands
)
