"""Reads a TOML file as a value of the model, or says by file and key what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from fp4patch.model.edit import Edit
from fp4patch.model.features import FeatureGroup, ToolkitWheels
from fp4patch.model.patch import Patch
from fp4patch.model.problem import Problem
from fp4patch.model.target import Target
from fp4patch.model.variant import Variant

T = TypeVar("T", Patch, Target, Variant, FeatureGroup, ToolkitWheels)

OPS = {kind.__name__: str(kind.op) for kind in get_args(Edit)}
"""Each kind of edit, and what names it in TOML."""

SET_BY_LOADER: dict[type, set[str]] = {Patch: {"directory"}}


def read(kind: type[T], path: Path, root: Path, problems: list[Problem]) -> T | None:
    """One file as a value, or its problems added to the list."""
    where = str(path.relative_to(root))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(Problem("TOML", str(error), file=where))
        return None
    for key in SET_BY_LOADER.get(kind, set()) & data.keys():
        problems.append(Problem("no such key: the loader sets it", f"{key} = {data[key]!r}", file=where))
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        unknown = _unknown_ops(data)
        problems += [
            Problem(f"an op: {', '.join(OPS.values())}", repr(op), file=where, nearest=key) for key, op in unknown
        ]
        problems += [
            Problem(found["msg"], _found(found["input"]), file=where, nearest=_key(found["loc"]))
            for found in error.errors(include_url=False)
            if _is_of_its_op(found["loc"], data)
        ]
        return None


def _unknown_ops(data: dict[str, Any]) -> list[tuple[str, object]]:
    edits = data.get("edits")
    ops = [(f"edits[{at}].op", edit.get("op")) for at, edit in enumerate(edits if isinstance(edits, list) else ())]
    return [(key, op) for key, op in ops if op not in OPS.values()]


def _is_of_its_op(location: tuple[int | str, ...], data: dict[str, Any]) -> bool:
    """Whether an error is about the kind of edit that the data names: pydantic tries and reports every kind."""
    if location[0] != "edits" or len(location) < 3:
        return True
    return bool(OPS.get(str(location[2])) == data["edits"][location[1]].get("op"))


def _key(location: tuple[int | str, ...]) -> str:
    """``edits[0].count`` for ("edits", 0, "drop-operand", "count"): the union's own tags are left out."""
    text = ""
    for at, part in enumerate(location):
        if isinstance(part, int):
            text += f"[{part}]"
        elif at and isinstance(location[at - 1], int) and location[0] == "edits" and at == 2:
            continue
        else:
            text += f".{part}" if text else part
    return text


def _found(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
