"""Lines about what ``fp4patch verify`` measured: code that changed, and inputs that were executed."""

from collections.abc import Iterator, Mapping
from typing import Any


def lines(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines about one tree's JSON document."""
    return (*_compiled(report), *_executed(report))


def _compiled(report: Mapping[str, Any]) -> Iterator[str]:
    tools = report["toolchain"]
    yield f"Instructions, branches and registers of each probe (nvcc {tools['nvcc']}, ptxas {tools['ptxas']}):"
    for result in report["results"]:
        before, after = result["before"], result["after"]
        if before and after and not result["identical"]:
            counts = (f"{before[key]} -> {after[key]}" for key in ("instructions", "branches", "registers"))
            yield f"  {result['probe']} {result['arch']}: {', '.join(counts)}"
    same = sum(result["identical"] is True for result in report["results"])
    yield f"  machine code of {same} other compilations is identical"


def _executed(report: Mapping[str, Any]) -> Iterator[str]:
    sweeps = [
        (one, one["sweep"])
        for one in (report["executed"] or {"executions": ()})["executions"]
        if one["side"] == "patched" and one["sweep"]
    ]
    if sweeps:
        yield "Executed from the machine code on a CPU, compared with the PTX ISA's definition:"
    for one, sweep in sweeps:
        wrong = sum(row["mismatches"] for row in sweep["classes"])
        yield f"  {one['probe']} {one['arch']}: {sweep['inputs']:,} inputs, {wrong:,} differ"
