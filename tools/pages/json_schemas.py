"""Write docs/schemas and the tables of docs/json.md from the dataclasses of the commands' results.

    python -m tools.regenerate json-schemas

The keys are the fields and the shown properties (:mod:`fp4patch.core.document`); their meanings are the docstrings.
tests/commands/test_json_documents.py holds the schemas against documents of real trees: each must be valid, and each
key must occur.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from fp4patch.catalog.feature import FeatureReport
from fp4patch.commands.apply.result import Applied
from fp4patch.commands.document import Failure
from fp4patch.commands.evidence.result import Checked, Evidence
from fp4patch.commands.export.result import Series
from fp4patch.commands.objects.result import Objects
from fp4patch.commands.show.result import Lists, Matrix, Shown
from fp4patch.core.document import Document
from fp4patch.core.table import Manifest
from fp4patch.doctor.result import DoctorReport
from fp4patch.images.image import Built, DryRun, Inspection
from fp4patch.proof.result import VerifyReport, VerifyReports
from fp4patch.sources.fetch import Fetched
from fp4patch.tree.status_report import OneTree, SeveralTrees
from tools.pages._made_part import placed

DOCS = Path(__file__).parents[2] / "docs"
PAGE, FOLDER = DOCS / "json.md", DOCS / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS: Mapping[str, Any] = {
    "list": Lists,
    "matrix": Matrix,
    "show": Shown,
    "fetch": Fetched,
    "apply": Applied,
    "status": OneTree | SeveralTrees,
    "export": Series,
    "verify": VerifyReport | VerifyReports,
    "evidence": Evidence,
    "evidence-check": Checked,
    "objects": Objects,
    "features": FeatureReport,
    "doctor": DoctorReport,
    "build": Built,
    "build-dry-run": DryRun,
    "inspect": Inspection,
    "error": Failure,
}
UNLISTED = ("show",)
"""Documents without tables: docs/extending.md describes the keys of the TOML files."""

Schema = dict[str, Any]


class _Plain(GenerateJsonSchema):
    """Schemas without titles that repeat the key, and without defaults: a document has every key."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - by its name in pydantic
        return False

    def default_schema(self, schema: WithDefaultSchema) -> Schema:
        return self.generate_inner(schema["schema"])


def schemas() -> dict[str, Schema]:
    """Return the schema of each document by its name."""
    return {name: _schema(name, kind) for name, kind in DOCUMENTS.items()}


def _schema(name: str, kind: Any) -> Schema:
    config = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=not getattr(kind, "sparse", False),
    )
    with ExitStack() as configured:  # pydantic asks the dataclasses, which inherit it from these two
        for base in (Document, Manifest):
            configured.enter_context(patch.object(base, "__pydantic_config__", config, create=True))
        made = TypeAdapter[Any](kind).json_schema(mode="serialization", schema_generator=_Plain)
    return {"$schema": DIALECT, "title": f"fp4patch {name}"} | {k: v for k, v in _clean(made).items() if k != "title"}


def _clean(part: Any) -> Any:
    """Return a schema with its texts in one line and in the words of JSON, and without marks of computed keys."""
    if isinstance(part, list):
        return [_clean(one) for one in part]
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


# --- tables ----------------------------------------------------------------------------------------------------------


class Tables:
    """The generated parts of the page."""

    def __init__(self, made: Mapping[str, Schema]) -> None:
        self.made = {name: schema for name, schema in made.items() if name not in UNLISTED}
        self.users: dict[str, dict[str, list[str]]] = defaultdict(dict)
        """By the name of an object or set, then its schema: the documents that have it."""
        for name, schema in self.made.items():
            for part, one in schema.get("$defs", {}).items():
                self.users[part].setdefault(json.dumps(one), []).append(name)

    def parts(self) -> dict[str, str]:
        """Return the text of each part of the page by its name."""
        first = {part: next(iter(forms.values()))[0] for part, forms in self.users.items() if self._shared(part)}
        shared = [(part, name) for part, name in sorted(first.items()) if not self._words(part, name)]
        return {
            **{name: "\n".join(self._document(name, schema)) for name, schema in self.made.items()},
            "shared": "\n".join(line for part, name in shared for line in self._object(part, name)),
            "sets": "\n".join(["| set | words |", "|---|---|", *sorted(set(self._sets()))]) + "\n",
        }

    def _shared(self, part: str) -> bool:
        return any(len(names) > 1 for names in self.users[part].values())

    def _document(self, name: str, schema: Schema) -> Iterator[str]:
        if "anyOf" in schema:
            yield f"One of {' and '.join(self._type(one, name) for one in schema['anyOf'])}.\n"
        else:
            yield from self._table(schema, name)
        for part in schema.get("$defs", {}):
            if not self._shared(part) and not self._words(part, name):
                yield from self._object(part, name)

    def _object(self, part: str, name: str) -> Iterator[str]:
        schema = self.made[name]["$defs"][part]
        yield f"### {self._title(part, name)}\n"
        if "description" in schema:
            yield f"{schema['description']}\n"
        yield from self._table(schema, name)

    def _table(self, schema: Schema, name: str) -> Iterator[str]:
        yield "| key | type | |\n|---|---|---|"
        required = schema.get("required", ())
        rows = (
            self._row(key if key in required else f"{key}?", value, name) for key, value in schema["properties"].items()
        )
        for (kind, text), group in groupby(rows, key=itemgetter(1, 2)):
            keys = [key for key, *_ in group]  # neighbours of one type share a row if their names explain them
            yield from (f"| {row} | {kind} | {text} |" for row in (keys if text else [", ".join(keys)]))
        yield ""

    def _row(self, key: str, value: Schema, name: str) -> tuple[str, str, str]:
        """Return a key, its type and its meaning, as the page has them."""
        kind, suffix = value, ""
        while kind.get("type") in ("array", "object"):
            suffix += "[]" if kind["type"] == "array" else "{}"
            kind = kind["items" if kind["type"] == "array" else "additionalProperties"]
        return f"`{key}{suffix}`", self._type(kind, name), value.get("description", "").replace("|", "\\|")

    def _sets(self) -> Iterator[str]:
        for name, schema in self.made.items():
            for part in schema.get("$defs", {}):
                if words := self._words(part, name):
                    yield f"| {self._title(part, name)} | {', '.join(f'`{word}`' for word in words)} |"

    def _words(self, part: str, name: str) -> list[str]:
        words: list[str] = self.made[name]["$defs"][part].get("enum", [])
        return words

    def _title(self, part: str, name: str) -> str:
        """Return the class's name in words, with the document if another one has a part of the same name."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", part).lower()
        return words if len(self.users[part]) == 1 else f"{words} of {name}"

    def _type(self, kind: Schema, name: str) -> str:
        """Return ``string or null``, ```pass` or `fail```, ``[state](#closed-sets)``."""
        if "$ref" in kind:
            part = kind["$ref"].rpartition("/")[2]
            title = self._title(part, name)
            return f"[{title}](#{'closed-sets' if self._words(part, name) else title.replace(' ', '-')})"
        if "anyOf" in kind:
            return " or ".join(self._type(one, name) for one in kind["anyOf"])
        words = kind.get("enum", [kind["const"]] if "const" in kind else [])
        if words:
            return " or ".join(f"`{word}`" for word in words)
        if kind.get("type") == "array":
            return f"list of {self._type(kind['items'], name)}"
        if kind.get("type") == "object":
            return f"object of {self._type(kind['additionalProperties'], name)}"
        return str(kind.get("type", "anything"))


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """Return the page with each part between its marks."""
    for name, text in parts.items():
        page = placed(page, f"json-schemas {name}", text)
    return page


def main(_arguments: list[str]) -> None:
    """Write the page and the schemas, and remove schemas of documents that no longer exist."""
    made = schemas()
    PAGE.write_text(with_parts(PAGE.read_text(encoding="utf-8"), Tables(made).parts()), encoding="utf-8")
    for old in set(FOLDER.glob("*.json")) - {FOLDER / f"{name}.json" for name in made}:
        old.unlink()
    for name, schema in made.items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
