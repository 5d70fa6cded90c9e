"""Reports of ``doctor``, as text."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries.findings import Finding, Level, worst
from fp4patch.binaries.known_programs import known
from fp4patch.catalog.manifest import load
from fp4patch.commands.terminal import NONE, STATES, folded, number, table, whole
from fp4patch.commands.words import printable
from fp4patch.core.arch import GPUS, Arch, Reach
from fp4patch.core.state import State
from fp4patch.doctor.outlook import kernels_of
from fp4patch.doctor.result import MachineReport, Outlook, RecipeReport, TreeReport

MARK = {Level.GREEN: "✓", Level.YELLOW: "!", Level.RED: "✗", Level.NONE: NONE}
COLOUR = {Level.GREEN: "green", Level.YELLOW: "yellow", Level.RED: "bold red", Level.NONE: "dim"}
REACH_COLOUR = {
    Reach.SUFFIXED: "green",
    Reach.BARE: "yellow",
    Reach.PARTLY: "yellow",
    Reach.PTX: "yellow",
    Reach.NOTHING: "red",
}
SUBJECT = 22
"""Width in columns of a finding's subject."""


def machine_text(machine: MachineReport) -> RenderableType:
    """Return a heading, then each section's findings, each with its remedy below it."""
    parts: list[RenderableType] = [Text.assemble(("this machine", "bold"), f"  {machine.name}")]
    for section in machine.sections:
        parts += [Text(), Text(section.title, style="bold"), findings_text(section.findings)]
    return Group(*parts, Text())


def findings_text(findings: Iterable[Finding]) -> RenderableType:
    """Return mark, subject and finding; the remedy and the link are on lines of their own."""
    return _marked((one.level, one.subject, Text(printable(one.found)), one.remedy, one.link) for one in findings)


def recipe_text(recipe: RecipeReport) -> RenderableType:
    """Return the recipes' place, and a finding for each that takes SM121 out of CUTLASS's guard."""
    heading = Text.assemble(("build recipes", "bold"), f"  {printable(recipe.path)}, {recipe.read} read")
    known_recipe = known().recipe
    said = f"no command or patch removes {known_recipe.macro} from it"
    good = Finding(Level.GREEN, known_recipe.subject, said)
    return Group(heading, Text(), findings_text(recipe.findings or [good]), Text())


def tree_text(tree: TreeReport) -> RenderableType:
    """Return the report on a tree: its kind, patches, build, findings, the result of each GPU, and the next command."""
    heading = Text.assemble((tree.title, "bold"), f" {_version(tree)}  ", (printable(tree.root), "dim"))
    parts: list[RenderableType] = [heading]
    parts += [Text(), Text("patches", style="bold"), _patches(tree)]
    if tree.builds:
        parts += [Text(), _builds_heading(tree), _builds(tree)]
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
    rows: list[Sequence[RenderableType]] = []
    for row in tree.patches:
        says = Text(printable(row.because or f"for {', '.join(row.variants)}"), style="" if row.because else "dim")
        if row.state is State.APPLIED and tree.variant:
            says = Text(printable(f"by {tree.variant}"), style="dim")
        rows.append((f"  {row.patch}", Text(row.state.value, style=STATES[row.state]), says))
    return table([whole(), whole(), folded()], rows)


def _builds_heading(tree: TreeReport) -> Text:
    known = next((row for row in tree.builds if not row.error), None)
    if known is None:
        how = ""
    elif known.on:
        how = " on each GPU, by its own Python"
    else:
        how = ", as recorded of this release" if known.recorded else ", by its own CMake functions"
    return Text.assemble(("build", "bold"), (f"  its result for {tree.setting}{how}", "dim"))


def _builds(tree: TreeReport) -> Table:
    rows: list[Sequence[RenderableType]] = []
    build = load().target(tree.target).build
    assert build, "rows are of a build"
    previous = ""
    for row in tree.builds:
        for asked, made, reaches in _cells(row):
            cuda = row.cuda if row.cuda != previous else ""
            rows.append((f"  {cuda}", asked, made, *(reaches.get(gpu, Text(NONE)) for gpu in GPUS)))
            previous = row.cuda
    return table([*map(whole, ("  CUDA", "list", kernels_of(build), *map(str, GPUS)))], rows, head="dim")


def _cells(row: BuildRow) -> list[tuple[str, Text, dict[Arch, Text]]]:
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
    return _marked(
        (
            one.level,
            str(one.gpu),
            Text.assemble((one.verdict, COLOUR[one.level]), printable(f": {one.because}")),
            one.todo,
            "",
        )
        for one in outlooks
    )


def _recommendation(tree: TreeReport) -> Table:
    rows: list[Sequence[RenderableType]] = []
    if tree.variant:
        rows.append(("", "applied", tree.variant))
    elif tree.advice:
        rows.append(("", "recommended", f"{tree.advice.variant or 'nothing'}: {tree.advice.because}"))
    if tree.next_command:
        rows.append(("", "next", Text(printable(tree.next_command), style="bold")))
    return table(_GRID, rows, gap=1)


def _marked(rows: Iterable[tuple[Level, str, Text, str, str]]) -> Table:
    """Return a line for each level, subject, finding, remedy and link; the last two are on lines of their own."""
    cells = []
    for level, subject, text, remedy, link in rows:
        if remedy:
            text.append("\n→ ", style=COLOUR[level]).append(printable(remedy))
        if link:
            text.append(f"\n{printable(link)}", style="dim")
        cells.append((Text(MARK[level], style=COLOUR[level]), subject, text))
    return table(_GRID, cells, gap=1)


_GRID = (number(width=3), folded(width=SUBJECT), folded())
