"""Copies of the project's data, whole or with few of its probes, for tests that change them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toml_text import document

from fp4patch.catalog.manifest import DATA, data_root
from fp4patch.catalog.reading import Reader


def copy_data(to: Path) -> Path:
    """Write the data to ``to``."""
    for folder in DATA:
        shutil.copytree(data_root() / folder, to / folder)
    return to


def few_probes(to: Path, kept: Mapping[str, str], *, sampled: bool = False, builds: bool = False) -> Path:
    """Write patches and variants to ``to``, with the probes ``kept`` (name to target), and the rules on them.

    Families are written out. With ``sampled`` the execution takes a sample of floats. Only with ``builds`` the tree's
    own build is evaluated: half a minute for vLLM, whatever the probes are.
    """
    leave(copy_data(to), kept, sampled=sampled, builds=builds)
    return to


def leave(folder: Path, kept: Mapping[str, str], *, sampled: bool = False, builds: bool = False) -> None:
    """Remove all other probes from the data in a directory, and the rules that would then judge none."""
    reader, written = Reader(folder), {}
    for path in folder.glob("patches/*/*/patch.toml"):
        data = reader.table(path)
        assert data
        data["probes"] = [probe for probe in data.get("probes", []) if probe["name"] in kept]
        if not builds:
            data.pop("builds", None)
        for probe in data["probes"]:
            if sampled and probe.get("executes", {}).get("input") == "float32":
                probe["executes"]["sampled"] = True
        if rules := [rule for rule in data.pop("rules", []) if _is_for(rule, kept)]:
            data["rules"] = rules
        written[path] = document(data)
    for path in folder.glob("variants/*.toml"):
        data = reader.table(path)
        assert data
        data["rules"] = [rule for rule in data.get("rules", []) if _is_for(rule, kept)]
        written[path] = document(data)
    shutil.rmtree(folder / "variants" / "parts")
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


def _is_for(rule: Mapping[str, Any], kept: Mapping[str, str]) -> bool:
    names = [f"{target}/{probe}" for probe, target in kept.items()]
    return any(fnmatchcase(name, pattern) for name in names for pattern in rule["probes"])
