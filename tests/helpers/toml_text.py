"""TOML text of values: tables of a manifest, as a person would write them."""

import json
import re
from collections.abc import Mapping


def document(data: Mapping[str, object]) -> str:
    """Return a TOML document: the plain keys, and then each list of tables, a table after the other."""
    lists = {key: value for key, value in data.items() if isinstance(value, list) and value and _are_tables(value)}
    plain = "".join(f"{_key(key)} = {_text(value)}\n" for key, value in data.items() if key not in lists)
    return plain + "".join(f"\n[[{_key(key)}]]\n{table(entry)}" for key, value in lists.items() for entry in value)


def table(entry: Mapping[str, object]) -> str:
    """Return the lines of one table, a key in each."""
    return "".join(f"{_key(key)} = {_text(value)}\n" for key, value in entry.items())


def _are_tables(items: list[object]) -> bool:
    return all(isinstance(item, Mapping) for item in items)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_text(below)}" for key, below in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
