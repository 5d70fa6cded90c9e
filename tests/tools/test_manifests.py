"""The schemas of the TOML files, and the page with the keys of edits."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import jsonschema  # type: ignore[import-untyped]
import pytest

from fp4patch.edits import Edit
from tools.pages import manifests

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("patches", "variants") for path in (ROOT / folder).rglob("*.toml"))
KIND = {"patch.toml": "patch", "target.toml": "target"}
SCHEMAS = manifests.schemas()
OF_FOLDER = {"variants": "variant", "parts": "variant-part"}


def errors(kind: str, text: str) -> dict[str, str]:
    """Return the places of a file that are not valid, with their errors."""
    found = jsonschema.Draft202012Validator(SCHEMAS[kind]).iter_errors(tomllib.loads(text))
    return {".".join(map(str, error.absolute_path)): error.message for error in found}


def test_each_schema_is_one_and_is_written_as_it_is() -> None:
    for schema in SCHEMAS.values():
        assert json.loads(manifests.text(schema)) == schema
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_page_has_the_keys_of_every_operation() -> None:
    page = manifests.keys_of_edits()
    for kind in get_args(Edit):
        assert f"**`{kind.op}`.**" in page
    assert re.search(r"\|\s*\|$", page, re.MULTILINE) is None, "a key without a meaning"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_names_its_schema_and_is_valid_by_it(path: Path) -> None:
    text = path.read_text()
    first, _, _ = text.partition("\n")
    named = (path.parent / first.removeprefix("#:schema ")).resolve()
    kind = KIND.get(path.name) or OF_FOLDER[path.parent.name]
    assert named == manifests.FOLDER / f"{kind}.json"
    assert errors(kind, text) == {}


ENCODE, GUARD = (ROOT / "patches/cutlass" / name / "patch.toml" for name in ("e2m1-encode", "e2m1-guard"))
SUFFIX = ROOT / "patches/flashinfer/arch-suffix/patch.toml"
TURBO2, NEXT3 = ROOT / "variants/turbo2.toml", ROOT / "variants/next3.toml"


NO_KEY = "Additional properties are not allowed ('{}' was unexpected)"
NEEDED = "'{}' is a required property"


@pytest.mark.parametrize(
    ("path", "old", "new", "at", "error"),
    [
        (SUFFIX, "count = 2", 'count = "two"', "edits.0.count", "'two' is not of type 'integer'"),
        (SUFFIX, "count = 2", "count = 2\nsurprise = 1", "edits.0", NO_KEY.format("surprise")),
        (SUFFIX, "find =", "# find =", "edits.0", NEEDED.format("find")),
        (SUFFIX, 'op = "replace"', 'op = "sed"', "edits.0.op", "'sed' is not one of ['insert', "),
        (SUFFIX, 'op = "replace"', "", "edits.0", NEEDED.format("op")),
        (GUARD, "retire =", "retires =", "", NEEDED.format("retire")),
        (ENCODE, "\neach = { N = [2, 4, 8] }", "\neach = { N = 2 }", "edits.2.each.N", "2 is not of type 'array'"),
        (
            ENCODE,
            ', text = "struct NumericC',
            ', txt = "struct NumericC',
            "edits.1.edits.0.absent.2",
            NO_KEY.format("txt"),
        ),
        (
            ENCODE,
            '[[edits.edits]]\nfind = "d',
            '[[edits.edits]]\nfinds = "d',
            "edits.2.edits.0",
            NO_KEY.format("finds"),
        ),
        (TURBO2, 'without = ["branches"', 'without = ["branch"', "rules.0.without.0", "'branch' is not one of"),
        (TURBO2, 'extends = ["turbo"]', "", "", NEEDED.format("targets")),
        (NEXT3, 'encoder = "half_pair"', "encoder = 1", "options.encoder", "1 is not of type 'string'"),
    ],
)
def test_a_slip_is_an_error_of_the_form_that_is_meant(path: Path, old: str, new: str, at: str, error: str) -> None:
    text = path.read_text()
    assert old in text
    kind = KIND.get(path.name) or OF_FOLDER[path.parent.name]
    found = errors(kind, text.replace(old, new, 1))
    assert found.get(at, "").startswith(error), found


def test_a_description_is_in_each_schema_where_the_class_has_one() -> None:
    tables: dict[str, Any] = SCHEMAS["patch"]["$defs"]
    assert tables["Probe"]["properties"]["slow"]["description"].startswith("True if compilation takes minutes")
    assert tables["Replace"]["properties"]["find"]["description"] == "Code to replace."
