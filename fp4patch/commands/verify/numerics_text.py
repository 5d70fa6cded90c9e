"""Results of ``verify --numerics``, as text: mismatches by class of input, and the first of them."""

import struct
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.commands import terminal
from fp4patch.commands.terminal import STYLES, folded, number, whole
from fp4patch.proof.inputs import InputClass, Mismatch, NumericsReport

MAGNITUDES = ("0", "0.5", "1", "1.5", "2", "3", "4", "6")
COLUMNS = (
    ("finite", (InputClass.FINITE,)),
    ("infinity", (InputClass.INFINITE,)),
    ("±0", (InputClass.ZERO, InputClass.NEGATIVE_ZERO)),
    ("+NaN", (InputClass.NAN,)),
    ("-NaN", (InputClass.NEGATIVE_NAN,)),
)
"""The table's columns, and the classes that each counts."""


def table(reports: Sequence[NumericsReport], notes: Sequence[str]) -> RenderableType:
    """Return the mismatches of each subject by class of input, the first that break the promise, and the notes."""
    columns = [folded("all 2^32 inputs through"), folded("where"), *(number(name) for name, _ in COLUMNS)]
    rows: list[Sequence[RenderableType]] = [
        (
            *(report.subject, report.where),
            *(cell(report, classes) for _, classes in COLUMNS),
            *(f"{report.seconds:.1f}", Text(report.verdict.value, style=STYLES[report.verdict])),
        )
        for report in reports
    ]
    body = terminal.table([*columns, number("s"), whole("verdict")], rows)
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


def error(mismatch: Mismatch) -> float:
    """Return the distance of the result from the expected value; of codes that are not E2M1, of the codes."""
    if max(mismatch.got, mismatch.expected) > 15:
        return abs(mismatch.got - mismatch.expected)
    got, expected = (
        float(MAGNITUDES[code & 7]) * (-1 if code & 8 else 1) for code in (mismatch.got, mismatch.expected)
    )
    return abs(got - expected)


def sentence(mismatch: Mismatch) -> str:
    """Return ``0x3e800001 (0.25000003) gives 0x0 (0), not 0x1 (0.5)``."""
    (number,) = struct.unpack("<f", struct.pack("<I", mismatch.input))
    got, expected = _nibble(mismatch.got), _nibble(mismatch.expected)
    return f"{mismatch.input:#010x} ({number:.9g}) gives {got}, not {expected}"


def _nibble(code: int) -> str:
    value = f" ({'-' if code & 8 else ''}{MAGNITUDES[code & 7]})" if code < 16 else ""
    return f"{code:#x}{value}"
