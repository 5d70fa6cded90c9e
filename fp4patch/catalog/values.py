"""Catalogs that were found valid, in the user's cache: reading one again takes a tenth of the time of validating it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fp4patch import edits
from fp4patch.catalog import patch, probe, rule, target, variant
from fp4patch.core import outcome, problem, state
from fp4patch.core.cache import cache_dir
from fp4patch.core.errors import SourceError
from fp4patch.core.store import Store, files_hash, key, source_hash

_CLASSES = {
    name: kind
    for module in (edits, outcome, patch, probe, problem, rule, state, target, variant)
    for name, kind in vars(module).items()
    if isinstance(kind, type)
}
_KEPT = 64
"""Catalogs; the oldest ones make way."""


def name_of(root: Path) -> str:
    """Return the key of the catalog below a directory. OSError: a file cannot be read."""
    data = files_hash(*(root / name for name in ("patches", "variants", "encoders")))
    return key("catalog", str(root), data, source_hash("fp4patch.catalog", "fp4patch.edits", "fp4patch.core"))


def recall(name: str) -> Any:
    """Return the value of this key; None if there is none, or none that can be read."""
    try:
        return _decoded(_store().get(name))
    except (SourceError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def keep(name: str, value: object) -> None:
    """Keep a value of the model."""
    with suppress(SourceError):
        _store().put(name, _encoded(value))


def _store() -> Store:
    return Store(cache_dir() / "catalogs", _KEPT)


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


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {key: _decoded(item) for key, item in value["items"].items()}
    kind = _CLASSES[value["class"]]
    if "value" in value:
        return kind(value["value"])
    return kind(**{key: _decoded(item) for key, item in value["fields"].items()})
