"""Results of ``verify --numerics``, as JSON and as text: mismatches by class of input, and the first of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fp4patch.core.verdict import Verdict
from fp4patch.proof.inputs import InputClass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from fp4patch.proof.inputs import Mismatch, NumericsReport

MAGNITUDES = ("0", "0.5", "1", "1.5", "2", "3", "4", "6")
COLUMNS = (
    ("finite", (InputClass.FINITE,)),
    ("infinity", (InputClass.INFINITE,)),
    ("±0", (InputClass.ZERO, InputClass.NEGATIVE_ZERO)),
    ("+NaN", (InputClass.NAN,)),
    ("-NaN", (InputClass.NEGATIVE_NAN,)),
)
"""The table's columns, and the classes that each counts."""

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red"}


def document(report: NumericsReport) -> dict[str, Any]:
    """Return one subject: "sweep" in docs/json.md."""
    return {
        "subject": report.subject,
        "where": report.where,
        "lanes": report.lanes,
        "every_lane": report.every_lane,
        "inputs": report.inputs,
        "promise": report.promise.value,
        "verdict": report.verdict.value,
        "seconds": round(report.seconds, 3),
        "classes": [
            {
                "class": row.cls.value,
                "inputs": row.inputs,
                "mismatches": row.mismatches,
                "magnitudes": row.magnitudes,
                "first": [{"input": f"{m.input:#010x}", "expected": m.expected, "got": m.got} for m in row.first],
            }
            for row in report.rows
        ],
    }


def table(reports: Sequence[NumericsReport], notes: Sequence[str]) -> RenderableType:
    """Return the mismatches of each subject by class of input, the first that break the promise, and the notes."""
    body = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    body.add_column("all 2^32 inputs through", overflow="fold")
    body.add_column("where", overflow="fold")
    for name, _ in COLUMNS:
        body.add_column(name, justify="right", no_wrap=True)
    body.add_column("s", justify="right", no_wrap=True)
    body.add_column("verdict", no_wrap=True)
    for report in reports:
        body.add_row(
            report.subject,
            report.where,
            *(cell(report, classes) for _, classes in COLUMNS),
            f"{report.seconds:.1f}",
            Text(report.verdict.value, style=STYLES[report.verdict]),
        )
    parts: list[RenderableType] = [body]
    for report in reports:
        lines = list(first(report))
        if report.verdict.failed:
            parts.append(Text(f"fail: {report.subject}, {report.where}, promises {report.promise.value}", "bold red"))
            parts += [Text(f"  {line}") for line in lines] or [Text(f"  {report.inputs:,} inputs ran, and not all")]
    parts += [Text(note, style="dim") for note in notes]
    return Group(*parts)


def cell(report: NumericsReport, classes: Sequence[InputClass]) -> str:
    """Return ``0``, ``245,282``, or ``8,388,607 signs`` if only signs mismatch."""
    rows = [row for row in report.rows if row.cls in classes]
    mismatches, magnitudes = sum(row.mismatches for row in rows), sum(row.magnitudes for row in rows)
    return f"{mismatches:,}" + (" signs" if mismatches and not magnitudes else "")


def first(report: NumericsReport) -> Iterator[str]:
    """Return the first mismatches in words: those that break the promise, else those that it allows."""
    wrong = [row for row in report.rows if row.mismatches]
    for row in [row for row in wrong if row.breaks(report.promise)] or wrong:
        for mismatch in row.first:
            yield f"{row.cls.value}  {sentence(mismatch)}"


def sentence(mismatch: Mismatch) -> str:
    """Return ``0x3e800001 (0.25000003) gives 0x0 (0), not 0x1 (0.5)``."""
    (number,) = struct.unpack("<f", struct.pack("<I", mismatch.input))
    got, expected = _nibble(mismatch.got), _nibble(mismatch.expected)
    return f"{mismatch.input:#010x} ({number:.9g}) gives {got}, not {expected}"


def _nibble(code: int) -> str:
    value = f" ({'-' if code & 8 else ''}{MAGNITUDES[code & 7]})" if code < 16 else ""
    return f"{code:#x}{value}"
