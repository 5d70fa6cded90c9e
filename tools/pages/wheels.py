"""Judge published wheels, and write the table of docs/wheels.md and records/wheels.json.

    python -m tools.regenerate wheels REQUIREMENT...        # vllm==0.33.0 bitsandbytes==0.50.2

Reads each wheel where it is, by ranges, as `fp4patch doctor REQUIREMENT` does: those for x86-64 and for arm64, where
the index has both; one for arm64 with the same answers has no row. Rows of wheels that are not named stay as they are.
From the record, doctor names the nearest release whose wheel answers yes.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from fp4patch.binaries.report import BinaryReport
from fp4patch.binaries.scan import examine_wheel
from fp4patch.core.document import SCHEMA
from fp4patch.core.errors import UsageError
from fp4patch.doctor.known_defects import WHEELS, judged
from fp4patch.sources.wheels import published

PAGE = Path(__file__).parents[2] / "docs" / "wheels.md"
RECORD = Path(__file__).parents[2] / WHEELS
BEGIN = "| wheel |"
OLDER = " †"
MACHINES = {"x86_64": "", "aarch64": ", arm64"}
"""What follows the name of a wheel for each processor; one without machine code is in the table once."""


def row(report: BinaryReport, note: str) -> str:
    """Return one line of the table: the release, its targets, and the verdict on each GPU with its first reason."""
    cells = ["-".join(report.source.split("-")[:2]) + note, targets(report)]
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
    """Judge the wheels, then write the page."""
    head, _, table = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    heads, rule, *lines = (BEGIN + table).splitlines()
    rows = {line.split(" | ")[0]: line for line in (line.replace(OLDER, "", 1) for line in lines)}
    record = json.loads(RECORD.read_text(encoding="utf-8"))["wheels"] if RECORD.exists() else {}
    for requirement in requirements:
        answers: list[str] = []
        for machine, note in MACHINES.items():
            try:
                with published(requirement, machine) as (name, content, size):
                    report = judged(examine_wheel(name, content, size), name)
                    line = row(report, "" if name.endswith("-any.whl") else note)
                    record[name] = {str(answer.gpu): answer.answer for answer in report.answers}
            except UsageError:
                continue  # there is none for this processor
            if line.split(" | ")[2:] != answers:
                rows[line.split(" | ")[0]] = line
            answers = line.split(" | ")[2:]
            print(line, flush=True)  # noqa: T201 - a script
        written = ",\n".join(f"  {json.dumps(name)}: {json.dumps(record[name])}" for name in sorted(record))
        RECORD.write_text(f'{{"schema": {SCHEMA}, "wheels": {{\n{written}\n}}}}\n', encoding="utf-8")
        every = [_marked(line, record) for line in sorted(rows.values())]
        PAGE.write_text(head + "\n".join([heads, rule, *every]) + "\n", encoding="utf-8")


def _marked(line: str, record: Mapping[str, object]) -> str:
    """Return a row with the mark of an earlier doctor, if the record has nothing of its wheel."""
    name, _, rest = line.partition(" | ")
    wheel = name.removeprefix("| ").partition(",")[0]
    return line if any(one.startswith(f"{wheel}-") for one in record) else f"{name}{OLDER} | {rest}"
