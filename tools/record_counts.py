"""Record how many instructions the code of each probe has, from documents of ``fp4patch verify --json``.

    fp4patch verify --variant next3 --json counts.json TREE && python -m tools.record_counts counts.json

A row has the largest counts of all releases that were recorded, and takes the place of limits that a person set.
Documents of further releases are added to what there is; to measure anew, delete the variant's file, or a line of it,
first. Rows that failed are left out, but for the comparison with the record itself: longer code that is meant is
recorded this way.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fp4patch.core.errors import Fp4PatchError
from fp4patch.proof.counts import METRICS, RULE, Records, Row, file_of, recorded, release_of


def add(records: Records, report: Mapping[str, Any]) -> Records:
    """Return the records of a variant with the rows of one tree's document."""
    added, compiler = dict(records), release_of(report["toolchain"]["nvcc"])
    for row in report["results"]:
        failed = [check["rule"] for check in row["checks"] if check["verdict"] != "pass" and check["rule"] != RULE]
        if failed or row["kind"] != "sass" or row["identical"] or not row["after"]:
            continue
        name, counts = (compiler, row["probe"], row["arch"]), [row["after"][metric] for metric in METRICS]
        known = added.get(name)
        if known and known.counted:
            counts = [max(old or 0, new) for old, new in zip(known.numbers, counts, strict=True)]
        added[name] = Row(tuple(counts), counted=True)
    return added


def text(records: Records, releases: Mapping[str, Iterable[str]]) -> str:
    """Return the file of a variant: a line for each probe and target."""
    parts = [
        f'"metrics": {json.dumps(METRICS)}',
        f'"releases": {json.dumps({target: sorted(found) for target, found in sorted(releases.items())})}',
        f'"counts": {_rows(records, counted=True)}',
        f'"limits": {_rows(records, counted=False)}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(records: Records, *, counted: bool) -> str:
    compilers: dict[str, list[str]] = {}
    for (compiler, probe, arch), row in sorted(records.items()):
        if row.counted is counted:
            compilers.setdefault(compiler, []).append(f'"{probe} {arch}": {json.dumps(row.numbers)}')
    parts = [f'"{compiler}": {{\n' + ",\n".join(rows) + "\n}" for compiler, rows in compilers.items()]
    return "{\n" + ",\n".join(parts) + "\n}" if parts else "{}"


def record(documents: Iterable[Path]) -> None:
    """Write the counts of these documents beside what the variants' files have."""
    for path in documents:
        document = json.loads(path.read_text(encoding="utf-8"))
        for report in document.get("trees", [document]):
            file = file_of(report["variant"])
            known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"releases": {}}
            releases = known["releases"]
            releases[report["target"]] = {*releases.get(report["target"], ()), report["version"]}
            recorded.cache_clear()
            records = add(recorded(file), report)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text(records, releases), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        record(map(Path, sys.argv[1:]))
    except Fp4PatchError as error:
        sys.exit(f"error: {error.message}")
