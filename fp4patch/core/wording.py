"""Lists and counts in words, the name that a person may have meant, and the command that adds an extra."""

import shlex
import sys
from collections.abc import Iterable


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 check``, ``2 checks``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """Return ``a, b and c``."""
    *head, end = [text for text in map(str, items) if text] or [""]
    return f"{', '.join(head)} {last} {end}" if head else end


def shortened(items: Iterable[str]) -> str:
    """Return the first three of some names, each once, and how many more there are: ``a, b, c and 5 more``."""
    every = list(dict.fromkeys(items))
    return listed(every if len(every) <= 3 else [*every[:3], f"{len(every) - 3} more"])


def joined(*parts: str, by: str = " ") -> str:
    """Return the parts that are not empty, joined."""
    return by.join(filter(None, parts))


def suggested(word: str, names: Iterable[str], otherwise: str) -> str:
    """Return the advice about a name that does not exist, after the nearest one that does: ``did you mean x? …``."""
    from difflib import get_close_matches  # noqa: PLC0415 - few errors need it

    near = get_close_matches(word, list(names), n=1, cutoff=0.7)
    return f"did you mean {near[0]}? {otherwise}" if near else otherwise


def install(extra: str) -> str:
    """Return the command that adds an extra of fp4patch to the Python that runs it, also where pipx installed it."""
    return f"{shlex.quote(sys.executable)} -m pip install 'fp4patch[{extra}]'"
