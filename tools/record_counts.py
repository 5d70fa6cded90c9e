"""Record how many instructions the code of each probe has, from documents of ``fp4patch verify --json``.

    fp4patch verify --variant next3 --json counts.json TREE && python -m tools.record_counts counts.json

A limit is the largest count of all releases that were recorded, and 15 % more: verify fails above it. Documents
of further releases are added to what there is; to measure anew, delete the variant's file, or a line of it, first. Rows
that failed are left out, but for the comparison with the record itself: longer code that is meant is recorded this way.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fp4patch.core.errors import Fp4PatchError
from fp4patch.proof.counts import METRICS, RULE, TOLERANCE, file_of, recorded, release_of

Recorded = dict[str, dict[str, dict[str, str]]]


def add(records: Recorded, report: Mapping[str, Any]) -> None:
    """Put the rows of one tree's document into the records of its variant."""
    probes = records.setdefault(release_of(report["toolchain"]["nvcc"]), {})
    for row in report["results"]:
        failed = [check["rule"] for check in row["checks"] if check["verdict"] != "pass" and check["rule"] != RULE]
        if failed or row["kind"] != "sass" or row["identical"] or not row["after"]:
            continue
        rows = probes.setdefault(row["probe"], {})
        known = rows.get(row["arch"], "0 0 0 0").split(" ")
        limits = (row["after"][name] * (100 + TOLERANCE) // 100 for name in METRICS)
        larger = (old if old == "*" else str(max(int(old), new)) for old, new in zip(known, limits, strict=True))
        rows[row["arch"]] = " ".join(larger)


def text(records: Recorded, releases: Mapping[str, Iterable[str]]) -> str:
    """Return the file of a variant: one line for each probe, with the targets that have the same counts together."""
    data: dict[str, Any] = {"releases": {target: sorted(found) for target, found in sorted(releases.items())}}
    lines = [f'{{\n"releases": {json.dumps(data["releases"])},\n"counts": {{']
    for compiler, probes in sorted(records.items()):
        lines.append(f'"{compiler}": {{')
        rows = []
        for probe, targets in sorted(probes.items()):
            grouped: dict[str, list[str]] = {}
            for arch, counts in sorted(targets.items()):
                grouped.setdefault(counts, []).append(arch)
            rows.append(f"{json.dumps(probe)}: {json.dumps({key: ' '.join(archs) for key, archs in grouped.items()})}")
        lines += [",\n".join(rows), "},"]
    lines[-1] = "}" if records else lines[-1]
    return "\n".join([*lines, "}", "}", ""])


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
            records: Recorded = {
                compiler: {probe: dict(rows) for probe, rows in probes.items()}
                for compiler, probes in recorded(file).items()
            }
            add(records, report)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text(records, releases), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        record(map(Path, sys.argv[1:]))
    except Fp4PatchError as error:
        sys.exit(f"error: {error.message}")
