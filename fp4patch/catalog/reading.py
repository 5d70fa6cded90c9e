"""Reading of TOML files as values of the model by pydantic, with problems by file and key."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from fp4patch.catalog.families import Placed, Table, expanded, extended, rules
from fp4patch.core.results import Problem

T = TypeVar("T")
Location = tuple[int | str, ...]
"""Keys of a value in expanded tables, from the outermost one on."""

_OWN = frozenset({"name", "title", "summary"})
"""Keys that a variant does not take from those that it extends."""


class Reader:
    """Reader of the files below ``root``, which collects the problems of all of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tables: dict[str, Table] = {}
        """Expanded tables of each file."""
        self._origins: dict[str, dict[str, str]] = {}
        """The files that a variant's keys are from, if it has them from one that it extends."""
        self._problems: dict[tuple[str, ...], Problem] = {}
        self.extended: set[Path] = set()
        """Files that a variant extends."""

    @property
    def problems(self) -> list[Problem]:
        """Problems so far, each once: a table that stands for many has one as often as it says it."""
        return list(self._problems.values())

    def name(self, path: Path) -> str:
        """Return the name of a file in messages."""
        return str(path.relative_to(self.root))

    def wrong(self, file: str, location: Location, expected: str, found: str, help_: str = "") -> None:
        """Add a problem of a value in the expanded tables of a file, which is shown where it is written."""
        value: Any = self._tables.get(file)
        where, key = self._origins.get(file, {}).get(str(location[0]) if location else "", file), ""
        for part in location:
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
            value = _item(value, part)
            if isinstance(value, Placed):
                where, key = value.file or where, value.key
        written = re.sub(r" \([^)]*\)", "", key)  # without the values of a family
        problem = Problem(expected, found, help_, file=where, nearest=key)
        self._problems.setdefault((where, written, expected, found), problem)

    def read(self, kind: type[T], path: Path, table: Table | None, names: Mapping[str, str]) -> T | None:
        """Return a file's tables as a value. None: it has problems.

        ``names`` are those of the file and its directories, which the keys have, written or not.
        """
        if table is None:
            return None
        file = self.name(path)
        self._tables[file] = table
        for key, name in names.items():
            table.setdefault(key, name)
        try:
            value: T = _adapter(kind).validate_python(table, context=path.parent)
        except ValidationError as error:
            slips: dict[Location, tuple[str, str]] = {}
            for detail in error.errors(include_url=False):
                location, expected = _location(detail, table), _expected(detail)
                others = f"{slips[location][0]} or " if location in slips else ""
                slips[location] = (others + expected, _found(detail))
            for location, slip in slips.items():
                self.wrong(file, location, *slip)
            return None
        for key, name in names.items():
            if table[key] != name:
                self.wrong(file, (key,), f"the name of its directory or file, {name!r}", repr(table[key]))
        return value

    def table(self, path: Path) -> Table | None:
        """Return the tables of one file, expanded. None: it has problems."""
        file, before = self.name(path), len(self._problems)
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.wrong(file, (), "TOML", str(error))
            return None
        table: Table = expanded(data, lambda key, *problem: self.wrong(file, (key,), *problem))
        return table if len(self._problems) == before else None

    def variant(self, path: Path, extending: tuple[Path, ...] = ()) -> Table | None:
        """Return the tables of a variant's file with those of the files that it extends."""
        file, data = self.name(path), self.table(path)
        if data is None:
            return None
        whole, origins = Table(), self._origins.setdefault(file, {})
        names = data.pop("extends", ())
        for name in names if isinstance(names, list | tuple) else (names,):
            base = self.root / "variants" / f"{name}.toml"
            if ".." in base.parts or not base.is_file() or base in (path, *extending):
                self.wrong(file, ("extends",), "another file below variants/, without its .toml", repr(name))
                return None
            self.extended.add(base)
            table = self.variant(base, (path, *extending))
            if table is None:
                return None
            taken = {key: value for key, value in table.items() if key not in _OWN}
            inherited = self._origins[self.name(base)]
            origins |= {key: inherited.get(key, self.name(base)) for key in taken if key not in data}
            for rule in rules(taken):
                rule.file = rule.file or self.name(base)
            whole = extended(whole, taken)
        return extended(whole, data)


_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
"""Returns the validator of such a file. It is made once, which takes longer than to read all files."""

_EXPECTED = {
    "missing": "a value for this key",
    "unexpected_keyword_argument": "no key of this name",
    "tuple_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "model_attributes_type": "a table",
    "string_type": "a string",
    "union_tag_not_found": "an operation",
}
"""Meaning of each kind of pydantic error for the author of the file."""


def _expected(error: ErrorDetails) -> str:
    if error["type"] == "union_tag_invalid":
        return f"one of {error['ctx']['expected_tags']}"
    expected = _EXPECTED.get(error["type"], error["msg"].removeprefix("Input should be "))
    return re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", expected)


def _location(error: ErrorDetails, table: Table) -> Location:
    """Return the keys of an error, without pydantic's names of the forms that a value can have."""
    kept: Location = ()
    value: Any = table
    for number, part in enumerate(error["loc"]):
        is_key = isinstance(value, dict) and (part in value or number == len(error["loc"]) - 1)
        is_form = is_key and part == value.get("op") and isinstance(error["loc"][number - 1], int)
        if isinstance(part, int) or (is_key and not is_form and part != "[key]"):
            kept, value = (*kept, part), _item(value, part)
    return (*kept, "op") if error["type"].startswith("union_tag") else kept


def _item(value: Any, part: int | str) -> Any:
    """Return an item of a table or a list; None if it is not there."""
    try:
        return value[part]
    except (LookupError, TypeError):
        return None


def _found(error: ErrorDetails) -> str:
    """Return the value that an error is about, as a message shows it."""
    value = "none" if error["type"] in ("missing", "union_tag_not_found") else repr(error["input"])
    if error["type"] == "union_tag_invalid":
        value = repr(error["ctx"]["tag"])
    return value if len(value) <= 80 else f"{value[:77]}..."
