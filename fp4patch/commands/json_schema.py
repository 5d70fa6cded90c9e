"""JSON schema of a command's document, from the dataclasses of its result.

The keys are the fields and the shown properties (:mod:`fp4patch.core.document`); their meanings are the docstrings.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any, get_args
from unittest.mock import patch

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from fp4patch.core.document import Document
from fp4patch.core.table import Manifest

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


class _Plain(GenerateJsonSchema):
    """Schemas without titles that repeat the key, and without defaults: a document has every key."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - by its name in pydantic
        return False

    def default_schema(self, schema: WithDefaultSchema) -> Schema:
        return self.generate_inner(schema["schema"])


def json_schema(command: str, result: Any) -> Schema:
    """Return the schema of the document that ``fp4patch COMMAND --json`` prints of a result's class, or of a union."""
    config = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=not any(
            getattr(kind, "sparse", False) for kind in get_args(result) or (result,)
        ),
    )
    with ExitStack() as configured:  # pydantic asks the dataclasses, which inherit it from these two
        for base in (Document, Manifest):
            configured.enter_context(patch.object(base, "__pydantic_config__", config, create=True))
        made = TypeAdapter[Any](result).json_schema(mode="serialization", schema_generator=_Plain)
    cleaned = {key: value for key, value in _clean(made).items() if key != "title"}
    return {"$schema": DIALECT, "title": f"fp4patch {command}"} | cleaned


def _clean(part: Any) -> Any:
    """Return a schema with its texts in one line and in the words of JSON, and without marks of computed keys."""
    if isinstance(part, list):
        return [_clean(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _clean(value) for key, value in part.items() if (key, value) != ("readOnly", True)}
    if "schema" in (keys := kept.get("properties", {})):
        kept["properties"] = keys = {"schema": keys.pop("schema")} | keys
    if "required" in kept:
        kept["required"] = [key for key in keys if key in kept["required"]]
    if kept.get("additionalProperties") is True:
        kept["additionalProperties"] = {}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = re.sub(r"\bNone\b", "null", " ".join(text.replace("``", "`").split()))
    return kept
