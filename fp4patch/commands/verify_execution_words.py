"""Results of executing machine code, as text: a cell of the table, and sentences below it."""

import struct
from collections.abc import Iterator

from fp4patch.proof.execution.result import UPSTREAM, Batch, Executed, Execution, summary
from fp4patch.proof.result import ProbeResult
from fp4patch.proof.sweep_result import Mismatch, NumericsRow

MAGNITUDES = ("0", "0.5", "1", "1.5", "2", "3", "4", "6")
"""Values of the E2M1 codes 0 to 7."""


def of(executed: Executed | None, result: ProbeResult) -> Execution | None:
    """Return the execution of the patched side of a probe on an architecture, if there is one."""
    for one in executed.executions if executed else ():
        if (one.probe, one.arch, one.side) == (result.probe, result.arch, "patched"):
            return one
    return None


def cell(execution: Execution | None) -> str:
    """Return ``0 of 2^32``, ``8,388,607 NaN signs``, ``unsupported``, ``failed``, or a dash if it did not run."""
    if execution is None:
        return "\N{EN DASH}"
    if execution.batch and not execution.problem:
        return f"{execution.batch.mismatches:,} of {execution.batch.inputs:,} {execution.batch.what}"
    if execution.unsupported or execution.report is None:
        return "unsupported" if execution.unsupported else "failed"
    rows = execution.report.rows
    wrong, magnitudes = _mismatches(rows), sum(row.magnitudes for row in rows)
    if not wrong and _mismatches(execution.corners):
        return f"{_mismatches(execution.corners):,} corners"
    if wrong and not magnitudes and all("NaN" in row.cls.value for row in rows if row.mismatches):
        return f"{wrong:,} NaN signs"
    return f"{wrong:,} of 2^{execution.report.bits}"


def sentence(execution: Execution) -> str:
    """Return ``cutlass/float-to-e2m1-x8, patched sm_121a: 4,294,967,296 inputs, 0 mismatches``."""
    signs = f" ({cell(execution)})" if cell(execution).endswith("NaN signs") else ""
    return f"{execution.probe}, {execution.side} {execution.arch}: {summary(execution)}{signs}"


def mismatches(execution: Execution) -> list[str]:
    """Return the first inputs whose result is wrong: those that break the promise, else those that it allows."""
    if execution.report is None:
        return list(execution.batch.first) if execution.batch else []
    wrong = [row for row in (*execution.report.rows, *execution.corners) if row.mismatches]
    rows = [row for row in wrong if row.breaks(execution.report.promise)] or wrong
    return [f"{row.cls.value}  {mismatch_sentence(mismatch)}" for row in rows for mismatch in row.first]


def mismatch_sentence(mismatch: Mismatch) -> str:
    """Return ``0x3e800001 (0.25000003) gives 0x0 (0), not 0x1 (0.5)``."""
    (value,) = struct.unpack("<f", struct.pack("<I", mismatch.input))
    got, expected = _code(mismatch.got), _code(mismatch.expected)
    return f"{mismatch.input:#010x} ({value:.9g}) gives {got}, not {expected}"


def _code(code: int) -> str:
    value = f" ({'-' if code & 8 else ''}{MAGNITUDES[code & 7]})" if code < 16 else ""
    return f"{code:#x}{value}"


def lines(executed: Executed) -> Iterator[str]:
    """Return the lines below the table: the executed code, the comparison of architectures, and the limits of both."""
    patched = [one for one in executed.executions if one.side == "patched" and one.report]
    exact = sum(cell(one).startswith("0 of ") for one in patched)
    signs = sum(cell(one).endswith("NaN signs") for one in patched)
    if patched:
        inputs = " or ".join(f"{1 << bits:,}" for bits in sorted({one.report.bits for one in patched if one.report}))
        yield (
            f"executed on this host: all inputs ({inputs}) through the machine code of {len(patched)} "
            f"patched and {sum(one.side == 'pristine' for one in executed.executions)} pristine kernels; "
            f"0 mismatches in {exact} of the patched" + (f", signs of NaN alone in {signs}" if signs else "")
        )
    if one_lane := [one for one in patched if one.report and not one.report.every_lane]:
        names = ", ".join(f"{one.probe.partition('/')[2]} {one.arch}" for one in one_lane)
        yield f"each input in one lane, boundaries in every lane, since the lanes are not proven alike: {names}"
    every = [one.batch for one in executed.executions if one.side == "patched" and one.batch and not one.problem]
    if batches := [one for one in every if one.against != UPSTREAM]:
        yield (
            f"executed on this host: chosen blocks and codes through the machine code of {len(batches)} patched "
            f"functions, compared with fp4patch.reference byte for byte; wrong bytes in {_wrong(batches)} of them"
        )
    if kernels := [one for one in every if one.against == UPSTREAM]:
        yield (
            f"executed on this host: chosen arguments through the patched kernels of {len(kernels)} source files and "
            f"targets, compared with {UPSTREAM} byte for byte; wrong bytes in {_wrong(kernels)} of them"
        )
    said: dict[str, list[str]] = {}  # probes with the same result share a line
    for one in executed.equivalences:
        said.setdefault(one.comparison, []).append(one.short)
    yield from (f"{', '.join(probes)}: {comparison}" for comparison, probes in said.items())
    yield from executed.notes


def failures(executed: Executed) -> Iterator[str]:
    """Return a sentence for each result that was not as promised, and the first inputs that show it."""
    for one in executed.executions:
        if one.verdict.failed:
            yield sentence(one) + (f"; {one.problem}" if one.problem and one.report else "")
            yield from (f"  {line}" for line in mismatches(one)[:4])
    for pair in executed.equivalences:
        if pair.verdict.failed:
            yield pair.sentence


def _wrong(batches: list[Batch]) -> int:
    return sum(one.mismatches > 0 for one in batches)


def _mismatches(rows: tuple[NumericsRow, ...]) -> int:
    return sum(row.mismatches for row in rows)
