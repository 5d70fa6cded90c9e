"""What each GPU gets of a tree: by its build's architectures, or by the condition in its headers, and the variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.model.arch import Arch
from fp4patch.model.doctor import BuildRow, Level, Outlook, Question, Reach, reach
from fp4patch.model.edit import DropOperand
from fp4patch.model.outcome import NothingToDo, Rewritten
from fp4patch.model.target import Build, Gate
from fp4patch.model.variant import Variant
from fp4patch.patching.edit import rewrite
from fp4patch.verbs.doctor_builds import best_of, names


def outlooks(
    tree: Identified,
    variant: Variant | None,
    question: Question,
    builds: Sequence[BuildRow],
    todo: str,
) -> tuple[Outlook, ...]:
    """A line a GPU that was asked about. ``variant``: what is applied; ``todo``: the command to recommend, if any."""
    found_of_each = []
    for gpu in question.gpus:
        if tree.target.build:
            outlook = _of_builds(gpu, tree.target.build, question, builds, todo)
        else:
            outlook = _of_headers(gpu, tree, variant, todo)
        if outlook:
            found_of_each.append(_converting(outlook, gpu, tree, variant, builds, question))
    return tuple(found_of_each)


def _of_builds(gpu: str, build: Build, question: Question, builds: Sequence[BuildRow], todo: str) -> Outlook | None:
    """From what the build makes of the list that was asked about, or of those that people set."""
    rows = [row for row in builds if not row.error]
    if not rows:
        return Outlook(gpu, Level.YELLOW, "not known", f"what the build makes of {build.setting} was not evaluated")
    good = [row for row in rows if row.reaches[gpu] is Reach.SUFFIXED]
    if question.asked:
        if not question.named and not names(question.asked, gpu):
            return None
        return _of_one_list(gpu, build, rows, good, todo)
    best = best_of(gpu, question.gpus, rows)
    if not best:
        why = f"no usual {build.setting} gives it FP4 kernels: they are compiled for {_made(rows)}{_with_cuda(rows)}"
        return Outlook(gpu, Level.RED, _word(rows, gpu), why, todo)
    why = f"{_setting(build, best[0])} compiles its FP4 kernels for {_made(best)}{_with_cuda(best)}"
    bad = [row for row in rows if names(row.asked, gpu) and row not in good]
    if not bad:
        return Outlook(gpu, Level.GREEN, "NVFP4 native", why)
    avoid = "; ".join(dict.fromkeys(f"{_quoted(row.asked)} makes {_listed(row.kernels)}" for row in bad))
    return Outlook(
        gpu, Level.YELLOW, "NVFP4 native", f"{why}. Not so every list: {avoid}", f"export {_setting(build, best[0])}"
    )


def _of_one_list(gpu: str, build: Build, rows: Sequence[BuildRow], good: Sequence[BuildRow], todo: str) -> Outlook:
    bad = [row for row in rows if row not in good]
    if not bad:
        why = f"{_setting(build, rows[0])} compiles its FP4 kernels for {_made(rows)}{_with_cuda(rows)}"
        return Outlook(gpu, Level.GREEN, "NVFP4 native", why)
    why = f"{_setting(build, bad[0])} compiles the FP4 kernels for {_made(bad)}{_with_cuda(bad)}"
    return Outlook(gpu, Level.RED, _word(bad, gpu), why, todo)


def instead(tree: Identified, outlook: Outlook, question: Question, usual: Sequence[BuildRow]) -> Outlook:
    """The same, with a list that does serve the GPU as what to do, where there is one."""
    best = best_of(outlook.gpu, question.gpus, [row for row in usual if not row.error])
    if outlook.level is not Level.RED or not best or tree.target.build is None:
        return outlook
    return replace(
        outlook, todo=f"export {_setting(tree.target.build, best[0])}, which makes {_made(best)}{_with_cuda(best)}"
    )


def _word(rows: Sequence[BuildRow], gpu: str) -> str:
    reaches = {row.reaches[gpu] for row in rows}
    return "nothing loads" if Reach.NOTHING in reaches else "emulated or missing"


def _of_headers(gpu: str, tree: Identified, variant: Variant | None, todo: str) -> Outlook | None:
    """From the condition by which the headers let the GPU use the instruction."""
    gate = next((gate for gate in tree.target.gates if gate.gpu == gpu), None)
    if gate is None:
        return None
    opened = _open(tree.root, gate)
    if opened is None:
        return Outlook(
            gpu, Level.YELLOW, "not known", f"{gate.file} decides in a way that fp4patch does not know", todo
        )
    if opened:
        return Outlook(
            gpu, Level.GREEN, "NVFP4 native", f"arrays of floats convert by the instruction on {gpu}a and {gpu}f", ""
        )
    level = Level.GREEN if variant else Level.YELLOW
    return Outlook(
        gpu, level, "software conversion", f"{gate.file} does not name it: {gate.otherwise}, on every target", todo
    )


def _open(root: Path, gate: Gate) -> bool | None:
    """Whether the tree's own condition names the GPU; None where it is of no shape that is known."""
    try:
        text = (root / gate.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    edit = DropOperand(file=gate.file, defines=gate.defines, operands=gate.operands, conditions=gate.conditions)
    outcome = rewrite(edit, text, lambda _: "")
    return True if isinstance(outcome, Rewritten) else False if isinstance(outcome, NothingToDo) else None


def _converting(
    outlook: Outlook,
    gpu: str,
    tree: Identified,
    variant: Variant | None,
    builds: Sequence[BuildRow],
    question: Question,
) -> Outlook:
    """The same, said of the applied variant: a rule of its own may want software, or the instruction."""
    if variant is None or outlook.level is Level.RED:
        return outlook
    usable = [row for row in builds if not row.error]
    rows = usable if question.asked else best_of(gpu, question.gpus, usable)
    made = [
        arch for row in rows for arch in row.kernels if reach([Arch.parse(arch)], Arch.parse(gpu)) is Reach.SUFFIXED
    ]
    loaded = set(made) or {f"{Arch.parse(gpu).torch}a"}
    wants = {_wants(variant, tree.target.name, Arch.parse(arch)) for arch in loaded}
    if "software" in wants:
        said = f"{outlook.because}; {variant.name} converts in software there: {variant.cost}"
        return replace(outlook, verdict=f"software conversion ({variant.name})", because=said)
    if wants == {"hardware"} and not tree.target.build:
        said = f"{variant.name} makes it use the instruction wherever the target has it"
        return Outlook(gpu, Level.GREEN, "NVFP4 native", said)
    return outlook


def _wants(variant: Variant, target: str, arch: Arch) -> str:
    """Whether the variant's rules want the instruction in this target's code for an architecture, or forbid it."""
    about = [rule for rule in variant.rules if str(arch) in rule.arch and rule.speaks_of(target)]
    if any("E2M1" in pattern for rule in about for pattern in rule.requires):
        return "hardware"
    return "software" if any("E2M1" in pattern for rule in about for pattern in rule.forbids) else ""


def _made(rows: Sequence[BuildRow]) -> str:
    return " or ".join(dict.fromkeys(_listed(row.kernels) for row in rows))


def _listed(archs: Sequence[str]) -> str:
    return ", ".join(archs) or "nothing of SM12x"


def _with_cuda(rows: Sequence[BuildRow]) -> str:
    return f" (CUDA {' and '.join(dict.fromkeys(row.cuda for row in rows))})"


def _setting(build: Build, row: BuildRow) -> str:
    return f"{build.setting}={_quoted(row.asked)}"


def _quoted(asked: str) -> str:
    return f'"{asked}"' if ";" in asked else asked
