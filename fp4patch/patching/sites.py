"""What the edits that replace something share: so many sites, or a sign that retires the edit, and never both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fp4patch.model import Drift, NothingToDo, ReplaceCommand, ReplaceExpression, ReplaceTokens

UNKNOWN_SHAPE = "the patch does not know this shape of the source; `fp4patch show` names the releases it was tried on"

ADDED = "somebody made the change of this patch: take the tree as upstream released it, or leave the patch out"


class Refused(Exception):  # noqa: N818 - it carries the refusal out of nested calls; each edit returns the value
    """An edit refuses, and why."""

    def __init__(
        self, expected: str, found: str, line: int | None = None, nearest: str = "", advice: str = UNKNOWN_SHAPE
    ) -> None:
        super().__init__(expected)
        self.drift = Drift(expected, found, line, nearest, advice)


def settle(
    edit: ReplaceTokens | ReplaceExpression | ReplaceCommand,
    sites: Sequence[int],
    signs: Callable[[str], Sequence[int]],
    nearest: Callable[[], tuple[int | None, str]] = lambda: (None, ""),
) -> NothingToDo | None:
    """None if the sites are as many as they must be; Refused if they are not, or stand beside a sign.

    ``sites`` are lines, ``signs`` gives the lines of a sign, ``nearest`` the line and the words for what comes close.
    """
    for rule in edit.retired:
        if there := signs(rule.tokens):
            if sites:
                raise Refused(f"either `{edit.find}` or `{rule.tokens}`", "both", there[0])
            return NothingToDo(rule.state, rule.because, rule.since)
    if len(sites) != edit.count:
        line, near = (sites[-1], "") if sites else nearest()
        where = getattr(edit, "within", "")
        raise Refused(f"{edit.count} of `{edit.find}`{f' in `{where}`' if where else ''}", f"{len(sites)}", line, near)
    return None
