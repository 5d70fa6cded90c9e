"""Reports of ``doctor``, as text: the answer first, then its evidence, then what else was found."""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.text import Text

from fp4patch.binaries.findings import Answer, Finding, Level, worst
from fp4patch.binaries.known_programs import known
from fp4patch.binaries.report import BinaryFile, BinaryReport, Fp4Code, LoadOutcome
from fp4patch.catalog.manifest import load
from fp4patch.console import STATES, Hanging, folded, printable, table, whole
from fp4patch.core.wording import counted, joined, listed
from fp4patch.doctor.packages import compiler_finding
from fp4patch.doctor.result import LEVELS, DoctorReport, ProjectReport, TreeReport
from fp4patch.doctor.statements import summary
from fp4patch.images.image import ProofReport

MARK = {Level.GREEN: "✓", Level.YELLOW: "!", Level.RED: "✗", Level.NONE: "?", Level.OTHER: "-"}
COLOUR = {
    Level.GREEN: "green",
    Level.YELLOW: "yellow",
    Level.RED: "bold red",
    Level.NONE: "yellow",
    Level.OTHER: "dim",
}
_WIDTH = 80
"""Columns of an answer's first line."""


def report_text(report: DoctorReport, *, details: bool) -> RenderableType:
    """Return everything that is known about one PATH."""
    parts: list[RenderableType] = []
    if report.machine:
        about = Text(report.machine.name, style="dim")
        parts += [_answers(report.machine.answers)] if report.machine.answers else []
        parts += [_summary("this machine", report.machine.levels), about, _findings(report.machine.findings), Text()]
    parts += [_tree(tree, details=details) for tree in report.trees]
    parts += [_project(project, details=details) for project in report.projects]
    parts += [compiled_text(binary, details=details) for binary in report.binaries]
    parts += [proof_text(proof) for proof in report.proofs]
    for log in (*report.logs, *report.lists):
        parts += [_findings(log.findings), Text(printable(log.name), style="bold"), Text()]
    return Group(*parts)


def _summary(what: str, levels: Sequence[Level]) -> RenderableType:
    """Return one line: the worst level, and the number of findings that need attention."""
    level = worst(levels)
    numbers = ((levels.count(Level.RED), "to repair"), (levels.count(Level.YELLOW), "to note"))
    told = ", ".join(f"{count} {word}" for count, word in numbers if count) or "nothing to repair was found"
    return Text.assemble((f"{MARK[level]} {printable(what)}", COLOUR[level]), f": {told}")


def _answers(answers: Sequence[Answer], *, details: bool = False) -> RenderableType:
    """Return a line for each GPU: mark, GPU, answer, axis and sentence; below it the evidence, then the next step.

    A *yes* is one line without ``details``. What several GPUs in a row have in common is below the last one's line.
    """
    parts: list[RenderableType] = []
    for answer, following in zip_longest(answers, answers[1:]):
        colour = COLOUR[answer.level]
        begin = f"{MARK[answer.level]} {answer.gpu}  {answer.said}"
        parts.append(Text.assemble((begin, colour), printable(_sentence(answer, _WIDTH - len(begin)))))
        evidence = answer.evidence if details else _evidence(answer)
        if following and (_evidence(following), following.todo) == (_evidence(answer), answer.todo) and not details:
            continue
        parts += [Hanging("    ", fact) for fact in evidence]
        parts += [Hanging("  → ", answer.todo, colour)] if answer.todo else []
    return Group(*parts)


def _sentence(answer: Answer, width: int) -> str:
    """Return what decides, with its axis; of a *yes* with exceptions these. What is in parentheses may not fit."""
    told = f": {answer.verdict}"
    if answer.level is Level.GREEN and answer.excepted:
        told = f"; {listed(answer.excepted)} excepted"
    elif answer.level in (Level.RED, Level.YELLOW, Level.NONE):
        told = f" ({answer.axis}): {answer.verdict}"
    if len(told) <= width or answer.level is not Level.GREEN:
        return told
    return re.sub(r" \([^()]*\)", "", told)


def _evidence(answer: Answer) -> tuple[str, ...]:
    """Return what the answer rests on in short: nothing of a *yes*."""
    if answer.level is Level.GREEN:
        return ()
    return (*answer.deciding.evidence, *(f"{one.axis}: {one.sentence}" for one in answer.lesser))


def _findings(findings: Iterable[Finding]) -> RenderableType:
    """Return mark, subject and finding; the remedy and the link are on lines of their own."""
    parts: list[RenderableType] = []
    for finding in findings:
        colour = COLOUR[finding.level]
        parts.append(Hanging(f"{MARK[finding.level]} {printable(finding.subject)}: ", finding.found, colour))
        parts += [Hanging("  → ", finding.remedy, colour)] if finding.remedy else []
        parts += [Text(f"    {printable(finding.link)}", style="dim")] if finding.link else []
    return Group(*parts)


def _project(project: ProjectReport, *, details: bool) -> RenderableType:
    """Return the answers, then the findings; with ``details`` also each place that sets architectures."""
    kinds = summary(project.statements)
    read = f"  {counted(project.read, 'file')} read{'; FP4 statements: ' if kinds else ''}{kinds}"
    parts = [
        _answers(project.answers, details=details),
        Text.assemble((printable(project.path), "bold"), (read, "dim")),
    ]
    said = {fact for answer in project.answers for fact in answer.evidence}
    parts.append(_findings(one for one in project.findings if f"{one.subject}: {one.found}" not in said))
    recipe = known().recipe
    if not project.findings and any(setting.cuda for setting in project.settings):
        unfound = f"no line was found that removes {recipe.macro} from {recipe.subject}"
        parts.append(Hanging("    ", f"{unfound}; variables and loops are not followed"))
    shown = project.settings if details else ()
    return Group(*parts, *(Hanging(f"    {one.place}  ", f"{one.name} {one.value}") for one in shown), Text())


def _tree(tree: TreeReport, *, details: bool) -> RenderableType:
    """Return the answer for each GPU, what to apply and to look at; with ``details`` also the patches."""
    version = f"{tree.version or 'of no stated version'} (not a surveyed release by content)"
    if tree.releases:
        version = f"{' or '.join(tree.releases)} (by content; it states {tree.version or 'none'})"
    version = tree.version if tree.version in tree.releases else version
    title = (load().target(tree.target).title, "bold")
    parts = [
        _answers(tree.answers, details=details),
        Text.assemble(title, f" {version}  ", (printable(tree.root), "dim")),
    ]
    advice = tree.recommended
    if tree.variant:
        parts.append(Hanging("    ", f"applied: {tree.variant}"))
    elif advice.variant is not None:
        parts.append(Hanging("    ", f"recommended: {advice.variant or 'nothing'}, since {advice.because}"))
    parts += [Hanging("  → ", advice.next, "bold")] if advice.next else []
    parts.append(_findings(tree.findings))
    if details:
        rows = ((f"  {p.patch}", Text(p.state.value, style=STATES[p.state]), p.because) for p in tree.patches)
        parts += [Text("patches", style="bold"), table([whole(), whole(), folded()], rows)]
    return Group(*parts, Text())


def proof_text(proof: ProofReport) -> RenderableType:
    """Return whether the statements hold, then each with its result, among them the labels of the image."""
    levels = [LEVELS[row.verdict] for row in proof.statements]
    findings = [Finding(LEVELS[row.verdict], row.subject, row.detail) for row in proof.statements]
    return Group(
        _summary(joined("proof of", proof.subject, proof.image), levels),
        _findings(findings),
        *(Text(f"note: {printable(note)}") for note in proof.notes),
    )


def compiled_text(report: BinaryReport, *, details: bool = False) -> RenderableType:
    """Return the answers; with ``details`` also each file with its architectures and the contents of its FP4 code."""
    findings = [compiler_finding(compiler) for compiler in report.compilers]
    findings = [finding for finding in findings if details or finding.level is not Level.GREEN]
    for row in report.requirements:
        level, told = (Level.GREEN, "met") if row.met else (Level.RED, f"not met: {'; '.join(row.because)}")
        findings.append(Finding(level, "required", f"{row.requirement}: {told}"))
    findings += [Finding(Level.RED, "not read", f"{file.name}: {file.because}", file.help) for file in report.unread]
    parts: list[RenderableType] = [_answers(report.answers, details=details), _findings(findings)]
    for file in report.files if details else ():
        parts += [Text(), _file(file)]
    more = "" if details or not report.files else "; --details lists them"
    searched = counted(report.searched, "file")
    said = f"{decimal(report.size)}, {searched} read, {len(report.files)} with device code{more}"
    said += f"; built from a tree with the variant {report.variant} of fp4patch" if report.variant else ""
    return Group(*parts, Text.assemble((printable(report.source), "bold"), (f"  {said}", "dim")), Text())


def _file(file: BinaryFile) -> RenderableType:
    """Return the contents for each architecture, then what each GPU loads of them."""
    rows = [(f"  {group.arch} ×{group.count}", _contents(group.code)) for group in file.images]
    for row in file.loading:
        told = f"×{row.fatbins}{', without its FP4 code' if row.outcome is LoadOutcome.LOST else ''}"
        rows.append((f"  {row.gpu} loads {row.loads}", told))
    head = Text.assemble((printable(file.name), "bold"), f"  {decimal(file.size)}, {counted(file.fatbins, 'fatbin')}")
    return Group(head, table([whole(), folded()], rows))


def _contents(code: Fp4Code) -> str:
    facts = [
        counted(code.hardware, "hardware conversion") if code.hardware else "",
        *(f"{counted(number, 'value')} by {name}" for name, number in code.encoders.items()),
        counted(code.decodings, "decoding") if code.decodings else "",
        counted(code.matrix, "FP4 matrix instruction") if code.matrix else "",
    ]
    return ", ".join(filter(None, facts))
