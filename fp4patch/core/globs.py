"""Globs over the paths of files in a tree."""

import re
from functools import lru_cache


@lru_cache(maxsize=256)
def glob(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return globs as one regular expression for whole paths: ``**`` is any number of directories, ``*`` no slash."""
    return re.compile("|".join(_expression(pattern) for pattern in patterns), re.DOTALL)


def _expression(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]*\])", pattern)
    known = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(part) or (part if part.startswith("[") else re.escape(part)) for part in parts)
