"""Results kept in the user's cache: what was worked out before from the same patches, by the same code.

Only values of the model are kept, as JSON. An entry that is damaged, or of another fp4patch, is a miss; so is a cache
that cannot be read or written.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fp4patch.core.cache import cache_dir
from fp4patch.core.errors import SourceError
from fp4patch.core.store import Store

_KEPT = 256
"""Entries of each kind; the oldest ones make way."""


@cache
def digest(data: Path) -> str:
    """Return one SHA-256 of all that a result depends on beside the tree: patches, variants, encoders, the package."""
    found = hashlib.sha256(sys.version.encode())
    for root in (Path(__file__).parent.parent, *(data / name for name in ("patches", "variants", "encoders"))):
        for directory, below, names in os.walk(root):
            below.sort()
            for name in sorted(names):
                if not name.endswith(".pyc"):
                    path = os.path.join(directory, name)  # noqa: PTH118 - a Path for each of them takes as long as the hash
                    with open(path, "rb") as file:  # noqa: PTH123
                        content = file.read()
                    found.update(f"{os.path.relpath(path, root)}\0{len(content)}\0".encode())
                    found.update(content)
    return found.hexdigest()


def classes(*modules: ModuleType) -> dict[str, type]:
    """Return the classes of these modules by name: cached values may consist of them."""
    return {name: kind for module in modules for name, kind in vars(module).items() if isinstance(kind, type)}


def recall(kind: str, name: str, classes: Mapping[str, type]) -> Any:
    """Return the cached value of this name; None if there is none, or none that can be read."""
    try:
        return _decoded(_store(kind).read(_entry(name)), classes)
    except (SourceError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def keep(kind: str, name: str, value: object, most: int | None = None) -> None:
    """Keep a value of the model under a name, in the place of what was there. ``most``: entries of that kind."""
    with suppress(SourceError):
        _store(kind, most or _KEPT).write(_entry(name), _encoded(value))


def _store(kind: str, most: int | None = None) -> Store:
    return Store(cache_dir() / kind, most)


def _entry(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _encoded(value: Any) -> Any:
    if isinstance(value, Enum):
        return {"class": type(value).__name__, "value": value.value}
    if is_dataclass(value):
        return {
            "class": type(value).__name__,
            "fields": {f.name: _encoded(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, Mapping):
        return {"items": {key: _encoded(item) for key, item in value.items()}}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is no value of the model")


def _decoded(value: Any, classes: Mapping[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item, classes) for item in value)
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {key: _decoded(item, classes) for key, item in value["items"].items()}
    kind = classes[value["class"]]
    if "value" in value:
        return kind(value["value"])
    return kind(**{key: _decoded(item, classes) for key, item in value["fields"].items()})
