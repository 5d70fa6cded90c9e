"""Reading of TOML files as values of the model by pydantic, with problems by file and key."""

import os
import stat
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fp4patch.catalog.families import Table, expanded, extended, with_patterns
from fp4patch.core.results import Problem

T = TypeVar("T")
Location = tuple[int | str, ...]
"""Keys of a value in expanded tables, from the outermost one on."""


class Reader:
    """Reader of the files below ``root``, which collects the problems of all of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self._expanded = cache(_expanded)

    def wrong(self, path: Path, location: Location, expected: str, found: str, help_: str = "") -> None:
        """Add a problem of a value in the expanded tables of a file."""
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
        file = str(path.relative_to(self.root))
        self.problems.append(Problem(expected, found, help=help_, file=file, nearest=key))

    def read(self, kind: type[T], path: Path, **place: str) -> T | None:
        """Return a file's tables as a value; ``place`` has the keys that its place states. None: it has problems."""
        table = self.table(path)
        if table is None:
            return None
        try:
            value: T = _adapter(kind).validate_python(with_patterns(table) | place, context=path.parent)
        except ValidationError as error:
            details = error.errors(include_url=False)
            for detail in details[:_MOST]:
                expected = _EXPECTED.get(
                    detail["type"], detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
                )
                found = "none" if detail["type"] == "missing" else repr(detail["input"])
                self.wrong(path, detail["loc"], expected, found if len(found) <= 80 else f"{found[:77]}...")
            if len(details) > _MOST:
                self.wrong(path, (), "no more mistakes than these", f"{len(details) - _MOST:,} more")
            return None
        return value

    def table(self, path: Path, extending: tuple[Path, ...] = ()) -> Table | None:
        """Return the tables of a file, expanded, with those of the files that it extends. None: it has problems."""
        try:
            data = self._expanded(path)
        except (OSError, ValueError) as error:  # TOMLDecodeError, UnicodeDecodeError, an integer that is too long
            self.wrong(path, (), "TOML", str(error))
            return None
        except RecursionError:
            self.wrong(path, (), "TOML", "tables or arrays deeper than any program reads them")
            return None
        whole, names = Table(), data.get("extends", ())
        for name in names if isinstance(names, list) else (names,) if names else ():
            base = path.parent / f"{name}.toml"
            table = None if base in (path, *extending) or not base.is_file() else self.table(base, (path, *extending))
            if table is None:
                self.wrong(path, ("extends",), "a valid file, by its path from here without .toml", repr(name))
                return None
            whole = extended(whole, table)
        return extended(whole, {key: value for key, value in data.items() if key != "extends"})


def _expanded(path: Path) -> Table:
    """Return the tables of a file. Several variants extend the same one, which is read once."""
    data: Table = expanded(tomllib.loads(_content(path).decode("utf-8-sig")))
    return data


def _content(path: Path) -> bytes:
    """Return the bytes of a file. ValueError: it is none, or too large; nobody waits for what a pipe has to say."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123 - the flags
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("something that is no regular file")
        content = opened.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"more than {_LARGEST >> 10} KiB, which no file of patches has")
    return content


_LARGEST = 1 << 20
_MOST = 20
"""Mistakes of a file that are told one by one."""
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
"""Returns the validator of such a file. It is made once, which takes longer than to read all files."""

_EXPECTED = {"missing": "a value for this key", "unexpected_keyword_argument": "no key of this name"}
