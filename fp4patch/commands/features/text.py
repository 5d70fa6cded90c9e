"""Matrix feature × target of ``fp4patch features`` as a table, as Markdown, and in full."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.catalog.feature import Cell, Feature, FeatureGroup, FeatureReport, Outcome, Refusal, ToolkitMatrix
from fp4patch.commands import terminal
from fp4patch.commands.terminal import NONE as NO
from fp4patch.commands.terminal import Fitting, Hanging, folded, whole
from fp4patch.core.arch import Arch
from fp4patch.core.wording import counted

Say = Callable[[Cell], str]

LEGEND = f"{NO} not supported on target; ≈ emulated by"
LEGEND_OF_SEVERAL = f"{NO} rejected; ≈ emulated by"
STYLES = {Outcome.HARDWARE: "green", Outcome.ACCEPTED: "green", Outcome.EMULATED: "yellow", Outcome.REJECTED: "dim"}


@dataclass(frozen=True)
class Span:
    """Equal results of consecutive toolkits for one feature on one target."""

    cell: Cell
    text: str
    toolkits: str
    """Range of toolkits: ``to 13.0``, ``12.9 to 13.0``, ``13.2``, ``from 13.1``. Empty if all that support the target
    agree."""


def labels(toolkits: Sequence[ToolkitMatrix]) -> list[str]:
    """Return ``13.0``, or the full release if two have the same minor release; else the path."""
    minor = [".".join(toolkit.ptxas.split(".")[:2]) for toolkit in toolkits]
    if len(set(minor)) == len(minor):
        return minor
    full = [toolkit.ptxas for toolkit in toolkits]
    return full if len(set(full)) == len(full) else [f"{t.ptxas} ({t.path})" for t in toolkits]


def spans(report: FeatureReport, feature: Feature, targets: Sequence[Arch], say: Say) -> list[Span]:
    """Return the results for targets with equal results, the oldest toolkit that has the targets first."""
    names = labels(report.toolkits)
    answers: list[tuple[int, Cell, str]] = []
    for at, toolkit in enumerate(report.toolkits):
        index = toolkit.index
        known = (index[feature.instruction, target] for target in targets if target in toolkit.targets)
        answers += [(at, cell, say(cell)) for cell in islice(known, 1)]
    runs = [list(run) for _, run in groupby(answers, key=lambda answer: answer[2])]
    found = []
    for number, run in enumerate(runs):
        first, last = names[run[0][0]], names[run[-1][0]]
        if len(runs) == 1:
            where = ""
        elif number == 0:
            where = f"to {last}"
        elif number == len(runs) - 1:
            where = f"from {first}"
        else:
            where = first if first == last else f"{first} to {last}"
        found.append(Span(run[0][1], run[0][2], where))
    return found


def columns(report: FeatureReport, group: FeatureGroup, say: Say) -> list[list[Arch]]:
    """Return all targets, grouped where every toolkit has the same results in this group of features."""
    targets = sorted({target for toolkit in report.toolkits for target in toolkit.targets})
    found: list[tuple[list[Arch], list[tuple[str, ...] | None]]] = []
    for target in targets:
        answers = [
            tuple(say(toolkit.index[feature.instruction, target]) for feature in group.features)
            if target in toolkit.targets
            else None
            for toolkit in report.toolkits
        ]
        for together, known in found:
            if all(a is None or k is None or a == k for a, k in zip(answers, known, strict=True)):
                together.append(target)
                known[:] = [k if a is None else a for a, k in zip(answers, known, strict=True)]
                break
        else:
            found.append(([target], answers))
    return [together for together, _ in found]


def short(cell: Cell) -> str:
    """Return ``OMMA``, ``≈ 2 FFMA``, or a dash: opcodes without their modifiers."""
    counts: dict[str, int] = {}
    for opcode, count in cell.sass:
        name = opcode.split(".")[0]
        counts[name] = counts.get(name, 0) + count
    return _said(cell, ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items()))


def full(cell: Cell) -> str:
    """Return the same with the opcodes in full."""
    return _said(cell, cell.code)


def _said(cell: Cell, code: str) -> str:
    if cell.outcome is Outcome.REJECTED:
        return NO if cell.refusal is Refusal.TARGET else f"{NO} {cell.refusal}"
    if cell.outcome is Outcome.ACCEPTED:
        return "accepted"
    return code if cell.outcome is Outcome.HARDWARE else f"≈ {code or 'nothing'}"


def _alike(say: Say, report: FeatureReport) -> Say:
    """Return a function that leaves out the reason of a refusal if several toolkits are compared; --details has it."""
    if len(report.toolkits) == 1:
        return say
    return lambda cell: NO if cell.outcome is Outcome.REJECTED else say(cell)


def _legend(report: FeatureReport) -> str:
    return LEGEND if len(report.toolkits) == 1 else LEGEND_OF_SEVERAL


def _phrases(found: Sequence[Span]) -> list[tuple[Span, str]]:
    """Return the texts of a cell: every result with its toolkits. Refusals are left out beside another result."""
    told = [span for span in found if span.text != NO] if len(found) > 1 else found
    return [(span, f"{span.text} {span.toolkits}".strip()) for span in told]


def _numbers(targets: Sequence[Arch]) -> str:
    return " ".join(target.number for target in targets)


def _head(report: FeatureReport) -> list[str]:
    lines = []
    for toolkit in report.toolkits:
        tool = f"nvdisasm {toolkit.nvdisasm}" if toolkit.nvdisasm else "no nvdisasm as new: only what is accepted"
        targets = counted(len(toolkit.targets), "target")
        lines.append(f"ptxas {toolkit.ptxas}, PTX {toolkit.isa}, {tool}, {targets}, {toolkit.seconds:.1f} s")
    return lines


def table(report: FeatureReport) -> RenderableType:
    """Return one table per group: a line for each feature, a column for the targets with equal results."""
    say = _alike(short, report)
    parts: list[RenderableType] = [Text(line, style="bold") for line in _head(report)]
    for group in report.groups:
        together = columns(report, group, say)
        rows: list[Sequence[RenderableType]] = [
            (feature.title, *(_styled(_phrases(spans(report, feature, targets, say))) for targets in together))
            for feature in group.features
        ]
        shown = terminal.table([whole(group.title), *(folded(_numbers(targets)) for targets in together)], rows)
        parts += [Text(), Fitting(shown, [*_lines(report, group, together, say)])]
    return Group(*parts, Text(), Text(f"{_legend(report)}; --details for the instructions in full", style="dim"))


def _lines(
    report: FeatureReport, group: FeatureGroup, together: Sequence[list[Arch]], say: Say
) -> Iterator[RenderableType]:
    """Yield each feature, and below it its results with the targets that have them."""
    yield Text(group.title, style="bold")
    for feature in group.features:
        yield Hanging("  ", feature.title)
        by_result: dict[str, tuple[str, list[Arch]]] = {}
        for targets in together:
            phrases = _phrases(spans(report, feature, targets, say))
            result = "; ".join(text for _, text in phrases)
            by_result.setdefault(result, (STYLES[phrases[-1][0].cell.outcome], []))[1].extend(targets)
        for result, (style, targets) in by_result.items():
            yield Hanging(f"    {result}: ", _numbers(sorted(targets)), style)


def _styled(phrases: Sequence[tuple[Span, str]]) -> Text:
    return Text("\n").join(Text(text, style=STYLES[span.cell.outcome]) for span, text in phrases)


def details(report: FeatureReport) -> RenderableType:
    """Return each instruction in full with its results: the targets, and the machine code or the message."""
    parts: list[RenderableType] = [Text(line, style="bold") for line in _head(report)]
    for group in report.groups:
        parts += [Text(), Text(group.title, style="bold underline")]
        for feature in group.features:
            parts += [Text(), Text(feature.instruction, style="bold")]
            parts.append(Hanging("  ", feature.title + (f": {feature.note}" if feature.note else "")))
            by_answer: dict[tuple[str, str, str], list[Arch]] = {}
            styles: dict[tuple[str, str, str], str] = {}
            for target in sorted({target for toolkit in report.toolkits for target in toolkit.targets}):
                for span in spans(report, feature, [target], _in_full):
                    key = (span.cell.outcome.value, span.text, span.toolkits)
                    by_answer.setdefault(key, []).append(target)
                    styles[key] = STYLES[span.cell.outcome]
            for key, targets in by_answer.items():
                outcome, text, where = key
                line = _numbers(targets) + (f"  ({where})" if where else "")
                parts.append(Hanging(f"  {outcome:9} ", line, styles[key]))
                parts.append(Hanging(" " * 12, text)) if text else None
    return Group(*parts)


def _in_full(cell: Cell) -> str:
    """Return the machine code, or the refusal without the target's name, so that equal ones match."""
    if cell.outcome is not Outcome.REJECTED:
        return cell.code
    return f"{cell.refusal}: {cell.words.replace(f'{cell.target}', 'sm_…')}"


def markdown(report: FeatureReport) -> str:
    """Return the tables for a page, with PTX and machine code in full."""
    say = _alike(full, report)
    text = "".join(f"- {line.rpartition(',')[0]}\n" for line in _head(report)) + f"\n{_legend(report)}.\n"
    for group in report.groups:
        together = columns(report, group, say)
        text += f"\n### {group.title}\n\n"
        text += f"| PTX | {' | '.join(map(_numbers, together))} |\n|---|{'---|' * len(together)}\n"
        for feature in group.features:
            cells = (_phrases(spans(report, feature, targets, say)) for targets in together)
            shown = ("<br>".join(_code(span, phrase) for span, phrase in cell) for cell in cells)
            text += f"| `{feature.instruction}` | {' | '.join(shown)} |\n"
    return text


def _code(span: Span, phrase: str) -> str:
    if span.cell.outcome is Outcome.HARDWARE:
        return f"`{span.text}` {span.toolkits}".strip()
    return phrase
