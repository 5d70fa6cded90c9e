"""Judge published wheels, and write the table of docs/wheels.md.

    python -m tools.regenerate wheels REQUIREMENT...        # vllm==0.33.0 bitsandbytes==0.50.2

Downloads one wheel at a time from the index that pip is configured for, looks into it as `fp4patch doctor` does, and
deletes it. Rows of wheels that are not named stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from fp4patch.binaries.report import BinaryReport
from fp4patch.binaries.scan import examine

PAGE = Path(__file__).parents[2] / "docs" / "wheels.md"
BEGIN = "| wheel |"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux_2_35_x86_64")
OLDER = ("manylinux2014_x86_64", "manylinux_2_24_x86_64", "manylinux1_x86_64", "any")


def row(wheel: Path) -> str:
    """Return one line of the table: the release, its targets, and the verdict on each GPU with its first reason."""
    report = examine(wheel)
    cells = ["-".join(wheel.name.split("-")[:2]), targets(report)]
    for answer in report.answers:
        cells.append(f"**{answer.answer}**: {answer.verdict}")
    return "| " + " | ".join(cells) + " |"


def targets(report: BinaryReport) -> str:
    """Return the architectures from SM100 on, and how many cubins each has."""
    found: dict[str, int] = {}
    for group in (group for file in report.files for group in file.images):
        if group.arch.startswith(("sm_1", "compute_1")):
            found[group.arch] = found.get(group.arch, 0) + group.count
    return ", ".join(f"{arch} ×{number}" for arch, number in sorted(found.items())) or "none"


def main(requirements: list[str]) -> None:
    """Download, judge and delete the wheels, then write the page."""
    head, _, table = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    heads, rule, *lines = (BEGIN + table).splitlines()
    rows = {line.split(" | ")[0]: line for line in lines}
    for requirement in requirements:
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--python-version", "3.12", "--dest", directory, requirement]
            for platform in (*PLATFORMS, *OLDER):
                command += ["--platform", platform]
            subprocess.run(command, check=True)
            for wheel in Path(directory).iterdir():
                line = row(wheel)
                rows[line.split(" | ")[0]] = line
                print(line, flush=True)  # noqa: T201 - a script
    PAGE.write_text(head + "\n".join([heads, rule, *sorted(rows.values())]) + "\n", encoding="utf-8")
