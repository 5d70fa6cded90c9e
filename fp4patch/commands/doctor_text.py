"""Reports of ``doctor``, as text."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.binaries.findings import Answer, Finding, Level, worst
from fp4patch.binaries.known_programs import known
from fp4patch.console import STATES, Hanging, folded, number, printable, table, whole
from fp4patch.core.results import State
from fp4patch.core.wording import counted
from fp4patch.doctor.messages import LogReport
from fp4patch.doctor.result import MachineReport, ProjectReport, TreeReport

MARK = {Level.GREEN: "✓", Level.YELLOW: "!", Level.RED: "✗", Level.NONE: "?"}
COLOUR = {Level.GREEN: "green", Level.YELLOW: "yellow", Level.RED: "bold red", Level.NONE: "yellow"}
SUBJECT = 22
"""Width in columns of a finding's subject."""


_WIDTH = 80
"""Columns of an answer's first line."""


def answers_text(answers: Iterable[Answer]) -> RenderableType:
    """Return a line for each GPU: mark, GPU, answer and sentence; below it the evidence, then the next step."""
    parts: list[RenderableType] = []
    for one in answers:
        said = {Level.GREEN: "yes", Level.RED: "no", Level.NONE: "not judged"}.get(one.level, "yes, with a reservation")
        if one.level is Level.YELLOW and one.reservations > 1:
            said = f"yes, with {one.reservations} reservations"
        sentence, evidence = one.verdict, one.evidence
        if len(f"{MARK[one.level]} {one.gpu}  {said}: {sentence}") > _WIDTH and sentence.endswith(")"):
            sentence, _, numbers = sentence.removesuffix(")").partition(" (")
            evidence = evidence if evidence and evidence[0].startswith(numbers.split()[0]) else (numbers, *evidence)
        line = Text.assemble((f"{MARK[one.level]} {one.gpu}  {said}", COLOUR[one.level]), f": {printable(sentence)}")
        parts += [line, *(Hanging("    ", fact) for fact in evidence)]
        parts += [Hanging("  → ", one.todo, COLOUR[one.level])] if one.todo else []
    return Group(*parts)


def machine_text(machine: MachineReport) -> RenderableType:
    """Return the worst of all findings and how many there are, then each with its remedy."""
    name = Text(machine.name, style="dim")
    return Group(summary(machine.levels), name, findings_text(machine.findings), Text())


def findings_text(findings: Iterable[Finding]) -> RenderableType:
    """Return mark, subject and finding; the remedy and the link are on lines of their own."""
    return _marked((one.level, one.subject, Text(printable(one.found)), one.remedy, one.link) for one in findings)


def project_text(project: ProjectReport, *, details: bool) -> RenderableType:
    """Return the answers, then the findings; with ``details`` also each place that sets architectures."""
    read = counted(project.read, "file")
    kinds = ", ".join(f"{number} {kind}" for kind, number in project.statements.items())
    heading = Text.assemble(
        (printable(project.path), "bold"), (f"  {read} read{'; FP4 statements: ' if kinds else ''}{kinds}", "dim")
    )
    parts: list[RenderableType] = [answers_text(project.answers), heading]
    known_recipe = known().recipe
    if project.findings:
        parts.append(findings_text(project.findings))
    elif not project.settings or any(setting.cuda for setting in project.settings):
        said = f"no line was found that removes {known_recipe.macro} from {known_recipe.subject}"
        parts.append(Hanging("    ", f"{said}; variables and loops are not followed"))
    if details:
        parts += [Hanging(f"    {one.place}  ", f"{one.name} {one.value}") for one in project.settings]
    return Group(*parts, Text())


def log_text(log: LogReport) -> RenderableType:
    """Return the first cause that a log has, with its line, the cause and the next step; then the others."""
    parts: list[RenderableType] = []
    for one in log.found:
        line = Text.assemble((f"{MARK[one.level]} line {one.line}", COLOUR[one.level]), f": {printable(one.text)}")
        parts += [line, Hanging("    ", one.cause), Hanging("  → ", one.remedy, COLOUR[one.level])]
        parts += [Text(f"    {one.link}", style="dim")] if one.link else []
    if not log.found:
        parts.append(Text(f"{MARK[Level.NONE]} none of the known messages is in it", style=COLOUR[Level.NONE]))
        parts.append(Hanging("  → ", "name the source tree, the build directory, or what was built"))
    heading = Text.assemble((printable(log.path), "bold"), (f"  {counted(log.lines, 'line')} read", "dim"))
    return Group(*parts, heading, Text())


def tree_text(tree: TreeReport, *, details: bool) -> RenderableType:
    """Return the answer for each GPU, what to apply and to look at; with ``details`` also the patches."""
    heading = Text.assemble((tree.title, "bold"), f" {_version(tree)}  ", (printable(tree.root), "dim"))
    parts: list[RenderableType] = [answers_text(tree.outlooks), heading, _recommendation(tree)]
    if tree.findings:
        parts += [findings_text(tree.findings)]
    if details:
        parts += [Text(), Text("patches", style="bold"), _patches(tree)]
    return Group(*parts, Text())


def summary(levels: Sequence[Level]) -> RenderableType:
    """Return one line about a machine: the worst level, and the number of findings that need attention."""
    level = worst(levels)
    counts = [
        f"{levels.count(one)} {word}"
        for one, word in ((Level.RED, "to repair"), (Level.YELLOW, "to note"))
        if one in levels
    ]
    tail = ", ".join(counts) or "nothing to repair was found"
    return Text.assemble((f"{MARK[level]} this machine", COLOUR[level]), f": {tail}")


def _version(tree: TreeReport) -> str:
    content = tree.content
    if tree.claims and content.releases:
        return tree.claims
    if content.releases:
        return f"{' or '.join(content.releases)} (by content; it states none)"
    return f"{tree.claims or 'of no stated version'} (not a surveyed release by content)"


def _patches(tree: TreeReport) -> RenderableType:
    rows: list[Sequence[RenderableType]] = []
    for row in tree.patches:
        says = Text(printable(row.because or f"for {', '.join(row.variants)}"), style="" if row.because else "dim")
        if row.state is State.APPLIED and tree.variant:
            says = Text(printable(f"by {tree.variant}"), style="dim")
        rows.append((f"  {row.patch}", Text(row.state.value, style=STATES[row.state]), says))
    return table([whole(), whole(), folded()], rows)


def _recommendation(tree: TreeReport) -> RenderableType:
    rows: list[Sequence[RenderableType]] = []
    if tree.variant:
        rows.append(("", "applied", tree.variant))
    elif tree.advice:
        rows.append(("", "recommended", f"{tree.advice.variant or 'nothing'}: {tree.advice.because}"))
    if tree.next_command:
        rows.append(("", "next", Text(printable(tree.next_command), style="bold")))
    return table(_GRID, rows, gap=1)


def _marked(rows: Iterable[tuple[Level, str, Text, str, str]]) -> RenderableType:
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
