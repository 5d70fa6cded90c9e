"""The page of verify: one HTML file without network, with the machine code before and after side by side.

``verify_page.html.j2`` lays it out and escapes everything. The listings are compressed data, which ``verify_page.js``
shows when one is opened.
"""

import shlex
from collections.abc import Sequence
from itertools import filterfalse
from pathlib import Path

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import verify_text
from fp4patch.commands.templates import own_script, packed, render
from fp4patch.console import problem_lines
from fp4patch.core.wording import counted, listed
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.listing import DiffKind, DiffRow, SassListing, aligned
from fp4patch.proof.result import ProbeResult, VerifyReport
from fp4patch.proof.verdict import headline, reason
from fp4patch.sass.instruction import Instruction, InstructionClass

HERE = Path(__file__).parent
MARKS = {DiffKind.SAME: "", DiffKind.CHANGED: "~", DiffKind.REMOVED: "\N{MINUS SIGN}", DiffKind.ADDED: "+"}
COLOURED = {InstructionClass.FP4: "fp4", InstructionClass.BRANCH: "branch", InstructionClass.LOCAL: "local"}
"""CSS class of the instructions that rules require or forbid: the others have the colour of text."""


def page(reports: Sequence[VerifyReport]) -> str:
    """Return the page over the trees of one verify as a complete string: no request, one script, everything escaped."""
    rendered = render(
        "verify_page.html.j2",
        HERE,
        script=own_script(HERE / "verify_page.js"),
        head=headline(reports),
        reports=reports,
        texts=verify_text,
        problem_lines=problem_lines,
        reason=reason,
        comparison=comparison,
        executed=executed,
        packed_rows=packed_rows,
        by_change=by_change,
        command=command,
    )
    # A path that is not UTF-8 arrives as lone surrogates, which no file can hold.
    return rendered.encode("utf-8", "backslashreplace").decode("utf-8")


def by_change(results: Sequence[ProbeResult]) -> tuple[list[ProbeResult], list[ProbeResult]]:
    """Return the rows that failed or changed, the greatest difference first, and the others."""

    def changed(row: ProbeResult) -> bool:
        return row.verdict.failed or not (row.identical or row.kind is ProbeKind.HOST)

    return sorted(filter(changed, results), key=verify_text.by_effect), [*filterfalse(changed, results)]


def packed_rows(result: ProbeResult) -> str:
    """Return the rows of both listings: the mark of the difference, and each side's instruction; empty if none."""
    before, after = result.before, result.after
    if result.identical and result.kind is ProbeKind.UNIT:
        return ""  # a whole source file can have tens of thousands of rows, which all say the same
    if before and after:
        rows: Sequence[DiffRow] = aligned(before.instructions, after.instructions)
    else:  # two that were not compared, or one alone: each in full
        left = [DiffRow(DiffKind.REMOVED, code, None) for code in (before.instructions if before else ())]
        rows = [*left, *(DiffRow(DiffKind.ADDED, None, code) for code in (after.instructions if after else ()))]
    shown = [(MARKS[row.kind], _side(before, row.before), _side(after, row.after)) for row in rows]
    return packed(shown) if shown else ""


def _side(listing: SassListing | None, code: Instruction | None) -> tuple[str, str, str, str] | None:
    """Return an instruction's label, address, text and CSS class."""
    if listing is None or code is None:
        return None
    label = listing.labels.get(code.address, "")
    return label, f"{code.address:04x}", code.text, COLOURED.get(code.cls, "")


def comparison(result: ProbeResult) -> str:
    """Return the difference between the two listings in one line."""
    before, after = result.before, result.after
    if result.kind is ProbeKind.HOST:
        return "host pass: it has to compile, and has no listing"
    if before is None or after is None:
        sides = [side for side, listing in (("before", before), ("after", after)) if listing]
        return f"machine code only {listed(sides)} the patches" if sides else "no machine code"
    if result.identical:
        return f"identical: not one byte of the {counted(before.size, 'instruction')} differs"
    kinds = [row.kind for row in aligned(before.instructions, after.instructions)]
    counts = [f"{kinds.count(kind):,} {kind.value}" for kind in DiffKind if kind is not DiffKind.SAME and kind in kinds]
    return f"{before.size:,} → {after.size:,} instructions: {listed(counts) or 'other registers alone'}"


def executed(results: Executed | None, row: ProbeResult) -> str:
    """Return how many inputs of a row's patched code were wrong: ``0 of 2^32``; a dash if it was not executed."""
    for run in results.executions if results else ():
        if (run.probe, run.arch, run.side) != (row.probe, row.arch, "patched"):
            continue
        if run.report and not run.unsupported:
            return f"{verify_text.wrong_inputs(run):,} of 2^{run.report.bits}"
        return f"{run.batch.mismatches:,} of {run.batch.inputs:,} {run.batch.what}" if run.batch else run.verdict.value
    return "\N{EN DASH}"


def command(report: VerifyReport) -> str:
    """Return the command that makes the report again."""
    archs = ["--arch", ",".join(map(str, report.arch))] if report.arch else []
    return shlex.join(["fp4patch", "verify", "--variant", report.variant, *archs, report.tree])
