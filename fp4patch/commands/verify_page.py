"""The HTML page of verify: one file without network that shows the machine code before and after.

Its contents are prepared here and in ``verify_rows``; ``verify_page.html.j2`` lays them out, and escapes everything.
The listings are compressed, and ``verify_page.js`` shows them; all else is there without script.
"""

import base64
import shlex
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import verify_execution_words as execution
from fp4patch.commands import verify_words as summary
from fp4patch.commands import words
from fp4patch.commands.templates import own_script, render
from fp4patch.commands.verify_effect import effect
from fp4patch.commands.verify_rows import CLASSES, MARKS, MINUS, ROW_CLASS, Stretch, operands, stretches_of
from fp4patch.core.wording import counted, listed
from fp4patch.proof.listing import DiffKind
from fp4patch.proof.result import ProbeResult, VerifyReport
from fp4patch.proof.verdict import headline, reason
from fp4patch.sass.instruction import InstructionClass


@dataclass(frozen=True)
class Section:
    """One probe on one architecture."""

    anchor: str
    result: ProbeResult
    reason: str
    comparison: str
    stretches: tuple[Stretch, ...]
    delta: tuple[tuple[str, str, str], ...]
    """Differences in number: CSS class, words, signed number."""


@dataclass(frozen=True)
class Tree:
    """One report with what the page derives from it."""

    report: VerifyReport
    sections: tuple[Section, ...]
    groups: tuple[tuple[Section, ...], ...]
    """The same sections; neighbours of one probe together."""
    names: dict[str, str]
    command: str
    effect: tuple[str, ...]
    not_run: dict[str, list[str]]
    """Probes that did not run, by their reason."""

    @property
    def columns(self) -> dict[str, str]:
        """Numbers of the table beside the instructions, by their heading; local memory only where there is some."""
        metrics = [side for section in self.sections for side in (section.result.before, section.result.after) if side]
        local = {"Local memory": "local"} if any(side.local for side in metrics) else {}
        return {"Branches": "branches", "FP4 conversions": "fp4", **local, "Registers": "registers"}


def page(reports: Sequence[VerifyReport]) -> str:
    """Return the page over the trees of one verify as a complete string: no request, one script, everything escaped."""
    trees = [_tree(report, f"t{number}") for number, report in enumerate(reports, start=1)]
    shown = {
        instruction.cls
        for tree in trees
        for section in tree.sections
        for listing in (section.result.before, section.result.after)
        if listing
        for instruction in listing.instructions
    }
    context: dict[str, Any] = {
        "packed": packed,
        "script": own_script(Path(__file__).parent / "verify_page.js"),
        "head": headline(reports),
        "trees": trees,
        "legend": [CLASSES[cls] for cls in InstructionClass if cls in shown],
        "words": words,
        "classes": CLASSES,
        "marks": MARKS,
        "row_class": ROW_CLASS,
        "operands": operands,
        "summary": summary,
        "execution": execution,
    }
    rendered = render("verify_page.html.j2", Path(__file__).parent, **context)
    # A path that is not UTF-8 arrives as lone surrogates, which no file can hold.
    return rendered.encode("utf-8", "backslashreplace").decode("utf-8")


def packed(markup: Markup) -> str:
    """Return a part of the page compressed, as base64: listings repeat themselves."""
    return base64.b64encode(zlib.compress(markup.encode("utf-8", "backslashreplace"), 9)).decode()


def _tree(report: VerifyReport, prefix: str) -> Tree:
    sections = tuple(_section(result, f"{prefix}-{number}") for number, result in enumerate(report.results, start=1))
    archs = ",".join(str(arch) for arch in report.arch)
    command = [
        "fp4patch",
        "verify",
        "--variant",
        report.variant,
        *(["--arch", archs] if archs else []),
        *(["--execute"] if report.executed else []),
        report.tree,
    ]
    groups = tuple(tuple(group) for _, group in groupby(sections, key=lambda section: section.result.probe))
    return Tree(
        report,
        sections,
        groups,
        summary.short_names(report.results),
        shlex.join(command),
        tuple(effect(report)),
        summary.not_run(report),
    )


def _section(result: ProbeResult, anchor: str) -> Section:
    delta = result.diff.delta if result.diff else {}
    return Section(
        anchor=anchor,
        result=result,
        reason=reason(result),
        comparison=_comparison(result),
        stretches=stretches_of(result),
        delta=tuple((*CLASSES[cls], f"{number:+d}".replace("-", MINUS)) for cls, number in delta.items()),
    )


def _comparison(result: ProbeResult) -> str:
    """Return a summary of the difference between the two listings, in one line."""
    before, after, diff = result.before, result.after, result.diff
    if result.kind is ProbeKind.HOST:
        return "Device and host pass of a whole object file: it only has to compile, so there is no listing."
    if before is None or after is None or diff is None:
        sides = [side for side, listing in (("before", before), ("after", after)) if listing]
        return f"Only machine code {listed(sides)} the patches, not compared." if sides else "There is no machine code."
    if diff.identical:
        return f"Identical: not one byte of the {counted(before.count(), 'instruction')} differs."
    kinds = [row.kind for row in diff.rows]
    counts = [
        f"{kinds.count(kind):,} {word}"
        for kind, word in ((DiffKind.REMOVED, "removed"), (DiffKind.ADDED, "added"), (DiffKind.CHANGED, "changed"))
        if kind in kinds
    ]
    if not counts:
        return "The same instructions, up to the numbering of registers; the bytes differ."
    of = f"Of {counted(before.count(), 'instruction')} before and {after.count():,} after"
    return f"{of}: {listed(counts)}."
