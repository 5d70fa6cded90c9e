"""Reports of ``doctor``, as text and as a JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fp4patch.commands.words import printable
from fp4patch.core.arch import GPUS, Reach
from fp4patch.core.schema import SCHEMA
from fp4patch.core.state import State
from fp4patch.inspect.findings import Finding, Level, worst
from fp4patch.inspect.known import known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from fp4patch.adapters.result import BuildRow
    from fp4patch.commands.doctor.result import MachineReport, Outlook, RecipeReport, TreeReport

MARK = {Level.GREEN: "✓", Level.YELLOW: "!", Level.RED: "✗", Level.NONE: "\N{EN DASH}"}
COLOUR = {Level.GREEN: "green", Level.YELLOW: "yellow", Level.RED: "bold red", Level.NONE: "dim"}
STATE_COLOUR = {
    State.APPLIED: "green",
    State.UPSTREAMED: "cyan",
    State.NOT_NEEDED: "cyan",
    State.OUTDATED: "yellow",
    State.REVERSED: "yellow",
    State.DRIFTED: "red",
    State.FOREIGN: "red",
}
REACH_COLOUR = {Reach.SUFFIXED: "green", Reach.BARE: "yellow", Reach.PARTLY: "yellow", Reach.NOTHING: "red"}
NONE = "\N{EN DASH}"
SUBJECT = 22
"""Width in columns of a finding's subject."""


# --- JSON ------------------------------------------------------------------------------------------------------------


def document(
    machine: MachineReport | None,
    trees: Sequence[TreeReport],
    recipes: Sequence[RecipeReport],
    binaries: Sequence[dict[str, Any]],
    levels: Sequence[Level],
) -> dict[str, Any]:
    """Return the JSON document that docs/json.md describes."""
    return {
        "schema": SCHEMA,
        "verdict": worst(levels).value,
        "machine": asdict(machine) | {"level": machine.level} if machine else None,
        "trees": [_tree_document(tree) for tree in trees],
        "recipes": [asdict(one) for one in recipes],
        "binaries": list(binaries),
    }


def _tree_document(tree: TreeReport) -> dict[str, Any]:
    return {
        "tree": tree.root,
        "target": tree.target,
        "version": tree.claims,
        "content": asdict(tree.content),
        "level": tree.level,
        "variant": tree.variant,
        "state": tree.state,
        "patches": [asdict(patch) for patch in tree.patches],
        "builds": [asdict(row) | {"setting": tree.setting} for row in tree.builds],
        "recommended": {
            "variant": tree.advice.variant if tree.advice else None,
            "because": tree.advice.because if tree.advice else "",
            "next": tree.next_command,
        },
        "findings": [asdict(finding) for finding in tree.findings],
        "gpus": [asdict(outlook) for outlook in tree.outlooks],
    }


# --- text ------------------------------------------------------------------------------------------------------------


def machine_text(machine: MachineReport) -> RenderableType:
    """Return a heading, then each section's findings, each with its remedy below it."""
    parts: list[RenderableType] = [Text.assemble(("this machine", "bold"), f"  {machine.name}")]
    for section in machine.sections:
        parts += [Text(), Text(section.title, style="bold"), findings_text(section.findings)]
    return Group(*parts, Text())


def findings_text(findings: Iterable[Finding]) -> RenderableType:
    """Return mark, subject and finding; the remedy and the link are on lines of their own."""
    table = _grid()
    for finding in findings:
        text = Text(printable(finding.found))
        if finding.remedy:
            text.append("\n→ ", style=COLOUR[finding.level])
            text.append(finding.remedy)
        if finding.link:
            text.append(f"\n{finding.link}", style="dim")
        table.add_row(Text(MARK[finding.level], style=COLOUR[finding.level]), Text(printable(finding.subject)), text)
    return table


def recipe_text(recipe: RecipeReport) -> RenderableType:
    """Return the recipes' place, and a finding for each that takes SM121 out of CUTLASS's guard."""
    heading = Text.assemble(("build recipes", "bold"), f"  {printable(recipe.path)}, {recipe.read} read")
    known_recipe = known().recipe
    said = f"no command or patch takes {known_recipe.macro} out of it"
    good = Finding(Level.GREEN, known_recipe.subject, said)
    return Group(heading, Text(), findings_text(recipe.findings or [good]), Text())


def tree_text(tree: TreeReport) -> RenderableType:
    """Return the report on a tree: its kind, patches, build, findings, the result of each GPU, and the next command."""
    heading = Text.assemble((tree.title, "bold"), f" {_version(tree)}  ", (printable(tree.root), "dim"))
    parts: list[RenderableType] = [heading]
    parts += [Text(), Text("patches", style="bold"), _patches(tree)]
    if tree.builds:
        parts += [Text(), _builds_heading(tree), _builds(tree.builds)]
    if tree.findings:
        parts += [Text(), Text("attention", style="bold"), findings_text(tree.findings)]
    parts += [Text(), Text("verdict", style="bold"), _outlooks(tree.outlooks), _recommendation(tree), Text()]
    return Group(*parts)


def summary(levels: Sequence[Level]) -> RenderableType:
    """Return one line: the worst level, and the number of findings of each level that is not green."""
    level = worst(levels)
    counts = [f"{levels.count(one)} {one.value}" for one in (Level.RED, Level.YELLOW) if one in levels]
    tail = ", ".join(counts) or "all well"
    return Text.assemble((level.value.upper(), f"{COLOUR[level]} bold"), f"  {tail}")


def _version(tree: TreeReport) -> str:
    content = tree.content
    if tree.claims and content.releases:
        return tree.claims
    if content.releases:
        return f"{' or '.join(content.releases)} (by content; it states none)"
    nearest = (
        f"; nearest to {content.nearest}, {content.differs} of {content.of} files differ" if content.nearest else ""
    )
    return f"{tree.claims or 'of no stated version'} (not a surveyed release by content{nearest})"


def _patches(tree: TreeReport) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in tree.patches:
        says = Text(row.because or f"for {', '.join(row.variants)}", style="" if row.because else "dim")
        applied = row.state is State.APPLIED and tree.variant
        if applied:
            says = Text(f"by {tree.variant}", style="dim")
        table.add_row(Text(f"  {row.patch}"), Text(row.state.value, style=STATE_COLOUR.get(row.state, "")), says)
    return table


def _builds_heading(tree: TreeReport) -> Text:
    known = next((row for row in tree.builds if not row.error), None)
    if known is None:
        how = ""
    elif known.on:
        how = " on each GPU, by its own Python"
    else:
        how = ", as recorded of this release" if known.recorded else ", by its own CMake functions"
    return Text.assemble(("build", "bold"), (f"  what it makes of {tree.setting}{how}", "dim"))


def _builds(rows: Sequence[BuildRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("  CUDA", "list", "FP4 kernels", *GPUS):
        table.add_column(heading, no_wrap=True)
    previous = ""
    for row in rows:
        for asked, made, reaches in _cells(row):
            cuda = row.cuda if row.cuda != previous else ""
            table.add_row(f"  {cuda}", asked, made, *(reaches.get(gpu, Text(NONE)) for gpu in GPUS))
            previous = row.cuda
    return table


def _cells(row: BuildRow) -> list[tuple[str, Text, dict[str, Text]]]:
    """Return arch list, its build result, and the support of each GPU. If GPUs differ, each has its own line."""
    asked = row.asked or "unset"
    if row.error:
        return [(asked, Text("not evaluated", style="dim"), {})]
    if row.stops:
        return [
            (asked, Text("stops", style="red"), {gpu: Text(r.value, style="red") for gpu, r in row.reaches.items()})
        ]
    reaches = {gpu: Text(reach.value, style=REACH_COLOUR[reach]) for gpu, reach in row.reaches.items()}
    if not row.on:
        return [(asked, Text(", ".join(row.kernels) or NONE), reaches)]
    if len({there.targets for there in row.on.values()}) == 1:
        return [(asked, Text(row.on[GPUS[0]].targets), reaches)]
    return [(f"{asked}, on {gpu}", Text(there.targets), {gpu: reaches[gpu]}) for gpu, there in row.on.items()]


def _outlooks(outlooks: Sequence[Outlook]) -> Table:
    table = _grid()
    for line in outlooks:
        text = Text.assemble((line.verdict, COLOUR[line.level]), f": {line.because}")
        if line.todo:
            text.append("\n→ ", style=COLOUR[line.level])
            text.append(line.todo)
        table.add_row(Text(MARK[line.level], style=COLOUR[line.level]), Text(line.gpu), text)
    return table


def _recommendation(tree: TreeReport) -> Table:
    table = _grid()
    if tree.variant:
        table.add_row("", Text("applied"), Text(printable(tree.variant)))
    elif tree.advice and tree.advice.variant:
        table.add_row("", Text("recommended"), Text(f"{tree.advice.variant}: {tree.advice.because}"))
    elif tree.advice:
        table.add_row("", Text("recommended"), Text(f"nothing: {tree.advice.because}"))
    if tree.next_command:
        table.add_row("", Text("next"), Text(printable(tree.next_command), style="bold"))
    return table


def _grid() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(width=3, justify="right", no_wrap=True)
    table.add_column(width=SUBJECT, overflow="fold")
    table.add_column(overflow="fold")
    return table
