"""Lists and counts in words."""

from collections.abc import Iterable


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 check``, ``2 checks``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """Return ``a, b and c``."""
    *head, end = [text for text in map(str, items) if text] or [""]
    return f"{', '.join(head)} {last} {end}" if head else end


def joined(*parts: str, by: str = " ") -> str:
    """Return the parts that are not empty, joined."""
    return by.join(filter(None, parts))
