"""The project's data with few of its probes, for tests of the code around verify and not of the proof itself."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from fp4patch.catalog.manifest import data_root


def few_probes(to: Path, kept: Mapping[str, str], *, numerics: bool = False) -> Path:
    """Write patches and variants to ``to``, with the probes ``kept`` (name to target), and the rules on them.

    The functions for ``verify --numerics`` stay only with ``numerics``.
    """
    for folder in ("patches", "variants"):
        shutil.copytree(data_root() / folder, to / folder, ignore=shutil.ignore_patterns("cases"))
    leave(to, kept, numerics=numerics)
    return to


def leave(folder: Path, kept: Mapping[str, str], *, numerics: bool = False) -> None:
    """Remove all other probes from the data in a directory, and the rules that would then judge none."""
    for file in (*folder.glob("patches/*/*/patch.toml"), *folder.glob("variants/*.toml")):
        first, *tables = re.split(r"(?m)^(?=\[)", file.read_text(encoding="utf-8"))
        if touches := tomllib.loads(first).get("touches"):
            tables.insert(0, f"\n[[unchecked]]\nfunctions = {json.dumps(touches)}\nbecause = 'left out'\n\n")
        file.write_text(
            "".join([first, *(table for table in tables if _stays(table, kept, numerics=numerics))]), encoding="utf-8"
        )


def _stays(table: str, kept: Mapping[str, str], *, numerics: bool) -> bool:
    entry = tomllib.loads(table)
    if "probes" in entry:
        return entry["probes"][0]["name"] in kept
    if "rules" in entry:
        names = [f"{target}/{probe}" for probe, target in kept.items()]
        return any(fnmatchcase(name, pattern) for name in names for pattern in entry["rules"][0]["probes"])
    return numerics or "numerics" not in entry
