"""The cases of a patch: excerpts of upstream's source in ``cases.diff``, and what the patch makes of each."""

import re
from dataclasses import dataclass
from functools import cache

from fp4patch.catalog.manifest import data_root


@dataclass(frozen=True)
class Case:
    """One excerpt. ``before`` and ``after`` differ if its state is ``edited``."""

    name: str
    state: str
    before: str
    after: str


@cache
def cases(patch: str) -> dict[str, Case]:
    """Return the cases of a patch by name: ``cases("mlx/family-guard")["conversion.cuh"]``.

    A case begins with ``@@ NAME @@``, or ``@@ NAME: STATE @@`` if the patch leaves it alone. Its lines are those of a
    diff: a blank before one of both sides, ``-`` and ``+`` before the others.
    """
    found: dict[str, Case] = {}
    text = (data_root() / "patches" / patch / "cases.diff").read_text(encoding="utf-8")
    for part in re.split(r"^@@ ", text, flags=re.MULTILINE)[1:]:
        head, *lines = part.removesuffix("\n").split("\n")
        name, _, state = head.removesuffix(" @@").partition(": ")
        assert name not in found, f"{patch}: {name} twice"
        assert all(line[:1] in ("", " ", "-", "+") for line in lines), f"{patch}: {name}: a line without its mark"
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[:1] != other) for other in "+-")
        assert (before == after) == bool(state), f"{patch}: {name}: lines change if it has no state, and only then"
        found[name] = Case(name, state or "edited", before, after)
    return found
