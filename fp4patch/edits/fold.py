"""The fold of edits over a text: all edits of a pass look at one source, which is spliced, read and proven once."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from fp4patch.core.lex_error import LexError, NotAsMeant, Overlap
from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.edits.operation import NO_OPTIONS, Change, Operation, Template
from fp4patch.edits.refusal import OTHERWISE, Refusal
from fp4patch.edits.sources import LANGUAGES

Step = tuple[Operation, Template, Mapping[str, str]]
"""One edit of a fold, where its templates come from, and the options that the variant sets for the patch."""


class Fold(NamedTuple):
    """The text after all edits, and what each came to, in their order. One that drifts leaves the text as it was."""

    text: str
    outcomes: tuple[Outcome, ...]


def fold(text: str, steps: Sequence[Step]) -> Fold:
    """Apply edits to a text. All are tried, so that all refusals are known; refusals are values.

    The edits of a pass are for one language, and look at the same text. One that needs what an earlier edit makes says
    so by ``after``, and begins another pass. Only a template that cannot be read raises.
    """
    outcomes: list[Outcome] = []
    for _, group in groupby(steps, lambda step: (step[0].language, step[0].after)):
        text, found = _pass(text, list(group))
        outcomes += found
    return Fold(text, tuple(outcomes))


def rewrite(text: str, edit: Operation, template: Template, options: Mapping[str, str] = NO_OPTIONS) -> Fold:
    """Apply one edit to a text."""
    return fold(text, [(edit, template, options)])


def _pass(text: str, steps: Sequence[Step]) -> tuple[str, list[Outcome]]:
    language = LANGUAGES[steps[0][0].language]
    outcomes: dict[int, Outcome] = {}
    changes: dict[int, Change] = {}
    source: Any = None
    for number, (edit, template, options) in enumerate(steps):
        try:
            result: Change | NothingToDo | None = edit.passes_over(text)
            if result is None:
                source = source or language.read(text)
                result = edit.change(source, template, options)
        except Refusal as refusal:
            outcomes[number] = refusal.drift
        except (LexError, SyntaxError) as error:
            outcomes[number] = _unreadable(language.title, error)
        else:
            if isinstance(result, NothingToDo):
                outcomes[number] = result
            else:
                changes[number] = result
    if changes:
        text, refused = _spliced(language.spliced, source, changes)
        for number, change in changes.items():
            outcomes[number] = refused.get(number) or Rewritten(change.lines, change.reversal)
    return text, [outcomes[number] for number in range(len(steps))]


def _unreadable(title: str, error: LexError | SyntaxError) -> Drift:
    if isinstance(error, LexError):
        message, line = error.message, error.line
    else:
        message, line = error.msg, error.lineno or 1
    return Drift(f"{title} that can be read to its end", message, line, help="is this file whole? fetch it again")


def _spliced(splice: Any, source: Any, changes: Mapping[int, Change]) -> tuple[str, dict[int, Drift]]:
    """Return the text with the changes, and what is wrong with those that it does not have."""
    try:
        return _proven(splice, source, changes.values()).text, {}
    except (NotAsMeant, Refusal):
        pass  # one by one, to see which it is
    made: list[Change] = []
    result, refused = source, dict[int, Drift]()
    for number, change in changes.items():
        try:
            result = _proven(splice, source, (*made, change))
            made.append(change)
        except Refusal as refusal:
            refused[number] = refusal.drift
        except Overlap:
            expected, found = "a place that no other edit changes", "one that another edit changes, too"
            refused[number] = Refusal(expected, found, change.lines[0], advice=_AFTER).drift
        except NotAsMeant as error:
            expected, found = OTHERWISE
            refused[number] = Refusal(expected, f"{found}: {error}", change.lines[0]).drift
    return result.text, refused


_AFTER = "leave one of the patches out; in a patch of your own, `after` gives the later edit what the earlier one made"


def _proven(splice: Any, source: Any, changes: Iterable[Change]) -> Any:
    """Return the source with changes. NotAsMeant, Overlap, Refusal: see the language, and the edits."""
    every = list(changes)
    result = splice(source, [cut for change in every for cut in change.cuts])
    for change in every:
        if change.prove:
            change.prove(result)
    return result
