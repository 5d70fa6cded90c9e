"""Judge published wheels, and write the table of docs/wheels.md.

    python -m tools.regenerate wheels REQUIREMENT...        # vllm==0.33.0 bitsandbytes==0.50.2

Downloads one wheel at a time from the index that pip is configured for, looks into it as `fp4patch doctor` does, and
deletes it. Rows of wheels that are not named stay as they are.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fp4patch.binaries.report import BinaryReport, total
from fp4patch.binaries.scan import examine
from fp4patch.core.arch import GB10

PAGE = Path(__file__).parents[2] / "docs" / "wheels.md"
BEGIN = "| wheel |"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux_2_35_x86_64")
OLDER = ("manylinux2014_x86_64", "manylinux_2_24_x86_64", "manylinux1_x86_64", "any")


def row(wheel: Path) -> str:
    """Return one line of the table, in a process that has looked into nothing before."""
    report = examine(wheel)
    processor = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    cells = [wheel.name, f"{report.size / 1e6:.0f}", str(sum(f.fatbins for f in report.files)), targets(report)]
    for verdict in report.verdicts:
        cells.append(f"**{verdict.level.value}**, *{verdict.state.value}*: {verdict.because}")
    cells += [counts(report), f"{processor:.1f}", f"{memory:.0f}"]
    return "| " + " | ".join(cells) + " |"


def targets(report: BinaryReport) -> str:
    """Return the architectures from SM100 on, and how many cubins each has."""
    found: dict[str, int] = {}
    for group in (group for file in report.files for group in file.images):
        if group.arch.startswith(("sm_1", "compute_1")):
            found[group.arch] = found.get(group.arch, 0) + group.count
    return ", ".join(f"{arch} ×{number}" for arch, number in sorted(found.items())) or "none"


def counts(report: BinaryReport) -> str:
    """Return the counts of other instructions that a GPU of the family loads, and the compilers that run later."""
    code = total(loading.code for file in report.files for loading in file.loading if loading.gpu == GB10)
    parts = [
        (code.f64, "F64 instructions among the conversions"),
        (code.roundings, "values rounded, not encoded"),
        (len(code.traps), "kernels that only trap"),
    ]
    found = [f"{number} {what}" for number, what in parts if number]
    for one in report.compilers:
        support = (
            f"does not support {', '.join(map(str, one.unsupported))}" if one.unsupported else "supports both GPUs"
        )
        found.append(f"{one.role} {one.release} {support}")
    return ", ".join(found) or "none"


def main(requirements: list[str]) -> None:
    """Download, judge and delete the wheels, then write the page."""
    head, _, table = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    lines = (BEGIN + table).splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines[2:] if line.startswith("| ")}
    tail = [line for line in lines[2:] if not line.startswith("| ")]
    for requirement in requirements:
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--python-version", "3.12", "--dest", directory, requirement]
            for platform in (*PLATFORMS, *OLDER):
                command += ["--platform", platform]
            subprocess.run(command, check=True)
            for wheel in Path(directory).iterdir():
                with ProcessPoolExecutor(1) as fresh:
                    rows[wheel.name] = fresh.submit(row, wheel).result()
                print(rows[wheel.name], flush=True)  # noqa: T201 - a script
    PAGE.write_text(head + "\n".join([*lines[:2], *sorted(rows.values()), *tail]) + "\n", encoding="utf-8")
