"""Edits as pure functions: source text in; new text, a reason to do nothing, or a refusal out.

Each kind of edit is a dataclass of :mod:`fp4patch.model` and one row of the table at the end. An edit of C++ is judged
after the fact, too: the new text is read again, and its tokens and directives must be the old ones with exactly the
intended tokens gone or added.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from fp4patch.model import (
    AddElement,
    Drift,
    DropOperand,
    Edit,
    Insert,
    InsertCommands,
    NothingToDo,
    Outcome,
    ReplaceCommand,
    ReplaceExpression,
    ReplaceTokens,
    Retired,
    Rewritten,
    State,
    WrapAsm,
)
from fp4patch.patching import cmakelists
from fp4patch.patching.cxx import BOM, Branch, LexError, Source, Token, lex, words
from fp4patch.patching.replace import replace_tokens
from fp4patch.patching.wrap_asm import wrap

Template = Callable[[str], str]
"""The text of a template by the name that the edit gives."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

UNKNOWN_SHAPE = "the patch does not know this shape of the source; `fp4patch show` names the releases it was tried on"


class Step(Protocol):
    """One edit of a fold, and where its templates come from."""

    @property
    def edit(self) -> Edit:
        """The edit."""

    @property
    def options(self) -> Mapping[str, str]:
        """What the variant sets for the patch."""

    def template(self, name: str, /) -> str:
        """The text of one of its templates."""


@dataclass(frozen=True)
class Fold:
    """The text after all edits, and what each came to, in their order. A refused edit leaves the text as it was."""

    text: str
    outcomes: tuple[Outcome, ...]

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """Every refusal; any makes the whole fold one."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Drift))


def fold(text: str, steps: Iterable[Step]) -> Fold:
    """Apply the edits in order, each to what the one before left. All are tried, so that all refusals are known."""
    outcomes: list[Outcome] = []
    for step in steps:
        outcome = rewrite(step.edit, text, step.template, step.options)
        outcomes.append(outcome)
        if isinstance(outcome, Rewritten):
            text = outcome.text
    return Fold(text, tuple(outcomes))


def rewrite(edit: Edit, text: str, template: Template, options: Mapping[str, str] = NO_OPTIONS) -> Outcome:
    """What one edit makes of a text. Refusals are values; only a template that cannot be read raises."""
    if isinstance(edit, WrapAsm):  # the one kind for which a variant chooses
        return wrap(edit, text, template, options)
    return _REWRITES[type(edit)](edit, text, template)


class _Refused(Exception):  # noqa: N818 - it carries the refusal out of nested calls; rewrite returns the value
    def __init__(self, drift: Drift) -> None:
        super().__init__(drift.expected)
        self.drift = drift


def _refuse(
    expected: str, found: str, line: int | None = None, nearest: str = "", advice: str = UNKNOWN_SHAPE
) -> _Refused:
    return _Refused(Drift(expected, found, line, nearest, advice))


# --- C++: what every edit of it shares -------------------------------------------------------------------------------


def _cxx(work: Callable[[Any, Source, Template], Outcome], edit: Any, text: str, template: Template) -> Outcome:
    """Read the text, look for the signs that retire the edit, then do the work; refusals become values."""
    try:
        source = lex(text)
        _ = source.conditionals  # they must pair before anything is said about them
        return _retirement(edit.retired, source) or work(edit, source, template)
    except LexError as error:
        whole = "is this file whole? fetch it again"
        return Drift("C++ that can be read to its end", error.message, error.line, help=whole)
    except _Refused as refusal:
        return refusal.drift


def _retirement(rules: Sequence[Retired], source: Source) -> NothingToDo | None:
    for rule in rules:
        if source.find(words(rule.tokens)):
            return NothingToDo(rule.state, rule.because, rule.since)
    return None


class _Shape(NamedTuple):
    """What the preprocessor and the compiler would see of a token: not where it stands, but in which kind of line."""

    text: str
    in_directive: bool
    starts_directive: bool


def _shapes(tokens: Sequence[Token]) -> list[_Shape]:
    before = -1
    shapes = []
    for token in tokens:
        shapes.append(_Shape(token.text, token.directive >= 0, token.directive >= 0 and token.directive != before))
        before = token.directive
    return shapes


def _proven(text: str, expected: Sequence[_Shape], lines: tuple[int, ...]) -> Rewritten:
    """The edit's result, after reading it again: tokens and directives as intended, conditionals paired."""
    try:
        result = lex(text)
        sound = _shapes(result.tokens) == list(expected) and result.conditionals is not None
    except LexError:
        sound = False
    if not sound:
        raise _refuse("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(text, lines)


def _newline(text: str) -> str:
    """The newline that most of the text's lines end with."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"


# --- drop-operand ----------------------------------------------------------------------------------------------------


class _Operand(NamedTuple):
    """``defined(NAME)`` among the tokens of a condition."""

    name: str
    first: int
    last: int
    """Indices into the condition."""


def _drop_operand(edit: DropOperand, source: Source, _template: Template) -> Outcome:
    """Remove one operand, with one ``||``, from each condition whose body defines the macro; all of them or none.

    A comment between the operand and that ``||`` goes with it.
    """
    branches = [b for c in source.conditionals for b in c.branches if edit.defines in b.defines]
    names = " or ".join(edit.operands)
    count = f"{edit.conditions} #if that define {edit.defines}"
    if not branches:
        seen = source.find([edit.defines])
        raise _refuse(count, "none", source.tokens[seen[0]].line if seen else None)
    operands = [(branch, _disjunction(branch, edit.defines)) for branch in branches]
    for branch, found in operands:
        _no_lookalike(branch, found, edit.operands)
    if not any(operand.name in edit.operands for _, found in operands for operand in found):
        return NothingToDo(State.NOT_NEEDED, f"the conditions that define {edit.defines} never had {names}")
    if len(branches) != edit.conditions:
        raise _refuse(count, f"{len(branches)}", branches[-1].opening.line)
    cuts: list[tuple[int, int]] = []
    gone: set[int] = set()
    for branch, found in operands:
        chosen = [operand for operand in found if operand.name in edit.operands]
        if len(chosen) != 1:
            listed = ", ".join(operand.name for operand in chosen) or "none of them"
            one = f"one of {names} in each #if that defines {edit.defines}"
            raise _refuse(one, listed, branch.opening.line, found[-1].name)
        if len(found) == 1:
            raise _refuse("another operand beside it", f"{chosen[0].name} alone", branch.opening.line)
        cut, tokens = _cut(source, branch, found, chosen[0])
        cuts.append(cut)
        gone |= {token.start for token in tokens}
    text = source.text
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    shapes = zip(source.tokens, _shapes(source.tokens), strict=True)
    kept = [shape for token, shape in shapes if token.start not in gone]
    lines = sorted({line for start, end in cuts for line in range(source.line(start), source.line(end) + 1)})
    return _proven(text, kept, tuple(lines))


def _disjunction(branch: Branch, macro: str) -> list[_Operand]:
    """The operands of ``defined(A) || defined B || …``, in parentheses or bare; anything else is refused."""
    condition = branch.condition
    expected = f"defined(…) || … in the #{branch.opening.name} that defines {macro}"
    if branch.opening.name not in ("if", "elif"):
        raise _refuse(expected, f"#{branch.opening.name}", branch.opening.line)
    first, last = 0, len(condition)
    while last - first >= 2 and condition[first].text == "(" and condition[last - 1].text == ")":
        first, last = first + 1, last - 1

    operands: list[_Operand] = []
    at = first

    def take(*wanted: str) -> bool:
        nonlocal at
        if tuple(token.text for token in condition[at : min(at + len(wanted), last)]) != wanted:
            return False
        at += len(wanted)
        return True

    def stop() -> _Refused:
        bad = condition[at] if at < len(condition) else None
        return _refuse(expected, f"`{bad.text}`" if bad else "its end", bad.line if bad else branch.opening.line)

    while True:
        began = at
        if not take("defined"):
            raise stop()
        bracketed = take("(")
        if at >= last or not condition[at].text.isidentifier():
            raise stop()
        name = condition[at].text
        at += 1
        if bracketed and not take(")"):
            raise stop()
        operands.append(_Operand(name, began, at - 1))
        if at == last:
            return operands
        if not take("|", "|"):
            raise stop()


def _no_lookalike(branch: Branch, found: Sequence[_Operand], wanted: Sequence[str]) -> None:
    """A name that begins as all the wanted ones do, and is none of them, is not "never had": it is not understood."""
    beginning = os.path.commonprefix(list(wanted))  # noqa: RUF071 - of names, letter by letter: no paths here
    for operand in found:
        if operand.name.startswith(beginning) and operand.name not in wanted:
            line = branch.condition[operand.first].line
            raise _refuse(f"no {beginning}… but {' or '.join(wanted)}", operand.name, line, operand.name)


def _cut(
    source: Source, branch: Branch, found: Sequence[_Operand], chosen: _Operand
) -> tuple[tuple[int, int], tuple[Token, ...]]:
    """Which characters to remove, and the tokens among them, so that the rest reads as if written without the operand.

    With the ``||`` before it where it ends a line or the list, else with the one behind it.
    """
    condition = branch.condition
    start, end = condition[chosen.first].start, condition[chosen.last].end
    following = next((operand for operand in found if operand.first > chosen.last), None)
    leads = chosen is found[0]
    if following is not None:
        next_start = _next_start(source, condition[chosen.last + 2].end, condition[following.first].start)
        alone_or_first = not source.text[source.text.rfind("\n", 0, start) + 1 : start].strip()
        if leads or alone_or_first or "\n" not in source.text[end:next_start]:
            return (start, next_start), condition[chosen.first : chosen.last + 3]
    return (condition[chosen.first - 3].end, end), condition[chosen.first - 2 : chosen.last + 1]


def _next_start(source: Source, after: int, before: int) -> int:
    """Where what follows the ``||`` begins: a comment that precedes the next operand belongs to that one."""
    return min((comment.start for comment in source.comments if after <= comment.start < before), default=before)


# --- insert ----------------------------------------------------------------------------------------------------------


def _insert(edit: Insert, source: Source, template: Template) -> Outcome:
    """Put the template before the anchor and the comment that is attached to it, set off by blank lines.

    The anchor must stand in code that is compiled whatever is defined: in no conditional but an include guard.
    """
    if edit.about and not source.find(words(edit.about)):
        return NothingToDo(State.NOT_NEEDED, edit.otherwise)
    for sign in edit.absent:
        if there := source.find(words(sign)):
            found = "a specialization of that shape, there already"
            advice = "somebody added what this patch adds: remove that, or leave the patch out"
            raise _refuse(f"no `{sign}`", found, source.tokens[there[0]].line, advice=advice)
    pattern = words(edit.before)
    sites = [at for at in source.find(pattern) if all(t.directive < 0 for t in source.tokens[at : at + len(pattern)])]
    if len(sites) != 1:
        near = source.nearest(pattern)
        line = source.tokens[sites[1]].line if sites else near.line if near else None
        nearest = f"`{near.found}` where `{near.expected}` was expected" if near and not sites else ""
        raise _refuse(f"1 site `{edit.before}`", f"{len(sites)}", line, nearest)
    anchor = source.tokens[sites[0]]
    for conditional in source.conditionals:
        if conditional.start < anchor.start < conditional.closing.start and not conditional.is_include_guard:
            opening = conditional.branches[0].opening
            found = f"one inside the #{opening.name} of line {opening.line}"
            raise _refuse("an anchor outside any #if", found, anchor.line)
    at = _before_comments(source, sites[0])
    newline = _newline(source.text)
    added = template(edit.template).replace("\r\n", "\n").strip("\n").replace("\n", newline)
    text = source.text[:at] + _gap(source.text[:at], newline) + added + 2 * newline + source.text[at:]
    shapes = _shapes(source.tokens)
    return _proven(text, shapes[: sites[0]] + _shapes(lex(added).tokens) + shapes[sites[0] :], (source.line(at),))


def _before_comments(source: Source, index: int) -> int:
    """The offset before a token and the comments directly above it, or at the start of that line.

    Attached are comments on lines of their own with no blank line between; a line of slashes is a rule, not a comment.
    """
    at = source.tokens[index].start
    floor = source.tokens[index - 1].end if index else len(BOM) * source.text.startswith(BOM)
    for comment in reversed([c for c in source.comments if floor <= c.start < at]):
        line_start = source.text.rfind("\n", 0, comment.start) + 1
        trails = line_start < floor and index > 0  # the token before the anchor ends on this very line
        rule = len(comment.text) > len("///") and not comment.text.strip("/")
        if trails or rule or source.text.count("\n", comment.end, at) > 1:
            break
        at = comment.start
    line_start = source.text.rfind("\n", 0, at) + 1 or len(BOM) * source.text.startswith(BOM)
    return line_start if not source.text[line_start:at].strip() else at


def _gap(before: str, newline: str) -> str:
    """What makes one blank line behind ``before``; nothing at the file's start or where there is one."""
    lines = before.removeprefix(BOM).split("\n")
    if not any(lines):
        return ""
    if lines[-1].strip():
        return 2 * newline
    return newline if lines[-2].strip() else ""


def _replace_expression(edit: ReplaceExpression, text: str, _template: Template) -> Outcome:
    from fp4patch.patching.pysource import replace_expression  # noqa: PLC0415 - LibCST takes a while; few trees need it

    return replace_expression(edit, text)


_REWRITES: Mapping[type, Callable[[Any, str, Template], Outcome]] = {
    DropOperand: partial(_cxx, _drop_operand),
    Insert: partial(_cxx, _insert),
    ReplaceTokens: lambda edit, text, _template: replace_tokens(edit, text),
    ReplaceExpression: _replace_expression,
    AddElement: lambda edit, text, _template: cmakelists.add_element(edit, text),
    ReplaceCommand: lambda edit, text, _template: cmakelists.replace_command(edit, text),
    InsertCommands: cmakelists.insert_commands,
}
