"""Results as JSON documents: the declarations that pydantic needs beside the fields of a dataclass.

pydantic itself is imported when a document is printed (:mod:`fp4patch.console`), or its schema.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

SCHEMA: Final = 1
"""Version of every JSON document that fp4patch writes, by which a reader knows its form."""

HIDDEN: Mapping[str, Any] = {"exclude": True}
"""Metadata of a field that is not a key: ``field(metadata=HIDDEN)``."""

Getter = TypeVar("Getter", bound=Callable[[Any], object])


def key(name: str) -> Mapping[str, Any]:
    """Return the metadata of a field whose key has another name than the field."""
    return {"serialization_alias": name}


def shown(name: str = "") -> Callable[[Getter], Getter]:
    """Make a property a key of the document, under its own or another name; ``@property`` goes above."""

    def mark(getter: Getter) -> Getter:
        vars(getter)["json_key"] = name or getter.__name__
        return getter

    return mark


class Document:
    """A dataclass that is an object of a JSON document: its fields, then its properties that are :func:`shown`.

    The docstrings of both are the meanings in the JSON schemas.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type, handler: Callable[[type], Any]) -> Any:
        """Tell pydantic the properties; it calls this by name."""
        from pydantic import computed_field  # noqa: PLC0415 - only where a document is made

        for base in reversed(cls.__mro__):
            for name, value in list(vars(base).items()):
                if isinstance(value, property) and (alias := getattr(value.fget, "json_key", "")):
                    setattr(cls, name, computed_field(alias=alias)(value))
        return handler(source)


class Report(Document):
    """A whole JSON document."""

    @property
    @shown()
    def schema(self) -> Literal[1]:
        """Version of the document's form."""
        return SCHEMA
