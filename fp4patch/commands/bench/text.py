"""Results of ``fp4patch bench``: JSON, a table, and a bar chart as SVG."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fp4patch.commands.templates import render
from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from fp4patch.commands.bench.result import BenchReport, BenchRow, Rate

NONE = "\N{EN DASH}"
GIGA = 1e9


def ordered(report: BenchReport) -> list[BenchRow]:
    """Sort the rows by speed, the fastest first and those that were not measured last."""
    return sorted(report.rows, key=lambda row: -(row.registers.median if row.registers else 0))


def document(report: BenchReport) -> dict[str, Any]:
    """Return the JSON document that docs/json.md describes; the fastest row is first."""
    head = {key: value for key, value in asdict(report).items() if key != "rows"}
    rows = [{"verdict": row.verdict.value, **asdict(row)} for row in ordered(report)]
    return {"schema": SCHEMA, "verdict": report.verdict.value, **head, "notes": list(report.notes), "rows": rows}


def table(report: BenchReport) -> RenderableType:
    """Return a table, the fastest first: rates in 10^9 values per second and as ratios, and wrong results."""
    body = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    body.add_column("float → E2M1, 8 values", overflow="fold")
    for name in ("in registers", "ratio", "from memory", "ratio", "wrong", "NaN sign"):
        body.add_column(name, justify="right", no_wrap=True)
    for row in ordered(report):
        wrong = row.wrong + row.wrong_nans
        body.add_row(
            row.name,
            *_cells(row.registers),
            *_cells(row.memory),
            Text(f"{wrong:,}", style="bold red" if wrong else ""),
            "differs" if row.nan_signs else "same",
        )
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
    rows = [row for row in ordered(report) if row.registers]
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
