"""JSON schema of a command's document, as pydantic makes it from the dataclasses of the result.

The keys are the fields and the shown properties (:mod:`fp4patch.core.document`); their meanings are the docstrings.
"""

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from pydantic import ConfigDict, TypeAdapter

from fp4patch.core.document import Document
from fp4patch.core.table import Manifest


def json_schema(command: str, result: Any) -> dict[str, Any]:
    """Return the schema of the document that ``fp4patch COMMAND --json`` prints of a result's class, or of a union."""
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)
    with ExitStack() as configured:  # only here, since it takes long; pydantic asks the classes, which inherit it
        for base in (Document, Manifest):
            configured.enter_context(patch.object(base, "__pydantic_config__", config, create=True))
        made = TypeAdapter[Any](result).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made | {"title": f"fp4patch {command}"}
