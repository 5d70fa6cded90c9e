"""Result for each GPU from a tree: by its build's architectures, or by the condition in its headers and the variant."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Level
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.target import Build, Gate
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GPUS, Arch, Reach, reach
from fp4patch.core.cuda import FAMILIES_SINCE, FOR_GB10, has, refused
from fp4patch.core.wording import listed
from fp4patch.doctor.builds import best_of, names, quoted
from fp4patch.doctor.result import Question
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.preprocess import Header, target_macros
from fp4patch.proof.judge import concerns

_NO_IMPORT = "its library cannot be imported"
Opened = Callable[[Gate, Sequence[Arch], str], Sequence[Arch] | None]
"""Targets of these for which a tree's headers define a gate's macro with a CUDA release; None if they do not decide."""


def outlooks(
    tree: Identified,
    variant: Variant | None,
    question: Question,
    builds: Sequence[BuildRow],
    opened: Opened,
    cuda: Version | None,
    todo: str,
) -> tuple[Answer, ...]:
    """Return a line for each GPU. ``variant`` is the applied one, ``todo`` the command to recommend, if any."""
    found_of_each = []
    for gpu in question.gpus:
        if gpu not in GPUS:
            why = f"doctor judges source trees for {listed(GPUS)} only"
            found_of_each.append(Answer(gpu, Level.NONE, "not judged", (why,)))
            continue
        if tree.target.build:
            outlook = _of_builds(gpu, tree.target.build, question, builds, todo)
        else:
            outlook = _of_headers(gpu, tree, variant, opened, cuda, question, todo)
        if outlook:
            found_of_each.append(_converting(outlook, gpu, tree, variant, builds, question))
    if question.asked and not found_of_each and (tree.target.build or tree.target.gates):
        why = f"{question.asked} names neither of {listed(GPUS)}"
        return tuple(Answer(gpu, Level.NONE, "not judged", (why,)) for gpu in question.gpus)
    return tuple(found_of_each)


def _of_builds(gpu: Arch, build: Build, question: Question, builds: Sequence[BuildRow], todo: str) -> Answer | None:
    """From what the build makes of the list that was asked about, or of those that people set."""
    if question.asked and not question.named and not names(question.asked, gpu):
        return None
    rows = [row for row in builds if not row.error]
    if not rows:
        return Answer(gpu, Level.NONE, "not known", (f"the result of the build for {build.setting} was not evaluated",))
    good = [row for row in rows if row.reaches[gpu] is Reach.SUFFIXED]
    if question.asked:
        return _of_one_list(gpu, build, rows, good, todo)
    best = best_of(gpu, question.gpus, rows)
    if not best:
        if reasons := _stopped(rows, gpu):
            why = f"for every {build.setting}{_with_cuda(rows)}: {reasons[0]}"
        else:
            made = f"{_made(rows, gpu)}{_with_cuda(rows)}"
            own = "" if build.converts else " of its own"
            why = f"no usual {build.setting} gives it {kernels_of(build)}{own}: they are compiled for {made}"
        return _lacking(gpu, rows, why, todo)
    why = _clause(build, best, gpu)
    bad = [row for row in builds if names(row.asked, gpu) and row not in good]
    if not bad:
        return Answer(gpu, Level.GREEN, _native(build), (why,))
    makes: dict[str, dict[str, None]] = {}
    for row in bad:
        makes.setdefault(_of_row(row, gpu), {})[quoted(row.asked) or "unset"] = None
    avoid = "; ".join(f"{' or '.join(lists)}, which compiles them for {made}" for made, lists in makes.items())
    return Answer(
        gpu,
        Level.YELLOW,
        _native(build),
        (f"{why}. Other lists do not: {avoid}",),
        _set(build, best[0], _made(best, gpu)),
    )


def _of_one_list(gpu: Arch, build: Build, rows: Sequence[BuildRow], good: Sequence[BuildRow], todo: str) -> Answer:
    bad = [row for row in rows if row not in good]
    if not bad:
        return Answer(gpu, Level.GREEN, _native(build), (_clause(build, rows, gpu),))
    return _lacking(gpu, bad, _clause(build, bad, gpu, "the"), todo)


def _lacking(gpu: Arch, rows: Sequence[BuildRow], why: str, todo: str) -> Answer:
    """Return the outlook of a GPU for which no row has the code that it needs."""
    if all(row.reaches[gpu] is Reach.PTX for row in rows):
        why = f"{why}, and as PTX, which the driver compiles when a kernel is first used"
        return Answer(gpu, Level.YELLOW, Reach.PTX.value, (why,), todo)
    word = _word(rows, gpu)
    if word == _NO_IMPORT:
        return Answer(gpu, Level.RED, word, (why,), remedies.of("no_import"))
    return Answer(gpu, Level.RED, word, (why,), _newer(rows, gpu) or todo)


def kernels_of(build: Build) -> str:
    """Return the name of the kernels whose architectures decide: ``FP4 kernels``."""
    return "FP4 kernels" if build.converts else "kernels"


def _native(build: Build) -> str:
    return "NVFP4 native" if build.converts else "native"


def instead(tree: Identified, outlook: Answer, question: Question, usual: Sequence[BuildRow]) -> Answer:
    """Return the same, with a list that does serve the GPU as what to do, where there is one."""
    best = best_of(outlook.gpu, question.gpus, [row for row in usual if not row.error])
    if outlook.level is not Level.RED or not best or tree.target.build is None:
        return outlook
    made = f"{_made(best, outlook.gpu)}{_with_cuda(best)}"
    return replace(outlook, todo=_set(tree.target.build, best[0], made))


def _word(rows: Sequence[BuildRow], gpu: Arch) -> str:
    if reasons := _stopped(rows, gpu):
        return _NO_IMPORT if "cannot be imported" in reasons[0] else "nothing is compiled"
    for row in rows:
        if row.reaches[gpu] is Reach.PARTLY:
            return f"NVFP4 native for {', '.join(row.on[gpu].served(gpu))} only"
    reaches = {row.reaches[gpu] for row in rows}
    return "nothing loads" if Reach.NOTHING in reaches else "emulated or missing"


def _of_headers(
    gpu: Arch,
    tree: Identified,
    variant: Variant | None,
    opened: Opened,
    cuda: Version | None,
    question: Question,
    todo: str,
) -> Answer | None:
    """From the condition by which the headers let the GPU use the instruction, on the targets of the list if any."""
    targets = [replace(gpu, suffix=suffix) for suffix in ("a", "f")]
    gate = next((gate for gate in tree.target.gates if Arch.parse(gate.gpu) == gpu), None)
    if gate and question.asked and (question.named or names(question.asked, gpu)):
        targets = [arch for arch in Arch.parse_list(question.asked, ptx=True) if arch.suffix and arch.runs_on(gpu)]
        if not targets:
            return _without_suffix(gpu, question, gate)
    elif gate and question.asked:
        return None
    usable = [arch for arch in targets if cuda is None or has(cuda, arch)]
    if cuda and not usable:
        return Answer(gpu, Level.RED, "nothing is compiled", (refused(cuda, targets),), remedies.of("cuda_too_old"))
    if gate is None:
        return None
    return _of_condition(gpu, variant, gate, usable, opened(gate, usable, str(cuda or FOR_GB10)), todo)


def _without_suffix(gpu: Arch, question: Question, gate: Gate) -> Answer:
    """From a list without a target that has the instruction and that the GPU loads."""
    why, todo = f"{question.asked} has no target with a suffix that {gpu} loads", "code_for_other_targets"
    target = remedies.target_for(gpu, question.gpus)
    if reach(Arch.parse_list(question.asked, ptx=True), gpu) is Reach.NOTHING:
        return Answer(gpu, Level.RED, Reach.NOTHING.value, (why,), remedies.of(todo, **target))
    why = f"{why}; on others it uses {gate.otherwise}, or that of a variant"
    return Answer(gpu, Level.YELLOW, "software conversion", (why,), remedies.of(todo, **target))


def _of_condition(
    gpu: Arch,
    variant: Variant | None,
    gate: Gate,
    usable: Sequence[Arch],
    opened: Sequence[Arch] | None,
    todo: str,
) -> Answer:
    if opened is None:
        why = f"{gate.file} has a condition that fp4patch does not recognize"
        return Answer(gpu, Level.NONE, "not known", (why,), todo)
    where = " and ".join(map(str, opened))
    if len(opened) == len(usable):
        return Answer(gpu, Level.GREEN, "NVFP4 native", (f"arrays of floats convert by the instruction on {where}",))
    level = Level.GREEN if variant else Level.YELLOW
    if opened:
        others = " and ".join(str(arch) for arch in usable if arch not in opened)
        why = f"{gate.file} enables the instruction on {where}, and not on {others}, which uses {gate.otherwise}"
        return Answer(gpu, level, f"NVFP4 native on {where} only", (why,), todo)
    why = f"the condition in {gate.file} does not include {gpu}, which therefore uses {gate.otherwise} for every target"
    return Answer(gpu, level, "software conversion", (why,), todo)


def opened_by_headers(tree: Identified, gate: Gate, archs: Sequence[Arch], cuda: str) -> list[Arch] | None:
    """Return the targets for which the tree's own headers define the macro; None if that is not decided by them."""

    def text(path: str) -> str | None:
        file = tree.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    try:
        header = Header.at(gate.file, gate.defines, text, tree.target.include)
        if any(True for _ in header.undecided(cuda)) or text(gate.file) is None:
            return None
        return [arch for arch in archs if header.defined(target_macros(str(arch), cuda))]
    except (OSError, LexError, ValueError):
        return None


def _converting(
    outlook: Answer,
    gpu: Arch,
    tree: Identified,
    variant: Variant | None,
    builds: Sequence[BuildRow],
    question: Question,
) -> Answer:
    """Return the same for the applied variant: a rule of its own may require software, or the instruction."""
    bare = question.asked and reach(Arch.parse_list(question.asked, ptx=True), gpu) is not Reach.SUFFIXED
    if variant is None or outlook.level is Level.RED or (bare and not tree.target.build):
        return outlook
    made = targets_of(gpu, question, [row for row in builds if not row.error])
    loaded = sorted(set(made) or {replace(gpu, suffix="a")})
    wants = {arch.torch: conversion_of(load(), variant.name, tree.target.name, arch) for arch in loaded}
    if software := [arch for arch, wanted in wants.items() if wanted == "software"]:
        said = f"{outlook.because}; {variant.name} converts in software for {_listed(software)}: {variant.cost}"
        return replace(outlook, verdict=f"software conversion ({variant.name})", evidence=(said,))
    if set(wants.values()) == {"hardware"} and not tree.target.build:
        said = f"{variant.name} uses the instruction on every target that has it"
        return Answer(gpu, Level.GREEN, "NVFP4 native", (said,))
    return outlook


def targets_of(gpu: Arch, question: Question, usable: Sequence[BuildRow]) -> list[Arch]:
    """Return the targets with FP4 instructions that a GPU gets: of the list that was asked about, or of the best."""
    rows = usable if question.asked else best_of(gpu, question.gpus, usable)
    made = [Arch.parse(arch) for row in rows for arch in _archs(row, gpu)]
    return [arch for arch in made if reach([arch], gpu) is Reach.SUFFIXED]


@cache
def conversion_of(catalog: Catalog, variant_name: str, target_name: str, arch: Arch) -> str:
    """Return the conversion that the variant's rules require for an architecture of the target: hardware, software, or
    empty. A probe that defines the macro of the target's own condition gives no information about the tree."""
    variant = catalog.variant(variant_name)
    macros = {gate.defines for gate in catalog.target(target_name).gates}
    probes = [probe for probe, _ in catalog.probes_of(variant, target_name) if not macros & probe.defines.keys()]
    rules = [rule for rule in variant.rules if rule.is_for(arch)]
    rules = [rule for rule in rules if any("E2M1" in pattern for pattern in (*rule.requires, *rule.forbids))]
    about = [rule for rule in rules if any(concerns(rule, probe, arch) for probe in probes)]
    if any("E2M1" in pattern for rule in about for pattern in rule.requires):
        return "hardware"
    return "software" if about else ""


def _clause(build: Build, rows: Sequence[BuildRow], gpu: Arch, whose: str = "its") -> str:
    """Return the result of one arch list in words, with the CUDA releases that were evaluated."""
    setting = f"{build.setting}={quoted(rows[0].asked)}" if rows[0].asked else f"with {build.setting} unset it"
    if (reasons := _stopped(rows, gpu)) and "cannot be imported" in reasons[0]:
        return f"{setting}{_with_cuda(rows)}: {reasons[0]}"
    if reasons:
        return f"{setting} compiles nothing{_with_cuda(rows)}: {'; '.join(reasons)}"
    return f"{setting} compiles {whose} {kernels_of(build)} for {_made(rows, gpu)}{_with_cuda(rows)}"


def _stopped(rows: Sequence[BuildRow], gpu: Arch) -> list[str]:
    """Return the reasons why nothing is compiled on the GPU's machine; empty unless all rows stop."""
    reasons = [row.on[gpu].stops if row.on else row.stops for row in rows]
    return list(dict.fromkeys(reasons)) if all(reasons) else []


def _newer(rows: Sequence[BuildRow], gpu: Arch) -> str:
    """Return the advice to use a newer CUDA release, if the release stops all of them; else empty."""
    cudas = {Version(row.cuda) for row in rows}
    targets = [replace(gpu, suffix=suffix) for suffix in ("a", "f")]
    lacking = not any(has(cuda, target) for cuda in cudas for target in targets)
    return remedies.of("cuda_too_old") if lacking or (min(cudas) < FAMILIES_SINCE and _stopped(rows, gpu)) else ""


def _made(rows: Sequence[BuildRow], gpu: Arch) -> str:
    return " or ".join(dict.fromkeys(_of_row(row, gpu) for row in rows))


def _of_row(row: BuildRow, gpu: Arch) -> str:
    """Return the architectures; of a build at run time those that it makes where the GPU is, and of which module."""
    if row.error:
        return "unknown targets"
    if not row.on:
        return f"nothing ({row.stops})" if row.stops else _listed(row.kernels)
    there = row.on[gpu]
    if there.stops:
        return f"nothing ({there.stops})"
    usual, *_ = there.modules.values()
    others = [f"{name} for {_listed(archs)}" for name, archs in there.modules.items() if archs != usual]
    return " and ".join([_listed(usual), *others])


def _archs(row: BuildRow, gpu: Arch) -> tuple[str, ...]:
    """Return every architecture that some FP4 kernel has where the GPU is."""
    return tuple(arch for archs in row.on[gpu].modules.values() for arch in archs) if row.on else row.kernels


def _listed(archs: Sequence[str]) -> str:
    return ", ".join(archs) or "nothing of SM12x"


def _with_cuda(rows: Sequence[BuildRow]) -> str:
    return f" (CUDA {' and '.join(dict.fromkeys(row.cuda for row in rows))})"


def _set(build: Build, row: BuildRow, made: str) -> str:
    """Return the command for a shell that sets the list of a row; ``made`` is its result."""
    cause = "arch_list" if row.asked else "arch_list_unset"
    return remedies.of(cause, setting=build.setting, list=quoted(row.asked), made=made)
