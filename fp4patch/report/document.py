"""The JSON documents of verify and of errors: key names that scripts may rely on, written down in one place."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fp4patch.model import SCHEMA, InstructionClass
from fp4patch.report import execution, numerics, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.errors import Fp4PatchError
    from fp4patch.model import ProbeResult, Problem, SassListing, VerifyReport


def verify_document(reports: Sequence[VerifyReport]) -> dict[str, Any]:
    """What ``verify --json`` writes.

    One tree: its :func:`report_document`. Several: ``schema``, ``verdict`` over all, and ``trees``, a list of
    them. None: the same with an empty list, which fails.
    """
    if len(reports) == 1:
        return report_document(reports[0])
    return {
        "schema": SCHEMA,
        "verdict": words.overall(reports).value,
        "trees": [report_document(report) for report in reports],
    }


def report_document(report: VerifyReport) -> dict[str, Any]:
    """One tree's report.

    ========== ========================================================================================
    key        value
    ========== ========================================================================================
    schema     1
    verdict    ``pass`` or ``fail``
    variant, target, version, tree, fp4patch (its version), finished (UTC, ISO 8601): strings
    patches    list of ``"<target>/<patch> <version>"``
    arch       list of ``"sm_121a"``
    toolchain  ``nvcc``, ``ptxas``, ``cicc``, ``nvdisasm``: versions; ``host_compiler``, ``cuda_root``, ``disassembler``
    seconds    wall time
    checks     ``total``, ``failed``: how many there are over all results
    results    list; each as :func:`result_document`
    problems   list; each as :func:`problem_document`
    set_aside  list of ``probe``, ``title``, ``because``: probes that have nothing to show on this tree and did not run
    numerics   list; each as :func:`fp4patch.report.numerics.document`; empty without ``--numerics``
    numerics_notes  list of sentences: where they ran and where not
    executed   null, or as :func:`fp4patch.report.execution.document`: all inputs through the machine code itself
    ========== ========================================================================================
    """
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
    }


def result_document(result: ProbeResult) -> dict[str, Any]:
    """One probe on one architecture.

    ``probe``, ``title``, ``arch``, ``kind`` (``sass``, ``unit``, ``host``), ``verdict`` (``pass``, ``fail``,
    ``unsupported``), ``error`` (the compiler's words, else empty), ``cached``, ``before`` and ``after`` (each null or
    as :func:`listing_document`), ``identical`` (null where two listings were not compared), ``delta`` (instructions
    after minus before, by class, only those that differ; null likewise), and ``checks``: ``rule``, ``because``,
    ``verdict``, ``detail``.
    """
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


def listing_document(listing: SassListing) -> dict[str, Any]:
    """One kernel's machine code.

    ``function``; ``instructions``, ``branches``, ``fp4`` (conversions to or from E2M1), ``local`` and ``f64``:
    numbers of instructions; ``registers``; ``classes``: instructions by class, those that occur; ``code_sha256``;
    ``listing``: lines ``"00a0  @!P0 FSEL R1, R2, RZ, P1"``, and ``".L_x_1:"`` before what a label names.
    """
    found = words.metrics(listing)
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


def problem_document(problem: Problem) -> dict[str, Any]:
    """``patch``, ``file``, ``line``, ``expected``, ``found``, ``nearest``, ``help``, ``state``.

    ``line`` is null where there is none; ``state`` is null, or one of :class:`fp4patch.model.State`.
    """
    return {
        "patch": problem.patch,
        "file": problem.file,
        "line": problem.line,
        "expected": problem.expected,
        "found": problem.found,
        "nearest": problem.nearest,
        "help": problem.help,
        "state": problem.state.value if problem.state else None,
    }


def error_document(error: Fp4PatchError) -> dict[str, Any]:
    """``schema``, ``state`` (``refused``), ``error`` (one sentence), ``help``, ``problems``."""
    return {
        "schema": SCHEMA,
        "state": "refused",
        "error": error.message,
        "help": error.help,
        "problems": [problem_document(problem) for problem in error.problems],
    }


def _lines(listing: SassListing) -> list[str]:
    lines = []
    for instruction in listing.instructions:
        label = listing.labels.get(instruction.address)
        if label is not None:
            lines.append(f"{label}:")
        lines.append(f"{instruction.address:04x}  {instruction.text}")
    return lines
