"""Nothing but the catalog lists the variants: a new one needs no change in tests, tools and workflows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from fp4patch.catalog.manifest import load

ROOT = Path(__file__).parents[2]
PYTHON = sorted(path for folder in ("fp4patch", "tests", "tools", "docs") for path in (ROOT / folder).rglob("*.py"))
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def in_python(text: str) -> Iterator[set[object]]:
    """Yield the constants of each list, tuple, set and dictionary."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            below = node.keys if isinstance(node, ast.Dict) else node.elts
            yield {one.value for one in below if isinstance(one, ast.Constant)}


def in_yaml(value: object) -> Iterator[set[object]]:
    """Yield the items of each list of strings."""
    if isinstance(value, list):
        yield {item for item in value if isinstance(item, str)}
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from in_yaml(below)


def test_no_other_file_lists_all_variants() -> None:
    names = set(load().variants)
    found = [path for path in PYTHON if any(names <= one for one in in_python(path.read_text(encoding="utf-8")))]
    found += [path for path in WORKFLOWS if any(names <= one for one in in_yaml(YAML(typ="safe").load(path)))]
    assert found == []


def test_a_list_of_all_variants_would_be_found() -> None:
    names = list(load().variants)
    assert any({*names} <= one for one in in_python(f"for variant in {names!r}: pass"))
    assert any({*names} <= one for one in in_yaml({"strategy": {"matrix": {"variant": names}}}))
