"""Reports of ``doctor``, as text."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.binaries.findings import Answer, Finding, Level, worst
from fp4patch.binaries.known_programs import known
from fp4patch.catalog.manifest import load
from fp4patch.console import STATES, Hanging, folded, number, printable, table, whole
from fp4patch.core.wording import counted
from fp4patch.doctor.result import FindingsReport, ProjectReport, TreeReport

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


def machine_text(machine: FindingsReport) -> RenderableType:
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


def log_text(log: FindingsReport) -> RenderableType:
    """Return the first cause that a log has, with its line, the cause and the next step; then the others."""
    return Group(findings_text(log.findings), Text(printable(log.name), style="bold"), Text())


def tree_text(tree: TreeReport, *, details: bool) -> RenderableType:
    """Return the answer for each GPU, what to apply and to look at; with ``details`` also the patches."""
    heading = Text.assemble(
        (load().target(tree.target).title, "bold"), f" {_version(tree)}  ", (printable(tree.root), "dim")
    )
    parts: list[RenderableType] = [answers_text(tree.answers), heading, _recommendation(tree)]
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
    if not tree.releases:
        return f"{tree.version or 'of no stated version'} (not a surveyed release by content)"
    if tree.version in tree.releases:
        return tree.version
    return f"{' or '.join(tree.releases)} (by content; it states {tree.version or 'none'})"


def _patches(tree: TreeReport) -> RenderableType:
    rows = [
        (f"  {row.patch}", Text(row.state.value, style=STATES[row.state]), Text(printable(row.because)))
        for row in tree.patches
    ]
    return table([whole(), whole(), folded()], rows)


def _recommendation(tree: TreeReport) -> RenderableType:
    rows: list[Sequence[RenderableType]] = []
    if tree.variant:
        rows.append(("", "applied", tree.variant))
    elif tree.recommended.variant is not None:
        rows.append(("", "recommended", f"{tree.recommended.variant or 'nothing'}: {tree.recommended.because}"))
    if tree.recommended.next:
        rows.append(("", "next", Text(printable(tree.recommended.next), style="bold")))
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
