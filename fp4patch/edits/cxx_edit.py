"""Common steps of the C++ edits: read the text, retire if the source shows it, read the result again.

The tokens and directives of the result must be the old ones with exactly the intended tokens gone or added.
"""

from collections.abc import Callable, Sequence

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.edits.cxx import Cut, Source, lex, spliced, words
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Retired
from fp4patch.edits.refusal import Refusal


def edit_cxx(text: str, retired: Sequence[Retired], work: Callable[[Source], Outcome]) -> Outcome:
    """Read the text, look for the signs that retire the edit, then do the work; refusals become values."""
    try:
        source = lex(text)
        _ = source.conditionals  # they must pair before anything else is checked
        for sign in retired:
            if source.find(words(sign.tokens)):
                return NothingToDo(sign.state, sign.because, sign.since)
        return work(source)
    except LexError as error:
        return unreadable(error)
    except Refusal as refusal:
        return refusal.drift


def unreadable(error: LexError) -> Drift:
    """Return the drift of an edit on a text that cannot be read as C++ to its end."""
    whole = "is this file whole? fetch it again"
    return Drift("C++ that can be read to its end", error.message, error.line, help=whole)


def rewritten(source: Source, cuts: Sequence[Cut], lines: tuple[int, ...], notes: tuple[str, ...] = ()) -> Rewritten:
    """Return the edit's result. Refusal: its tokens are not the old ones with exactly the intended ones replaced."""
    result = spliced(source, cuts)
    if result is None or (source.pairs and not result.pairs):
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(result.text, lines, notes)


def newline_of(text: str) -> str:
    """Return the newline that most of the text's lines end with."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"
