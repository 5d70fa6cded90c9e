"""Reading of TOML files as values of the model, with problems by file and key."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from fp4patch.catalog.families import Table, expanded, extended, inherited, places
from fp4patch.catalog.feature import FeatureGroup, ToolkitWheels
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.problem import Problem
from fp4patch.edits import Edit

T = TypeVar("T", Patch, Target, Variant, FeatureGroup, ToolkitWheels)

OPS: dict[str, str] = {kind.__name__: str(kind.op) for kind in get_args(Edit)}
"""Each kind of edit, and what names it in TOML."""

SET_BY_LOADER: dict[type, set[str]] = {Patch: {"directory"}}


_OWN = frozenset({"name", "title", "summary"})
"""Keys that a variant does not take from those that it extends."""


class Reader:
    """Reader of the files below ``root``, which collects the problems of all of them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._problems: list[Problem] = []
        self.extended: set[Path] = set()
        """Files that a variant extends."""
        self._places: dict[str, dict[str, str]] = {}
        """For each file, the places of tables that are written elsewhere than their keys say."""

    @property
    def problems(self) -> list[Problem]:
        """Problems so far, each with its line.

        A key of an expanded table names the place, too, in which the table is written.
        """
        return [self._located(problem) for problem in self._problems]

    def add(self, *problems: Problem) -> None:
        """Add problems that a check beyond the types has found."""
        self._problems += problems

    def read(self, kind: type[T], path: Path) -> T | None:
        """Return one file as a value. None: it has problems."""
        data = self.table(kind, path)
        if data is None:
            return None
        where = str(path.relative_to(self._root))
        self._places.setdefault(where, {}).update(places(data))
        return self._value(kind, data, where)

    def table(self, kind: type[T], path: Path) -> Table | None:
        """Return the tables of one file without groups and families, and with all that a variant extends."""
        return self._variant(path) if kind is Variant else self._table(path)

    def _table(self, path: Path, prefix: str = "") -> Table | None:
        """Return the tables of one file, expanded."""
        where, before = str(path.relative_to(self._root)), len(self._problems)
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.add(Problem("TOML", str(error), file=where))
            return None
        data = expanded(data, where, self._problems, prefix)
        return data if len(self._problems) == before else None

    def _variant(self, path: Path, extending: tuple[Path, ...] = ()) -> Table | None:
        """Return the tables of a variant's file with those of the files that it extends."""
        where = str(path.relative_to(self._root))
        data = self._table(path, f"{where}: " if extending else "")
        if data is None or "extends" not in data:
            return data
        names, whole = data.pop("extends"), Table()
        for name in names if isinstance(names, list) else (names,):
            base = self._root / "variants" / f"{name}.toml"
            if ".." in base.parts or not base.is_file() or base in (path, *extending):
                wanted = "another file below variants/, without its .toml"
                self.add(Problem(wanted, repr(name), file=where, nearest="extends"))
                return None
            self.extended.add(base)
            found = self._variant(base, (path, *extending))
            if found is None:
                return None
            taken = {key: value for key, value in found.items() if key not in _OWN}
            file = str(base.relative_to(self._root))
            for key in inherited(taken, data):
                self._places.setdefault(where, {})[key] = self._places.get(file, {}).get(key, file)
            whole = extended(whole, taken)
        return extended(whole, data)

    def _value(self, kind: type[T], data: Table, where: str) -> T | None:
        """Return expanded tables as a value of the model."""
        for key in SET_BY_LOADER.get(kind, set()) & data.keys():
            self.add(Problem("no such key: the loader sets it", f"{key} = {data[key]!r}", file=where))
        for key, op in _unknown_ops(data):
            known = f"an op: {', '.join(OPS.values())}"
            self.add(Problem(known, "none" if op is None else repr(op), file=where, nearest=key))
        try:
            value: T = _adapter(kind).validate_python(data)
            return value
        except ValidationError as error:
            for found in error.errors(include_url=False):
                if _is_of_its_op(found["loc"], data):
                    self.add(Problem(*_words(found), file=where, nearest=_key(found["loc"])))
            return None

    def _located(self, problem: Problem) -> Problem:
        key, there = problem.nearest, self._places.get(problem.file, {})
        tables = [table for table in there if re.match(re.escape(table) + r"(?![^.\[])", key)]
        shown, written = key, key
        if tables:
            table = max(tables, key=len)
            shown, written = f"{key} ({there[table]})", there[table].partition(" with ")[0] + key[len(table) :]
        in_part = ": " in written or written.endswith(".toml")  # of a file that a variant extends
        return replace(problem, nearest=shown, line=None if in_part else self._line(problem.file, written))

    def _line(self, file: str, key: str) -> int | None:
        try:
            return line_of((self._root / file).read_text(encoding="utf-8-sig"), key)
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
            return None  # a directory, or a file that is no TOML: the problem is that


_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
"""Returns the validator of such a file. It is made once, which takes longer than to read all files."""


def _tables(data: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the tables of the list of edits, without entries of another type."""
    edits = data.get("edits")
    return {at: edit for at, edit in enumerate(edits if isinstance(edits, list) else ()) if isinstance(edit, dict)}


def _unknown_ops(data: dict[str, Any]) -> list[tuple[str, object]]:
    ops = [(f"edits[{at}].op", edit.get("op")) for at, edit in _tables(data).items()]
    return [(key, op) for key, op in ops if op not in OPS.values()]


def _is_of_its_op(location: tuple[int | str, ...], data: dict[str, Any]) -> bool:
    """Return whether an error is about the kind of edit that the data names: pydantic tries every kind."""
    if location[0] != "edits" or len(location) < 3:
        return True
    edit = _tables(data).get(int(location[1]))
    if edit is None:  # not even a table: reported once, by the first kind
        return str(location[2]) == next(iter(OPS))
    return OPS.get(str(location[2])) == str(edit.get("op"))


def _key(location: tuple[int | str, ...]) -> str:
    """Return ``edits[0].count`` for ("edits", 0, "replace", "count"): the union's own tags are left out."""
    text = ""
    for at, part in enumerate(location):
        if isinstance(part, int):
            text += f"[{part}]"
        elif part == "[key]" or (at == 2 and location[0] == "edits"):
            continue
        else:
            text += f".{part}" if text else part
    return text


_EXPECTED = {
    "unexpected_keyword_argument": "no key of this name",
    "tuple_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "string_type": "a string",
}
"""Meaning of each kind of pydantic error for the author of the file."""


def _words(error: ErrorDetails) -> tuple[str, str]:
    if error["type"] == "missing":
        return "a value for this key", "none"
    expected = _EXPECTED.get(error["type"], error["msg"].removeprefix("Input should be "))
    return re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", expected), _found(error["input"])


def _found(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


# --- lines -----------------------------------------------------------------------------------------------------------


def line_of(text: str, key: str) -> int | None:
    """Return the line on which ``edits[0].find`` begins, or the nearest table or list around it that exists.

    tomllib gives no positions.
    """
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
