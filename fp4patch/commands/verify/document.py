"""The JSON document of ``verify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fp4patch.commands.document import problem_document
from fp4patch.commands.verify import execution_text as execution
from fp4patch.commands.verify import numerics_text as numerics
from fp4patch.commands.verify import summary
from fp4patch.core.schema import SCHEMA
from fp4patch.proof.instruction import InstructionClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.catalog.coverage import Covered
    from fp4patch.proof.instruction import SassListing
    from fp4patch.proof.result import ProbeResult, VerifyReport


def verify_document(reports: Sequence[VerifyReport]) -> dict[str, Any]:
    """Return the document that ``verify --json`` writes.

    For one tree it is its :func:`report_document`. For several it has ``schema``, ``verdict`` over all, and ``trees``,
    a list of them. For none it is the same with an empty list, which fails.
    """
    if len(reports) == 1:
        return report_document(reports[0])
    return {
        "schema": SCHEMA,
        "verdict": summary.overall(reports).value,
        "trees": [report_document(report) for report in reports],
    }


def report_document(report: VerifyReport) -> dict[str, Any]:
    """Return one tree's report: "verify of one tree" in docs/json.md."""
    checks = [check for result in report.results for check in result.checks]
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.value,
        "variant": report.variant,
        "target": report.target,
        "version": report.version,
        "tree": report.tree,
        "patches": list(report.patches),
        "arch": [str(arch) for arch in report.arch],
        "toolchain": asdict(report.toolchain),
        "seconds": round(report.seconds, 3),
        "fp4patch": report.fp4patch,
        "finished": report.finished,
        "checks": {"total": len(checks), "failed": sum(check.verdict.failed for check in checks)},
        "results": [result_document(result) for result in report.results],
        "problems": [problem_document(problem) for problem in report.problems],
        "set_aside": [asdict(probe) for probe in report.set_aside],
        "numerics": [numerics.document(one) for one in report.numerics],
        "numerics_notes": list(report.numerics_notes),
        "executed": execution.document(report.executed) if report.executed else None,
        "builds": [asdict(one) | {"verdict": one.verdict.value} for one in report.builds],
        "coverage": [coverage_document(one) for one in report.coverage],
    }


def result_document(result: ProbeResult) -> dict[str, Any]:
    """Return the result of one probe on one architecture: "result" in docs/json.md."""
    diff = result.diff
    return {
        "probe": result.probe,
        "title": result.title,
        "arch": str(result.arch),
        "kind": result.kind.value,
        "verdict": result.verdict.value,
        "error": result.error,
        "cached": result.cached,
        "before": listing_document(result.before) if result.before else None,
        "after": listing_document(result.after) if result.after else None,
        "identical": diff.identical if diff else None,
        "delta": {cls.value: number for cls, number in diff.delta.items()} if diff else None,
        "checks": [
            {"rule": c.rule, "because": c.because, "verdict": c.verdict.value, "detail": c.detail}
            for c in result.checks
        ],
    }


def coverage_document(one: Covered) -> dict[str, Any]:
    """One function that the patches touch: "covered function" in docs/json.md."""
    return {
        "function": one.function,
        "files": list(one.files),
        "checks": [
            {"check": c.check, "arch": str(c.arch), "how": c.how.value, "verdict": c.verdict.value} for c in one.checks
        ],
        "missing": [str(arch) for arch in one.missing],
        "because": one.because,
    }


def listing_document(listing: SassListing) -> dict[str, Any]:
    """Return one kernel's machine code: "listing" in docs/json.md."""
    found = summary.metrics(listing)
    return {
        "function": listing.function,
        "instructions": found.instructions,
        "registers": found.registers,
        "branches": found.branches,
        "fp4": found.fp4,
        "local": found.local,
        "f64": found.f64,
        "classes": {cls.value: number for cls in InstructionClass if (number := listing.count(cls))},
        "code_sha256": listing.code_sha256,
        "listing": _lines(listing),
    }


def _lines(listing: SassListing) -> list[str]:
    lines = []
    for instruction in listing.instructions:
        label = listing.labels.get(instruction.address)
        if label is not None:
            lines.append(f"{label}:")
        lines.append(f"{instruction.address:04x}  {instruction.text}")
    return lines
