"""The page of the site with the keys of edits and of what probes execute, from the docstrings of their dataclasses."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import TypeAdapter

from fp4patch.catalog.probe import Argument, Executes, Launches, LaunchSeries, PageCache, Quantizes
from fp4patch.core.table import Manifest
from fp4patch.edits import Edit, Retired
from fp4patch.edits.operation import Condition

Schema = Mapping[str, Any]


def page() -> str:
    """Return a table of all keys of each operation, of each statement that a probe is executed by, and of the tables in
    them."""
    tables = {f"`{kind.op}`": _schema(kind) for kind in get_args(Edit)}
    tables["`[[edits.retired]]`, of any operation that has `retired`"] = _schema(Retired)
    tables["`condition` of `replace` and `add-item`"] = _schema(Condition)
    executed = {
        "`executes` of a probe": Executes,
        "`launches` of a probe": Launches,
        "`quantizes` of a probe": Quantizes,
        "`launch` of `quantizes`": LaunchSeries,
        "`caches` of `quantizes`": PageCache,
        "`arguments` of `launches` and `launch`": Argument,
    }
    return "\n".join(
        (
            "# Keys of the edit operations\n",
            *(_keys(title, table) for title, table in tables.items()),
            "# Keys of what a probe executes\n",
            *(_keys(title, _schema(kind)) for title, kind in executed.items()),
        )
    )


def _schema(kind: type) -> Schema:
    """Return pydantic's description of a table; a class has the docstrings of its own keys alone."""
    schema = _adapter(kind).json_schema()
    for base in kind.__mro__[1:]:
        shared = (
            _adapter(base).json_schema().get("properties", {})
            if issubclass(base, Manifest) and base is not Manifest
            else {}
        )
        for key, value in shared.items():
            schema["properties"][key].setdefault("description", value.get("description", ""))
    return schema


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Return the validator of a table, which describes keys by their docstrings."""
    usual = Manifest.__pydantic_config__
    Manifest.__pydantic_config__ = {**usual, "use_attribute_docstrings": True}
    try:
        return TypeAdapter(kind)
    finally:
        Manifest.__pydantic_config__ = usual


def _keys(title: str, table: Schema) -> str:
    required = table.get("required", ())
    rows = [
        f"| `{key}` | {_kind(value)}{', required' if key in required else ''} | {_text(value)} |"
        for key, value in table["properties"].items()
        if key != "op"
    ]
    return "\n".join([f"**{title}.** {_text(table)}", "", "| key | value | meaning |", "|---|---|---|", *rows, ""])


def _text(schema: Schema) -> str:
    text = re.sub(r":class:`(\w+)`", lambda found: f"`{found[1].lower()}`", schema.get("description", ""))
    return re.sub(r"\s*\n\s*", " ", text.replace("``", "`").replace("|", "\\|"))


def _kind(value: Schema) -> str:
    """Return the kind of a value in a word."""
    if either := value.get("anyOf"):
        return " or ".join(dict.fromkeys(_kind(each) for each in either if each.get("type") != "null"))
    if value.get("type") == "array":
        item = value.get("items", {})
        if item.get("type") == "string":
            return "a list of strings"
        return "tables" if "$ref" in item or item.get("type") == "object" else "a list"
    if choices := value.get("enum"):
        return " or ".join(f'`"{choice}"`' for choice in choices)
    return {"string": "a string", "integer": "a number", "number": "a number", "boolean": "`true` or `false`"}.get(
        value.get("type", ""), "a table"
    )
