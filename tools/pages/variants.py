"""Measure the code of each variant for CUTLASS's conversions, and write the tables of docs/variants.md.

    python -m tools.regenerate variants TREE...        # pristine CUTLASS trees: 4.2.1, 4.7.0

Works on copies. Counts are those of ``fp4patch verify --json``: the instructions of a whole probe, loads and store
included.
"""

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


Cells = dict[tuple[str, str], str]


def verified(tree: Path, variant: str) -> tuple[str, Cells, Cells]:
    """Return the CUTLASS release, and the instructions and branches of each probe and architecture, of the pristine
    tree and of the patched one."""
    report: dict[str, Any] = json.loads(
        fp4patch("verify", "--variant", variant, "--arch", ",".join(ARCHS), "--no-execute", "--json", "-", tree)
    )
    cells: dict[str, Cells] = {"before": {}, "after": {}}
    for result in report["results"]:
        for side, found in cells.items():
            if listing := result[side]:
                branches = f" ({listing['branches']} branches)" if listing["branches"] else ""
                found[result["probe"].partition("/")[2], result["arch"]] = f"{listing['instructions']}{branches}"
    return report["version"], cells["before"], cells["after"]


def rows(tree: Path) -> tuple[str, dict[str, Cells]]:
    """Return the release, and each variant's cells; pristine first."""
    found: dict[str, Cells] = {"pristine": {}}
    version = ""
    for variant in load().variants:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "cutlass"
            shutil.copytree(tree, copy)
            fp4patch("apply", "--variant", variant, copy)
            version, pristine, found[variant] = verified(copy, variant)
            found["pristine"] |= pristine
    return version, found


def table(version: str, found: dict[str, Cells]) -> str:
    """Return one release as Markdown: a block of rows for each conversion."""
    lines = [f"### CUTLASS {version}", "", f"| conversion | variant | {' | '.join(ARCHS)} |", "|---|---|---|---|---|"]
    for probe, title in PROBES.items():
        previous: dict[str, str] = {}
        for variant, cells in found.items():
            # Where none of its patches is about this conversion it is upstream's.
            ways = [cells, found["pristine"]]
            names = (probe, ENCODE.get(probe, probe))
            row = " | ".join(next(w[n, arch] for w in ways for n in names if (n, arch) in w) for arch in ARCHS)
            previous[row] = f"{previous[row]}, {variant}" if row in previous else variant
        for number, (row, variants) in enumerate(previous.items()):
            first = "" if number else title
            lines.append(f"| {first} | {variants} | {row} |")
    return "\n".join(lines) + "\n"


def main(trees: list[str]) -> None:
    """Measure, and write between the page's marks."""
    made_part.write(PAGE, "variants", "\n".join(table(*rows(Path(tree))) for tree in trees))
