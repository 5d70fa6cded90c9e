"""Measure the code of each variant for CUTLASS's conversions, and write the tables of docs/variants.md.

    python -m tools.regenerate variants TREE...        # pristine CUTLASS trees: 4.2.1, 4.7.0

Works on copies. Counts are those of ``fp4patch verify --json``: the instructions of a whole probe, loads and store
included.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fp4patch.catalog.manifest import load
from tools.pages import _made_part as made_part

PAGE = Path(__file__).parents[2] / "docs" / "variants.md"
ARCHS = ("sm_120a", "sm_121a", "sm_121")
PROBES = {
    "float-to-e2m1-x8": "8 × float → E2M1",
    "float-to-e2m1": "float → E2M1, one value",
    "e2m1-to-float-x8": "8 × E2M1 → float",
    "e2m1-to-half-x8": "8 × E2M1 → half",
    "float-to-e2m3-x4": "4 × float → E2M3 (FP6)",
}
ENCODE = {"float-to-e2m1-x8": "encode-float-x8", "float-to-e2m1": "encode-float"}
"""The same conversions as probes of cutlass/e2m1-encode, which next3 applies."""


def fp4patch(*words: str | Path) -> str:
    """Return the command's output. The verdict is ignored: a variant has no rules for targets that it does not
    cover."""
    command = [sys.executable, "-m", "fp4patch", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def verified(tree: Path, variant: str) -> tuple[str, dict[tuple[str, str], str]]:
    """Return the CUTLASS release, and the instructions and branches of each probe and architecture."""
    report: dict[str, Any] = json.loads(
        fp4patch("verify", "--variant", variant, "--arch", ",".join(ARCHS), "--no-execute", "--json", "-", tree)
    )
    cells = {}
    for result in report["results"]:
        if listing := result["after"]:
            branches = f" ({listing['branches']} branches)" if listing["branches"] else ""
            cells[result["probe"].partition("/")[2], result["arch"]] = f"{listing['instructions']}{branches}"
    return report["version"], cells


def rows(tree: Path) -> tuple[str, dict[str, dict[tuple[str, str], str]]]:
    """Return the release, and each variant's cells; pristine first."""
    found, version = {}, ""
    for variant in ("native", "turbo", "turbo2", "next2", "next3"):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "cutlass"
            shutil.copytree(tree, copy)
            fp4patch("apply", "--variant", variant, copy)
            version, found[variant] = verified(copy, variant)
    return version, found


def table(version: str, found: dict[str, dict[tuple[str, str], str]]) -> str:
    """Return one release as Markdown: a block of rows for each conversion."""
    lines = [f"### CUTLASS {version}", "", f"| conversion | variant | {' | '.join(ARCHS)} |", "|---|---|---|---|---|"]
    for probe, title in PROBES.items():
        previous: dict[str, str] = {}
        for variant, cells in found.items():
            name = ENCODE.get(probe, probe) if variant == "next3" else probe
            # Where none of its patches is about this conversion it is upstream's.
            row = " | ".join(cells.get((name, arch)) or found["native"][probe, arch] for arch in ARCHS)
            previous[row] = f"{previous[row]}, {variant}" if row in previous else variant
        for number, (row, variants) in enumerate(previous.items()):
            first = "" if number else title
            lines.append(f"| {first} | {variants.replace('native', 'pristine, native')} | {row} |")
    return "\n".join(lines) + "\n"


def main(trees: list[str]) -> None:
    """Measure, and write between the page's marks."""
    assert set(load().variants) == {"native", "turbo", "turbo2", "next2", "next3"}
    made_part.write(PAGE, "variants", "\n".join(table(*rows(Path(tree))) for tree in trees))
