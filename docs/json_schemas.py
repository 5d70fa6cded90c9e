"""Make the JSON Schemas in docs/schemas from the tables in docs/json.md, and that page's table of closed sets.

    python docs/json_schemas.py

The tables are for people first, so they are written by hand, a row for each key. tests/commands/test_json_documents.py
holds them against documents of real trees: each must be valid, and each key must occur.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from fp4patch.catalog import feature as features
from fp4patch.catalog.coverage import How
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import ProbeKind
from fp4patch.catalog.rule import Promise
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.commands.apply.result import ApplyState
from fp4patch.core import arch
from fp4patch.core.schema import SCHEMA
from fp4patch.core.state import State
from fp4patch.core.verdict import Verdict
from fp4patch.inspect import code as doctor_binaries
from fp4patch.inspect import findings
from fp4patch.proof.inputs import InputClass

PAGE = Path(__file__).with_name("json.md")
FOLDER = Path(__file__).with_name("schemas")
DIALECT = "https://json-schema.org/draft/2020-12/schema"

CLOSED: Mapping[str, type[StrEnum]] = {
    "state": State,
    "verdict": Verdict,
    "what was done": ApplyState,
    "kind of probe": ProbeKind,
    "promise": Promise,
    "way of a check": How,
    "class of inputs": InputClass,
    "level": findings.Level,
    "reach": arch.Reach,
    "FP4 support": doctor_binaries.Fp4State,
    "outcome of a fatbin": doctor_binaries.Outcome,
    "useless kernel": doctor_binaries.Idle,
    "outcome on a target": features.Outcome,
    "refusal": features.Refusal,
}
SETS = "<!-- below: python docs/json_schemas.py -->\n"
SPREAD = "…"
"""Key of a row that represents all keys of another object."""

LINK = re.compile(r"\[(.+?)\]\((.+?)\)")
Schema = dict[str, Any]


def schemas(page: str) -> dict[str, Schema]:
    """Return the schema of each document, by the name of the file that the document's section links to."""
    _, *parts = re.split(r"(?m)^##+ (.+)\n", page)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    named = {name: heading for heading in sections for name in re.findall(r"\(schemas/(.+)\.json\)", sections[heading])}
    return {
        name: {"$schema": DIALECT, "title": f"fp4patch {heading}"}
        | (_of_show() if name == "show" else _document(heading, sections))
        for name, heading in named.items()
    }


def with_sets(page: str) -> str:
    """Return the page with the table of the sets as the code has them."""
    prose, marker, _ = page.partition(SETS)
    if not marker:
        raise SystemExit(f"{PAGE.name} has lost its marker {SETS.strip()}")
    rows = (f"| {name} | {', '.join(f'`{word}`' for word in words)} |\n" for name, words in CLOSED.items())
    return f"{prose}{SETS}\n| set | words |\n|---|---|\n{''.join(rows)}"


def _document(heading: str, sections: Mapping[str, str]) -> Schema:
    """Return the schema of a section and of everything that it refers to.

    A section can describe one of several objects, each with a section of its own.
    """
    several = re.search(r"(?m)^One of (.+)", sections[heading])
    links = (link[0] for link in LINK.finditer(several[1])) if several else ()
    root = {"anyOf": [_type(link) for link in links]} if several else _object(heading, sections)
    defs: dict[str, Schema] = {}
    pending = [root]
    while pending:
        for name in re.findall(r'"#/\$defs/(.+?)"', json.dumps(pending.pop())):
            if name not in defs:
                defs[name] = _part(name, sections)
                pending.append(defs[name])
    return root | ({"$defs": dict(sorted(defs.items()))} if defs else {})


def _part(name: str, sections: Mapping[str, str]) -> Schema:
    """Return a closed set, or the object of the section with that heading."""
    words = next((words for one, words in CLOSED.items() if _slug(one) == name), None)
    if words:
        return {"type": "string", "enum": [str(word) for word in words]}
    return _object(next(heading for heading in sections if _slug(heading) == name), sections)


def _object(heading: str, sections: Mapping[str, str]) -> Schema:
    """Return the object whose keys are the rows of a section's table."""
    found: list[Schema] = []
    for keys, kind, meaning in re.findall(r"(?m)^\| (`.+?`) \| (.+?) \|(.*)\|$", sections[heading]):
        for key in re.findall(r"`(.+?)`", keys):
            if key == SPREAD and (link := LINK.fullmatch(kind)):
                found.append(_object(link[1], sections))
            else:
                said = LINK.sub(r"\1", meaning).strip()
                found.append(_holder(key.split("."), _type(kind) | ({"description": said} if said else {})))
    return reduce(_merged, found)


def _holder(path: list[str], value: Schema) -> Schema:
    """Return an object with one key, which leads to the value: ``a[]``, ``b{}``, ``c?``."""
    step = re.fullmatch(r"(\w+)((?:\[\]|\{\})*)(\??)", path[0])
    if not step:
        raise SystemExit(f"{PAGE.name}: {path[0]!r} is not a key")
    name, within, optional = step.groups()
    inner = _holder(path[1:], value) if path[1:] else value
    for kind in reversed(re.findall(r"\[\]|\{\}", within)):
        inner = {"type": "array", "items": inner} if kind == "[]" else {"type": "object", "additionalProperties": inner}
    required = [] if optional else [name]
    return {"type": "object", "properties": {name: inner}, "required": required, "additionalProperties": False}


def _merged(one: Schema, other: Schema) -> Schema:
    """Return both objects' keys in one object, at every depth."""
    result = dict(one)
    for key, value in other.items():
        if isinstance(value, dict) and key in one:
            result[key] = _merged(one[key], value)
        elif key == "required":
            result[key] = list(dict.fromkeys([*one.get(key, ()), *value]))
        else:
            result[key] = value
    return result


def _type(text: str) -> Schema:
    """Return ``string or null``, ```pass` or `fail```, ``[state](#closed-sets)``, ``[problem](#problem) or null``."""
    options = text.split(" or ")
    if text == "anything":
        return {}
    if all(option.startswith("`") for option in options):
        words: list[str | int] = [int(word) if word.isdigit() else word for word in re.findall(r"`(.+?)`", text)]
        return {"enum": words} if words[1:] else {"const": words[0]}
    links = [LINK.fullmatch(option) for option in options]
    known = [
        {"$ref": f"#/$defs/{_slug(link[1])}"} if link else {"type": option}
        for link, option in zip(links, options, strict=True)
    ]
    if any(links):
        return {"anyOf": known} if known[1:] else known[0]
    return {"type": options if options[1:] else text}


def _slug(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _of_show() -> Schema:
    """Return the schema of ``show`` from pydantic: the command prints the contents of a TOML file."""
    schema = TypeAdapter[Any](Variant | Target | Patch).json_schema(mode="serialization", schema_generator=_Plain)
    defs: dict[str, Schema] = schema["$defs"]
    for name in ("Variant", "Target", "Patch"):
        own = defs[name]
        own["properties"] = {"schema": {"const": SCHEMA}, "kind": {"const": name.lower()}} | own["properties"]
        if name == "Patch":
            del own["properties"]["directory"]
            own["properties"]["variants"] = {"type": "array", "items": {"type": "string"}}
    for one in defs.values():
        if "properties" in one:
            one["required"] = list(one["properties"])
    return schema


class _Plain(GenerateJsonSchema):
    """Return the schema without titles that repeat the key, and without defaults: a document has every key."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - by its name in pydantic
        return False

    def default_schema(self, schema: WithDefaultSchema) -> Schema:
        return self.generate_inner(schema["schema"])


def main() -> None:
    """Write the page and the schemas, and remove schemas that the page no longer names."""
    page = with_sets(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    made = schemas(page)
    for old in set(FOLDER.glob("*.json")) - {FOLDER / f"{name}.json" for name in made}:
        old.unlink()
    for name, schema in made.items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
