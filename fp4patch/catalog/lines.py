"""Line numbers of the keys of a TOML file, for the errors in it; tomllib gives no positions."""

import re
import tomllib
from bisect import bisect_left
from itertools import accumulate
from typing import Any


def line_of(text: str, key: str) -> int | None:
    """Return the line on which ``edits[0].find`` begins, or the nearest table or list around it that exists."""
    path: list[Any] = [int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", key)]
    begins = list(accumulate(text.splitlines(keepends=True), initial=""))
    whole = tomllib.loads(text)
    for at in range(len(path) - 1, 1, -1):  # a table of a group has the keys of the group
        if path[at] == path[at - 2] and not _has(whole, path) and _has(whole, of_group := path[:at] + path[at + 2 :]):
            path = of_group
    while path and not _has(whole, path):
        path.pop()
    # The first of the lines that must be complete before the text is TOML with that key.
    return bisect_left(range(len(begins)), True, key=lambda end: _has(_parsed(begins[end:]), path)) if path else None


def _parsed(begins: list[str]) -> dict[str, Any]:
    """Return the shortest of these texts that is TOML, also if only the ends of lists are missing."""
    for begin in begins:
        for ends in ("", "]", "]]"):
            try:
                return tomllib.loads(begin + ends)
            except tomllib.TOMLDecodeError:
                continue
    raise AssertionError("the whole text is TOML")


def _has(value: Any, path: list[Any]) -> bool:
    for key in path:
        if not (key in value if isinstance(value, dict) else isinstance(value, list) and key in range(len(value))):
            return False
        value = value[key]
    return True
