"""Results of ``fp4patch bench``: a table, and a bar chart as SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.commands import terminal
from fp4patch.commands.bench.result import BenchReport, BenchRow, Rate
from fp4patch.commands.templates import render
from fp4patch.commands.terminal import NONE, folded, number

GIGA = 1e9


def table(report: BenchReport) -> RenderableType:
    """Return a table, the fastest first: rates in 10^9 values per second and as ratios, and wrong results."""
    heads = ("in registers", "ratio", "from memory", "ratio", "wrong", "NaN sign")
    rows = [
        (
            row.name,
            *_cells(row.registers),
            *_cells(row.memory),
            Text(f"{row.wrong + row.wrong_nans:,}", style="bold red" if row.wrong + row.wrong_nans else ""),
            "differs" if row.nan_signs else "same",
        )
        for row in report.rows
    ]
    body = terminal.table([folded("float → E2M1, 8 values"), *map(number, heads)], rows)
    head = f"{report.device} ({report.arch}), nvcc {report.nvcc}, fp4patch {report.fp4patch}"
    how = f"10^9 values a second, median of {report.repeats}; ratios to predicate_sum in the same run"
    return Group(
        Text(head, style="bold"), Text(), body, Text(), *(Text(note, style="dim") for note in (how, *report.notes))
    )


def _cells(rate: Rate | None) -> tuple[str, str]:
    return (f"{rate.median / GIGA:,.0f}", f"{rate.ratio:.2f}") if rate else (NONE, NONE)


def chart(report: BenchReport) -> str:
    """Return a bar chart of the rates in registers, the fastest on top.

    It is a complete SVG that follows the reader's colour scheme.
    """
    rows = [row for row in report.rows if row.registers]
    longest = max((row.registers.median for row in rows if row.registers), default=1.0)
    return render("bench.svg.j2", Path(__file__).parent, report=report, bars=_bars(rows, longest))


def _bars(rows: Sequence[BenchRow], longest: float) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "width": round(440 * row.registers.median / longest, 1),
            "text": f"{row.registers.median / GIGA:,.0f}  ({row.registers.ratio:.2f}×)",
            "ours": not row.nan_signs and row.registers.ratio > 1,
        }
        for row in rows
        if row.registers
    ]
