"""Common steps of the replacing edits: the exact number of sites, or text that retires the edit, and never both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fp4patch.core.outcome import NothingToDo
from fp4patch.edits.kinds import ReplaceCommand, ReplaceExpression, ReplaceTokens
from fp4patch.edits.refusal import Refusal

ADDED = """the source has the change of this patch: take it as upstream released it, or leave the patch out (if \
fp4patch made it, its .fp4patch folder is gone: `git clean -x` takes that away)"""


def settle(
    edit: ReplaceTokens | ReplaceExpression | ReplaceCommand,
    sites: Sequence[int],
    signs: Callable[[str], Sequence[int]],
    nearest: Callable[[], tuple[int | None, str]] = lambda: (None, ""),
) -> NothingToDo | None:
    """Return None if the number of sites is right; Refusal if it is wrong, or if there are signs too.

    ``sites`` are lines, ``signs`` gives the lines of a sign, ``nearest`` the line and the words for what comes close.
    """
    for rule in edit.retired:
        if there := signs(rule.tokens):
            if sites:
                raise Refusal(f"either `{edit.find}` or `{rule.tokens}`", "both", there[0])
            return NothingToDo(rule.state, rule.because, rule.since)
    if not sites and edit.replace and (made := signs(edit.replace)):
        raise Refusal(f"{edit.count} of `{edit.find}`", f"`{edit.replace}` in its place", made[0], advice=ADDED)
    if len(sites) != edit.count:
        line, near = (sites[-1], "") if sites else nearest()
        where = getattr(edit, "within", "")
        raise Refusal(f"{edit.count} of `{edit.find}`{f' in `{where}`' if where else ''}", f"{len(sites)}", line, near)
    return None
