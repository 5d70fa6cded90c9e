"""Reading of a TOML file as a value of the model, with problems by file and key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from fp4patch.catalog.feature import FeatureGroup, ToolkitWheels
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.problem import Problem
from fp4patch.edits.kinds import Edit

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T", Patch, Target, Variant, FeatureGroup, ToolkitWheels)

OPS: dict[str, str] = {kind.__name__: str(kind.op) for kind in get_args(Edit)}
"""Each kind of edit, and what names it in TOML."""

SET_BY_LOADER: dict[type, set[str]] = {Patch: {"directory"}}


def read(kind: type[T], path: Path, root: Path, problems: list[Problem]) -> T | None:
    """Return one file as a value, or its problems added to the list."""
    where = str(path.relative_to(root))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(Problem("TOML", str(error), file=where))
        return None
    for key in SET_BY_LOADER.get(kind, set()) & data.keys():
        problems.append(Problem("no such key: the loader sets it", f"{key} = {data[key]!r}", file=where))
    problems += [
        Problem(f"an op: {', '.join(OPS.values())}", "none" if op is None else repr(op), file=where, nearest=key)
        for key, op in _unknown_ops(data)
    ]
    try:
        value: T = _adapter(kind).validate_python(data)
        return value
    except ValidationError as error:
        problems += [
            Problem(*_words(found), file=where, nearest=_key(found["loc"]))
            for found in error.errors(include_url=False)
            if _is_of_its_op(found["loc"], data)
        ]
        return None


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Return the validator of such a file. It is made once, which takes longer than to read all files."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


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
    if edit is None:  # not even a table: said once, by the first kind
        return str(location[2]) == next(iter(OPS))
    return OPS.get(str(location[2])) == str(edit.get("op"))


def _key(location: tuple[int | str, ...]) -> str:
    """Return ``edits[0].count`` for ("edits", 0, "drop-operand", "count"): the union's own tags are left out."""
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
    """Expected and found."""
    if error["type"] == "missing":
        return "a value for this key", "none"
    expected = _EXPECTED.get(error["type"], error["msg"].removeprefix("Input should be "))
    return re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", expected), _found(error["input"])


def _found(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
