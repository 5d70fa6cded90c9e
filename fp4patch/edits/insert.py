"""The edit ``insert``: a template before a declaration and its own comment."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from fp4patch.core.outcome import NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.core.table import SomeText, TemplateBeside
from fp4patch.edits.cxx import BOM, Cut, Source, words
from fp4patch.edits.cxx_edit import edit_cxx, edited, newline_of
from fp4patch.edits.operation import NO_OPTIONS, InFile, MayBeAbsent, Retired, Template
from fp4patch.edits.refusal import ADDED, Refusal


@dataclass(frozen=True, kw_only=True)
class Insert(MayBeAbsent, InFile):
    """Insert a template before the declaration that starts with the tokens ``before``, ahead of its own comment.

    ``absent`` lists token sequences that must not occur in the pristine file, else the edit refuses. A file without the
    tokens ``about`` needs no edit; ``otherwise`` gives the reason.
    """

    subject: ClassVar = "about"
    op: Literal["insert"] = "insert"
    before: SomeText
    """Tokens that the declaration starts with."""
    template: TemplateBeside
    """File beside patch.toml with the text to insert."""
    absent: tuple[str, ...] = ()
    """Tokens that must not occur in the pristine file."""
    about: str = ""
    """Tokens of the files that the edit applies to. Empty: the file always needs it."""
    otherwise: str = ""
    """Reason why a file without `about` needs no edit."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys with code."""
        return ("before", "absent", "about")

    def rewrite(self, text: str, template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with the template in it; NothingToDo if it does not apply; Drift if it has no clear place."""
        return edit_cxx(text, self.retired, partial(_insert, self, template))


def _insert(edit: Insert, template: Template, source: Source) -> Outcome:
    """Put the template before the anchor and the comment that is attached to it, set off by blank lines.

    The anchor must be in code that is always compiled: in no conditional but an include guard.
    """
    if edit.about and not source.find(words(edit.about)):
        return NothingToDo(State.NOT_NEEDED, edit.otherwise)
    for sign in edit.absent:
        if there := source.find(words(sign)):
            found = "a specialization of that shape, there already"
            raise Refusal(f"no `{sign}`", found, source.tokens[there[0]].line, advice=ADDED)
    pattern = words(edit.before)
    sites = [at for at in source.find(pattern) if all(t.directive < 0 for t in source.tokens[at : at + len(pattern)])]
    if len(sites) != 1:
        near = source.nearest(pattern)
        line = source.tokens[sites[1]].line if sites else near.line if near else None
        nearest = f"`{near.found}` where `{near.expected}` was expected" if near and not sites else ""
        raise Refusal(f"1 site `{edit.before}`", f"{len(sites)}", line, nearest)
    anchor = source.tokens[sites[0]]
    for conditional in source.conditionals:
        if conditional.start < anchor.start < conditional.closing.start and not conditional.is_include_guard:
            opening = conditional.branches[0].opening
            found = f"one inside the #{opening.name} of line {opening.line}"
            raise Refusal("an anchor outside any #if", found, anchor.line)
    at = _before_comments(source, sites[0])
    newline = newline_of(source.text)
    added = template(edit.template).replace("\r\n", "\n").strip("\n").replace("\n", newline)
    put = Cut(at, at, _gap(source.text[:at], newline) + added + 2 * newline)
    return Rewritten(edited(source, [put], source.line(at)).text, (source.line(at),))


def _before_comments(source: Source, index: int) -> int:
    """Return the offset before a token and the comments directly above it, or at the start of that line.

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
    """Return the text that makes one blank line after ``before``; empty at the file's start or if there is one."""
    lines = before.removeprefix(BOM).split("\n")
    if not any(lines):
        return ""
    if lines[-1].strip():
        return 2 * newline
    return newline if lines[-2].strip() else ""
