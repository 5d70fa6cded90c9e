"""Write schemas/*.json, which git ignores, from the dataclasses of the TOML files.

    python -m tools.regenerate manifests

An editor with a TOML language server (taplo) completes and checks a file by the schema that its first line names. The
site has a page of the same keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.table import Manifest
from fp4patch.edits import Edit, Retired
from fp4patch.edits.operation import Operation
from fp4patch.edits.replace import Condition

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "schemas"
KINDS: dict[str, type] = {
    "patch": Patch,
    "target": Target,
    "variant": Variant,
}
SET_BY_LOADER = {"Patch": "directory", "Probe": "patch"}
OWN_OF_VARIANT = ("name", "title", "summary")
"""Keys that a variant does not take from those that it extends."""
Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


PLACEHOLDER, EACH, STRINGS = _ref("placeholder"), _ref("each"), _ref("strings")
SHARED: Mapping[str, Schema] = {
    "placeholder": {"type": "string", "pattern": r"\{[A-Za-z]"},
    "each": {
        "description": "Values of names: the table stands for one for each value, with {NAME} replaced in its strings.",
        "type": "object",
        "additionalProperties": {"type": "array", "minItems": 1},
    },
    "strings": {
        "description": "One string for each value of a name.",
        "type": "object",
        "properties": {"each": EACH, "text": {"type": "string"}},
        "required": ["each", "text"],
        "additionalProperties": False,
    },
}


def main(_: list[str]) -> None:
    """Write the schemas."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(text(schema), encoding="utf-8")


def text(schema: Schema) -> str:
    """Return a schema as JSON, a line for each table."""
    tables = ",\n".join(f"  {_json(name)}: {_json(table)}" for name, table in schema["$defs"].items())
    rest = "".join(f" {_json(key)}: {_json(value)},\n" for key, value in schema.items() if key != "$defs")
    return f'{{\n{rest} "$defs": {{\n{tables}\n }}\n}}\n'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of TOML file, by name; ``variant-part`` is that of what variants extend."""
    made = {name: _Families(kind).schema for name, kind in KINDS.items()}
    variant = made["variant"]
    whole, part = variant["$defs"]["Variant"], variant["$defs"]["VariantPart"]
    extends = {
        "description": "Files below variants/, without .toml, whose keys this variant has where it sets no others.",
        "type": "array",
        "items": {"type": "string"},
    }
    part["properties"] = {"extends": extends} | part["properties"]
    needed = {"required": ["extends", *OWN_OF_VARIANT]}
    extending = {"allOf": [_ref("VariantPart"), needed]}
    made["variant"] = variant | _chosen([({"required": ["extends"]}, extending)], _ref("Variant"))
    del made["variant"]["$ref"]
    shared = {key: value for key, value in part["properties"].items() if key not in OWN_OF_VARIANT}
    made["variant-part"] = {
        "$schema": variant["$schema"],
        **(whole | {"properties": shared, "required": [], "title": "VariantPart"}),
        "$defs": {name: one for name, one in variant["$defs"].items() if name not in ("Variant", "VariantPart")},
    }
    return made


class _Families:
    """The schema of one kind of file, in which a table can be a group or a family (fp4patch/catalog/families.py).

    ``$defs`` has each table twice: complete, and as a part of a group, which leaves keys out and has placeholders.
    """

    def __init__(self, kind: type) -> None:
        found: Schema = _plain(_adapter(kind).json_schema())
        tables: dict[str, Schema] = found.pop("$defs", {}) | {kind.__name__: found}
        for name, table in tables.items():
            _tidy(table, SET_BY_LOADER.get(name, ""))
        for edit in get_args(Edit) if kind is Patch else ():  # a class has the docstrings of its own keys alone
            for base in edit.__mro__[1:]:
                shared = _adapter(base).json_schema().get("properties", {}) if issubclass(base, Operation) else {}
                for key in (key for key, table in shared.items() if "description" in table):
                    tables[edit.__name__]["properties"][key].setdefault("description", shared[key]["description"])
        self._lists = {name: key for table in tables.values() for key, name in _lists(table)}
        self._ops = {
            name: op for name, one in tables.items() if (op := one.get("properties", {}).get("op", {}).get("const"))
        }
        self._with_keys = {name for name, table in tables.items() if "properties" in table}
        made: dict[str, Schema] = {}
        for name, table in sorted(tables.items()):
            made[name] = self._table(name, table, part=False)
            if name in self._with_keys:
                made[f"{name}Part"] = self._table(name, table, part=True)
        dialect = "https://json-schema.org/draft/2020-12/schema"
        self.schema: Schema = {"$schema": dialect, **_ref(kind.__name__), "$defs": {**made, **SHARED}}

    def _table(self, name: str, table: Schema, *, part: bool) -> Schema:
        if name not in self._with_keys:
            return table
        properties = {key: self._value(value, part=part) for key, value in table["properties"].items()}
        if part:
            if key := self._lists.get(name):
                below = {"type": "array", "items": self._form(self._beside(key), "Part", name)}
                properties |= {"each": EACH, key: {"description": "Tables with these keys as defaults."} | below}
            return table | {"properties": properties, "required": []}
        return table | {"properties": properties, "required": [*table.get("required", ()), *({"op"} & {*properties})]}

    def _beside(self, key: str) -> list[str]:
        return [name for name, of in self._lists.items() if of == key]

    def _value(self, value: Schema, *, part: bool) -> Schema:
        """Return the schema of a value; in a part of a group it can be a placeholder."""
        about = {name: value[name] for name in ("description", "default") if name in value}
        plain = {name: below for name, below in value.items() if name not in about}
        if plain.get("type") == "array" and "items" in plain:
            plain |= {"items": self._items(plain["items"], part=part)}
        elif isinstance(plain.get("additionalProperties"), dict):
            plain |= {"additionalProperties": self._value(plain["additionalProperties"], part=part)}
        elif "anyOf" in plain:
            plain = _any([self._value(one, part=part) for one in plain["anyOf"]])
        elif part and "$ref" in plain and (name := _names(plain)[0]) in self._with_keys:
            plain = _ref(f"{name}Part")
        return about | (_chosen([(PLACEHOLDER, {})], plain) if part and plain != {"type": "string"} else plain)

    def _items(self, items: Schema, *, part: bool) -> Schema:
        """Return the schema of an item of a list."""
        names = _names(items)
        if not names:
            return _chosen([({"type": "object"}, STRINGS)], self._value(items, part=part))
        if part:
            return self._form(names, "Part")
        group = _any([{"required": ["each"]}, {"required": [self._lists[names[0]]]}])
        return _chosen([(group, self._form(names, "Part"))], self._form(names))

    def _form(self, names: Sequence[str], suffix: str = "", group: str = "") -> Schema:
        """Return the schema of a table that is one of these; of several, ``op`` selects it.

        A part without ``op`` has that of its group, if that is known. The ``op`` of a part can be a placeholder.
        """
        if len(names) == 1:
            return _ref(names[0] + suffix)
        ops = {self._ops[name]: _ref(name + suffix) for name in names}
        cases = [({"required": ["op"], "properties": {"op": {"const": op}}}, form) for op, form in ops.items()]
        if group:
            cases.append(({"not": {"required": ["op"]}}, _ref(group + suffix)))
        if suffix:
            cases.append(({"properties": {"op": PLACEHOLDER}}, _any(list(ops.values()))))
        return _chosen(cases, {"required": ["op"], "properties": {"op": {"enum": [*ops]}}})


def _lists(table: Schema) -> list[tuple[str, str]]:
    """Return the keys of a table that hold lists of tables, each with the name of the tables."""
    lists = {key: value["items"] for key, value in table.get("properties", {}).items() if "items" in value}
    return [(key, name) for key, items in lists.items() for name in _names(items)]


def _names(items: Schema) -> list[str]:
    """Return the names of the tables that an item can be."""
    return [one["$ref"].rpartition("/")[2] for one in items.get("anyOf", [items]) if "$ref" in one]


def _any(forms: list[Schema]) -> Schema:
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _chosen(cases: Sequence[tuple[Schema, Schema]], otherwise: Schema) -> Schema:
    """Return the schema of the first case whose condition holds, so that an error is that of one form.

    ``anyOf`` holds for every value: taplo completes keys by it, and does not look behind ``if``.
    """
    made = otherwise
    for condition, form in reversed(cases):
        made = {"if": condition, "then": form, "else": made}
    return made | {"anyOf": [{}, *(form for _, form in cases if form), otherwise]}


def _plain(schema: Any) -> Any:
    """Return a schema in which a choice of tables is ``anyOf``, also one that pydantic decides by a key."""
    if isinstance(schema, dict):
        kept = {key: _plain(value) for key, value in schema.items() if key != "discriminator"}
        return {"anyOf" if key == "oneOf" else key: value for key, value in kept.items()}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def _tidy(table: Schema, without: str) -> None:
    """Remove the titles that only repeat keys, and the key that the loader sets."""
    table.get("properties", {}).pop(without, None)
    for value in table.get("properties", {}).values():
        value.pop("title", None)


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Return the validator of a kind of file, which describes keys by their docstrings."""
    usual = Manifest.__pydantic_config__
    Manifest.__pydantic_config__ = {**usual, "use_attribute_docstrings": True}
    try:
        return TypeAdapter(kind)
    finally:
        Manifest.__pydantic_config__ = usual


def keys_of_edits() -> str:
    """Return a table of all keys of each operation, and of the tables in them."""
    tables = _Families(Patch).schema["$defs"]
    return (
        "\n".join(_keys(f"`{kind.op}`", tables[kind.__name__]) for kind in get_args(Edit))
        + "\n"
        + _keys("`[[edits.retired]]`, of any operation that has `retired`", tables[Retired.__name__])
        + "\n"
        + _keys("`condition` of `replace`", tables[Condition.__name__])
    )


def _keys(title: str, table: Schema) -> str:
    rows = [
        f"| `{key}` | {_kind(value)}{', required' if key in table['required'] else ''} | {_text(value)} |"
        for key, value in table["properties"].items()
        if key != "op"
    ]
    about = _text(table, " ")
    return "\n".join([f"**{title}.** {about}", "", "| key | value | meaning |", "|---|---|---|", *rows, ""])


def _text(schema: Schema, paragraphs: str = " ") -> str:
    text = schema.get("description", "").replace("``", "`").replace("|", "\\|")
    return re.sub(r"\s*\n\s*", paragraphs, text)


def _kind(value: Schema) -> str:
    """Return the kind of a value in a word."""
    if "$ref" in value or "anyOf" in value:  # the second form of an optional table is null
        return "a table"
    if value.get("type") == "array":
        return "a list of strings" if value["items"]["then"] == STRINGS else "tables"
    if choices := value.get("enum"):
        return " or ".join(f'`"{choice}"`' for choice in choices)
    return {"string": "a string", "integer": "a number", "boolean": "`true` or `false`"}[value["type"]]
