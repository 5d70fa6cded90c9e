"""Common steps of the CMake edits: read the text, and read the result again.

The commands of the result must be the old ones with exactly the intended arguments changed or commands added.
"""

from collections.abc import Callable, Sequence

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits.cmake import Script, parse
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.refusal import Refusal


def edit_cmake(text: str, otherwise: str, work: Callable[[Script], Outcome | None]) -> Outcome:
    """Read the text and do the work, which returns None if the edit does not apply to this file."""
    try:
        return work(parse(text)) or NothingToDo(State.NOT_NEEDED, otherwise, elsewhere=True)
    except LexError as error:
        return Drift("CMake that can be read to its end", error.message, error.line, help="is this file whole?")
    except Refusal as refusal:
        return refusal.drift


def proven(text: str, meaning: Sequence[object], lines: Sequence[int]) -> Rewritten:
    """Return the result, after reading it again."""
    try:
        sound = parse(text).meaning == list(meaning)
    except LexError:
        sound = False
    if not sound:
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(text, tuple(sorted(set(lines))))
