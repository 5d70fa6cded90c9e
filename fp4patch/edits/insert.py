"""The edit ``insert``: a template before a declaration of C++ and its own comment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import FileBeside, SomeText
from fp4patch.cxx.edit import Cut, newline_of, set_off
from fp4patch.cxx.text import BOM
from fp4patch.cxx.tokens import Source, words
from fp4patch.edits.cxx_code import retirement
from fp4patch.edits.operation import Change, Operation, Retired, Template
from fp4patch.edits.refusal import ADDED, Refusal


@dataclass(frozen=True, kw_only=True)
class Insert(Operation):
    """Insert a template before the declaration that starts with the tokens ``before``, ahead of its own comment.

    ``absent`` lists token sequences that must not occur in the pristine file, else the edit refuses. The edit does not
    apply to a file without the tokens ``about``.
    """

    op: Literal["insert"] = "insert"
    before: SomeText
    """Tokens that the declaration starts with."""
    template: FileBeside
    """File beside patch.toml with the text to insert."""
    absent: tuple[str, ...] = ()
    """Tokens that must not occur in the pristine file."""
    about: str = ""
    """Tokens of the files that the edit applies to. Empty: all files that it searches."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    @property
    def subject(self) -> str:
        """The tokens of such files."""
        return self.about

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys with code."""
        return ("before", "absent", "about")

    def change(self, source: Source, template: Template, _options: Mapping[str, str], /) -> Change | NothingToDo:
        """Put the template before the anchor and the comment that is attached to it, set off by blank lines.

        The anchor must be in code that is always compiled: in no conditional but an include guard.
        """
        if retired := retirement(source, self.retired):
            return retired
        if self.about and not source.find(words(self.about)):
            return NothingToDo(State.NOT_NEEDED, self.not_needed, elsewhere=True)
        for sign in self.absent:
            if present := source.find(words(sign)):
                expected, found = f"no `{sign}`", "a specialization of that shape, there already"
                raise Refusal(expected, found, source.token(present[0]).line, advice=ADDED)
        anchor = self._anchor(source)
        before = source.before(anchor)
        if before and before.text not in (";", "{", "}"):
            raise Refusal("a declaration behind a whole one", f"`{before.text}`", before.line)
        at = _before_comments(source, anchor)
        put = Cut(at, at, set_off(source.text, at, template(self.template)) + 2 * newline_of(source.text))
        return Change([put], (source.line(at),))

    def _anchor(self, source: Source) -> int:
        """Return the index of the token that the declaration starts with."""
        pattern = words(self.before)
        sites = [at for at in source.find(pattern) if max(source.directive_of[at : at + len(pattern)]) < 0]
        if len(sites) != 1:
            line, nearest = (source.token(sites[1]).line, "") if sites else source.nearest(pattern)
            raise Refusal(f"1 site `{self.before}`", f"{len(sites)}", line, nearest)
        anchor = source.token(sites[0])
        for conditional in source.conditionals:
            if conditional.start < anchor.start < conditional.closing.start and not conditional.is_include_guard:
                opening = conditional.branches[0].opening
                found = f"one inside the #{opening.name} of line {opening.line}"
                raise Refusal("an anchor outside any #if", found, anchor.line)
        return sites[0]


def _before_comments(source: Source, index: int) -> int:
    """Return the offset before a token and the comments directly above it, or at the start of that line.

    Attached are comments on lines of their own with no blank line between; a line of slashes is a rule, not a comment.
    """
    at = source.starts[index]
    floor = source.ends[index - 1] if index else len(BOM) * source.text.startswith(BOM)
    for start, end in reversed([comment for comment in source.comments if floor <= comment[0] < at]):
        line_start = source.text.rfind("\n", 0, start) + 1
        trails = line_start < floor and index > 0  # the token before the anchor ends on this very line
        comment = source.text[start:end]
        rule = len(comment) > len("///\r") and not comment.strip("/\r")
        if trails or rule or source.text.count("\n", end, at) > 1:
            break
        at = start
    line_start = source.text.rfind("\n", 0, at) + 1 or len(BOM) * source.text.startswith(BOM)
    return line_start if not source.text[line_start:at].strip() else at
