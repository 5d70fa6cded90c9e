"""Kinds of edit that a patch can hold. Each is a table of ``patch.toml``, and its fields are the keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fp4patch.core.state import State
from fp4patch.core.table import Manifest


@dataclass(frozen=True, kw_only=True)
class Retired(Manifest):
    """Text in the pristine source that shows that an edit has nothing to do, and the reason.

    ``tokens`` is C++ text compared token by token (white space, comments and continuations do not count); for edits of
    Python and CMake it is an expression or a command.
    """

    tokens: str
    """Text to search in the pristine source."""
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    """State that the text shows."""
    since: str = ""
    """First release that has the text."""
    because: str = ""
    """Reason, as printed."""


@dataclass(frozen=True, kw_only=True)
class DropOperand(Manifest):
    """Remove operands from the ``#if`` conditions whose body defines a macro.

    Each condition must be a disjunction of ``defined(NAME)``. ``conditions`` is the number of such ``#if``; each must
    lose exactly one operand. If no condition has such an operand, the edit is not needed.
    """

    op: Literal["drop-operand"] = "drop-operand"
    file: str
    """Path of the header in the tree."""
    defines: str
    """Name of the macro."""
    operands: tuple[str, ...]
    """Names of the operands to remove; each condition has exactly one of them."""
    conditions: int
    """Number of `#if` conditions whose body defines the macro."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class AddOperand(Manifest):
    """Put operands back into the ``#if`` conditions whose body defines a macro, where someone took them out.

    The conditions are those of ``drop-operand``. The first of ``operands`` goes behind the first of ``beside``, and so
    on, in a condition that also has one of ``signs``: the operands that came to upstream's conditions together with
    them. A condition without a sign never had the operand: not needed.
    """

    op: Literal["add-operand"] = "add-operand"
    file: str
    """Path of the header in the tree."""
    defines: str
    """Name of the macro."""
    operands: tuple[str, ...]
    """Names of the operands to add, in the order of `beside`."""
    beside: tuple[str, ...]
    """Operands behind which they are put."""
    signs: tuple[str, ...]
    """Operands one of which a condition has if it once had the missing operand."""
    conditions: int
    """Number of `#if` conditions whose body defines the macro."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class Insert(Manifest):
    """Insert a template before the declaration that starts with the tokens ``before``, ahead of its own comment.

    ``absent`` lists token sequences that must not occur in the pristine file, else the edit refuses. A file without the
    tokens ``about`` needs no edit; ``otherwise`` gives the reason.
    """

    op: Literal["insert"] = "insert"
    file: str
    """Path of the file in the tree."""
    before: str
    """Tokens that the declaration starts with."""
    template: str
    """File beside patch.toml with the text to insert."""
    absent: tuple[str, ...] = ()
    """Tokens that must not occur in the pristine file."""
    about: str = ""
    """Tokens of the files that the edit applies to. Empty: the file always needs it."""
    otherwise: str = ""
    """Reason why a file without `about` needs no edit."""
    present: str = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class WrapAsm(Manifest):
    """Give each inline-assembly statement that converts floats to E2M1 a software fallback and a guard that selects it.

    The files are found by content below ``search`` (globs, ``**`` allowed), since upstream moves them. The variant sets
    two options: ``encoder``, a file ``<encoders>/<encoder>.cuh`` that holds ``namespace fp4patch_<encoder>``; and
    ``guard``, the preprocessor condition under which the software is compiled. ``stochastic_encoder`` and
    ``stochastic_guard`` are the same for conversions with random bits; without them such a statement is refused.
    """

    op: Literal["wrap-asm"] = "wrap-asm"
    search: tuple[str, ...]
    """Globs of the files to search."""
    encoders: str
    """Directory of the encoders, relative to the patch's directory."""
    floor: str = ""
    """Condition of an ``#if`` around code that does nothing, or returns zero, below it: ``__CUDA_ARCH__ >= 1000``.

    The edit adds ``|| (lowered && (guard))`` to such a condition, so that the software is compiled there. It leaves a
    condition whose other branches do the work themselves, and one around assembly of another kind.
    """
    lowered: str = ""
    """Condition of the oldest GPUs that have all other instructions used above the floor: ``__CUDA_ARCH__ >= 900``."""
    allows: tuple[str, ...] = ()
    """Prefixes of assembly that is allowed above the floor, since these GPUs have it: ``griddepcontrol.``."""
    callers: tuple[str, ...] = ()
    """Names of functions that convert. A file that uses one of them has such an ``#if`` too, even if it has no
    statement of its own."""
    gates: tuple[str, ...] = ()
    """Names that alone are the condition of an ``#if``, or of an ``if constexpr``, which selects a statement or an
    error. Such a condition around a statement is opened: ``true ||`` is put before the name."""
    unless: tuple[str, ...] = ()
    """Parts of PTX that is assembled only for targets with a suffix. A file with one of them in a string cannot lose
    the suffix and is left unchanged."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class Replacement(Manifest):
    """Replace ``find`` by ``replace`` in each file below ``search`` that contains ``about``.

    The edit does not apply to a file without ``about``. A tree without such a file needs no edit, and ``otherwise``
    gives the reason; if that is empty, the tree has drifted. A file with ``about`` must have ``find`` exactly ``count``
    times, or text that retires the edit. All else is drift.
    """

    search: tuple[str, ...]
    """Globs of the files to search."""
    about: str
    """Code of the files that the edit applies to."""
    otherwise: str = ""
    """Reason why a tree without such a file needs no edit. Empty: it has drifted."""
    present: str = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""
    find: str
    """Code to replace."""
    replace: str
    """Code to put in its place."""
    count: int = 1
    """Number of places that a file has."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class ReplaceTokens(Replacement):
    """Replace C++ tokens by others."""

    op: Literal["replace-tokens"] = "replace-tokens"
    within: str = ""
    """Tokens that a declaration begins with. The edit searches only inside its braces. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class ReplaceExpression(Replacement):
    """Replace a Python expression by another, in files that have the name ``about``.

    Expressions are compared by their syntax tree: layout, comments and parentheses do not count. The ``tokens`` of
    ``retired`` are an expression here.
    """

    op: Literal["replace-expression"] = "replace-expression"
    within: str = ""
    """Name of the function to search. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class AddElement(Manifest):
    """Add ``element`` before the element ``beside`` of every CMake list that has the latter and not the former.

    The lists are the arguments of ``commands`` after the name of the variable that they set: ``set(NAME
    "9.0a;12.0f")``, ``list(APPEND NAME "12.0f")``, ``f(NAME "9.0a;12.0f" …)``. If all of them have ``element``, the
    edit is upstreamed. If there is no such list, the edit is not needed, and ``otherwise`` gives the reason; if that is
    empty, this is drift.
    """

    op: Literal["add-element"] = "add-element"
    search: tuple[str, ...]
    """Globs of the files to search."""
    commands: tuple[str, ...]
    """Names of the commands whose arguments are lists."""
    variable: str = "*"
    """Glob of the variable's name."""
    but: tuple[str, ...] = ()
    """Globs of variables to leave out."""
    beside: str
    """Element that the lists have."""
    element: str
    """Element to add before it."""
    drop: tuple[str, ...] = ()
    """Elements that the new one replaces. They are removed from the lists that get it."""
    since: str = ""
    """Release in which upstream's lists had the element."""
    otherwise: str = ""
    """Reason why a tree without such a list needs no edit. Empty: it has drifted."""
    present: str = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""


@dataclass(frozen=True, kw_only=True)
class ReplaceCommand(Replacement):
    """Replace a CMake command with its arguments: ``elseif(ARCHS MATCHES "12\\\\.0a")``.

    Commands are compared by name and arguments. ``about`` is a command's name and first argument, ``set(ARCHS``, or the
    name alone. The ``tokens`` of ``retired`` are a command.
    """

    op: Literal["replace-command"] = "replace-command"


@dataclass(frozen=True, kw_only=True)
class InsertCommands(Manifest):
    """Insert a template of CMake commands after the one command ``after`` in the body of a CMake function.

    The edit does not apply to a file without such a function: it is not needed, and ``otherwise`` gives the reason. An
    empty ``function`` is the whole file, and the edit then does not apply to a file without ``after``. The ``tokens``
    of ``retired`` are a command in that body.
    """

    op: Literal["insert-commands"] = "insert-commands"
    search: tuple[str, ...]
    """Globs of the files to search."""
    function: str = ""
    """Name of the CMake function. Empty: the whole file."""
    otherwise: str = ""
    """Reason why a tree without the function needs no edit. Empty: it has drifted."""
    present: str = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""
    after: str
    """Command behind which the template is put."""
    template: str
    """File beside patch.toml with the commands to insert."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""


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
