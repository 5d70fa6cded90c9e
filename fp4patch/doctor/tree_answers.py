"""Answers for each GPU from a source tree: by its build's architectures, or by the condition in its headers."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Axis, Finding, Level, Observation
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.target import Advice, Build, Defect, Gate
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GPUS, PTX, Arch, Reach, nearest, reach
from fp4patch.core.cuda import FOR_GB10, has, refused
from fp4patch.core.release import covers
from fp4patch.core.results import State
from fp4patch.core.wording import counted, listed
from fp4patch.doctor.builds import best_of, names, quoted
from fp4patch.doctor.projects import build_for, places
from fp4patch.doctor.result import Question, Recommendation, TreeReport
from fp4patch.doctor.statements import Left
from fp4patch.doctor.tree import TreeFacts, cuda_of
from fp4patch.proof.judge import concerns


@dataclass(frozen=True)
class _Case:
    """A tree and a question about it, with what its build makes."""

    facts: TreeFacts
    question: Question
    cuda: Version | None
    rows: Sequence[BuildRow]
    todo: str
    """Command that patches the tree; empty if none is recommended."""

    @property
    def evaluated(self) -> list[BuildRow]:
        """The rows that could be evaluated."""
        return [row for row in self.rows if not row.error]

    @property
    def variant(self) -> Variant | None:
        """The variant that is applied."""
        return load().variants.get(self.facts.variant)

    def targets(self, gpu: Arch) -> list[Arch]:
        """Return the targets with FP4 instructions that a GPU gets: of the list that was asked about, or the best."""
        if self.facts.tree.target.build is None:
            made = Arch.parse_list(self.question.asked or f"{gpu}a", ptx=True)
        else:
            best = self.evaluated if self.question.asked else best_of(gpu, self.question.gpus, self.evaluated)
            made = tuple(Arch.parse(arch) for row in best for archs in _modules(row, gpu).values() for arch in archs)
        return [arch for arch in made if arch.suffix and arch.runs_on(gpu)]


def judge(facts: TreeFacts, question: Question) -> TreeReport:
    """Return the complete report on a tree for one question."""
    cuda, root = cuda_of(question), shlex.quote(str(facts.tree.root))
    rows, notes = facts.rows(question, cuda)
    advice = _advice(facts.released, cuda, question)
    apply = f"fp4patch apply --variant {advice.variant} {root}" if advice and advice.variant else ""
    command = apply
    if facts.state.refused:
        command = f"fp4patch status {root}"
    elif facts.variant:
        verb = "apply" if facts.state is State.OUTDATED else "verify"
        command = f"fp4patch {verb} --variant {facts.variant} {root}"
    case = _Case(facts, question, cuda, rows, "" if facts.variant else command)
    defects = _defects(facts, question, apply)
    seen = {gpu: list(_observed(case, gpu)) for gpu in question.concerned}
    projects = {} if all(seen.values()) else {answer.gpu: answer for answer in facts.project(question)}
    none = Observation(Axis.READ, Level.NONE, "the build of this target is not evaluated")
    answers = [
        (Answer.of(gpu, *own) if own else projects.get(gpu, Answer.of(gpu, none))).beside(*_failing(gpu, defects))
        for gpu, own in seen.items()
    ]
    # "Nothing" is advice about the release, and what somebody edited is another tree.
    if advice and not (advice.variant or facts.releases) and any(one.level is Level.RED for one in answers):
        advice = None
    return TreeReport(
        root=str(facts.tree.root),
        target=facts.tree.target.name,
        version=str(facts.tree.version or ""),
        releases=facts.releases,
        variant=facts.variant,
        state=facts.state,
        patches=facts.patches,
        builds=rows,
        recommended=Recommendation(advice.variant if advice else None, advice.because if advice else "", command),
        findings=(*facts.findings, *(finding for _, finding in defects), *notes),
        answers=tuple(answers),
    )


def recommend(tree: Identified, cuda: Version | None, gpus: Sequence[Arch] = ()) -> Advice | None:
    """Return the first of the target's advice that fits release and toolkit; ``cuda`` None: the toolkit is not known,
    and only advice for all of them counts. ``gpus``: those that the user named.
    """
    named = set(map(str, gpus))
    fitting = (a for a in tree.target.advice if covers(a.versions, tree.version) and covers(a.cuda, cuda))
    return next((a for a in fitting if not (a.gpus and named) or named & set(a.gpus)), None)


def _advice(tree: Identified, cuda: Version | None, question: Question) -> Advice | None:
    """Return what to apply. Nothing where no patch can help: the compiler has no target with FP4 instructions."""
    late = _too_old(cuda, [target for gpu in question.gpus for target in _suffixed(gpu)])
    if late:
        return Advice(because=f"{late}: {remedies.of('cuda_too_old')}")
    return recommend(tree, cuda, question.gpus if question.named else ())


def _observed(case: _Case, gpu: Arch) -> Iterator[Observation]:
    """Yield what the build or the header of a tree comes to; nothing if it has neither."""
    target, question = case.facts.tree.target, case.question
    build, gates = target.build, {Arch.parse(gate.gpu): gate for gate in target.gates}
    refuses = partial(Observation, Axis.TOOLS, Level.RED)
    if not (build or gates):
        return
    if gpu not in GPUS:
        known = f"doctor judges source trees for {listed(GPUS)} only"
        yield Observation(Axis.READ, Level.NONE, "not judged", (known,))
    elif build and (part := question.unlike_pytorch):
        why = f"{build.setting} with {part}: PyTorch and this build write {Arch.parse(part.removesuffix(PTX)).torch}"
        todo = remedies.of("list_for_gpus", setting=build.setting, list=quoted(question.asked))
        yield refuses("the build ends", (why,), todo)
    elif (build is None or build.converts) and (late := _too_old(case.cuda, _suffixed(gpu))):
        yield refuses("nothing is compiled", (late,), remedies.of("cuda_too_old"))
    elif build:
        found = _of_variant(case, _of_builds(case, build, gpu), gpu)
        yield found
        if found.level not in (Level.RED, Level.NONE):
            yield from _left_out(case, gpu)
    elif gpu in gates:
        yield _of_variant(case, _of_header(case, gates[gpu], gpu), gpu)


def _suffixed(gpu: Arch) -> list[Arch]:
    return [replace(gpu, suffix="a"), replace(gpu, suffix="f")]


def _too_old(cuda: Version | None, targets: Sequence[Arch]) -> str:
    """Return why a CUDA release compiles for none of the targets; empty if it does for one of them."""
    return "" if cuda is None or any(has(cuda, target) for target in targets) else refused(cuda, targets)


def _of_builds(case: _Case, build: Build, gpu: Arch) -> Observation:
    """From what the build makes of the list that was asked about, or of those that people set."""
    rows = case.evaluated
    if not rows:
        return Observation(
            Axis.READ, Level.NONE, "not known", (f"the result of the build for {build.setting} was not evaluated",)
        )
    observed = partial(Observation, Axis.CONVERTS)
    native = "NVFP4 native" if build.converts else "native"
    good = [row for row in rows if row.reaches[gpu] is Reach.SUFFIXED]
    if case.question.asked:
        bad = [row for row in rows if row not in good]
        if not bad:
            return observed(Level.GREEN, native, (_clause(build, rows, gpu),))
        usual, _ = case.facts.rows(replace(case.question, asked=""), case.cuda)
        best = best_of(gpu, case.question.gpus, [row for row in usual if not row.error])
        todo = _set(build, best, gpu) if best else case.todo
        return _lacking(gpu, bad, _clause(build, bad, gpu), todo)
    best = best_of(gpu, case.question.gpus, rows)
    if not best:
        made = f"{_made(rows, gpu)}{_with_cuda(rows)}"
        why = f"no usual {build.setting} gives it {kernels_of(build)}: they are compiled for {made}"
        return _lacking(gpu, rows, why, case.todo)
    why = _clause(build, best, gpu)
    makes: dict[str, dict[str, None]] = {}
    for row in case.rows:
        if names(row.asked, gpu) and row not in good:
            makes.setdefault(_made([row], gpu), {})[quoted(row.asked) or "unset"] = None
    if not makes:
        return observed(Level.GREEN, native, (why,))
    avoid = "; ".join(f"{' or '.join(lists)}, which compiles them for {made}" for made, lists in makes.items())
    return observed(Level.YELLOW, native, (f"{why}. Other lists do not: {avoid}",), _set(build, best, gpu))


def _lacking(gpu: Arch, rows: Sequence[BuildRow], why: str, todo: str) -> Observation:
    """Return what holds for a GPU for which no row has the code that it needs."""
    if all(row.reaches[gpu] is Reach.PTX for row in rows):
        why = f"{why}, and as PTX, which the driver compiles when a kernel is first used"
        return Observation(Axis.LOADS, Level.YELLOW, Reach.PTX.value, (why,), todo)
    if all(row.lacks for row in rows):
        todo = remedies.of("no_import")
        return Observation(Axis.LOADS, Level.RED, "its library cannot be imported", (why,), todo)
    if all(_stops(row, gpu) for row in rows):
        return Observation(Axis.TOOLS, Level.RED, "nothing is compiled", (why,), todo)
    if partly := next((row for row in rows if row.reaches[gpu] is Reach.PARTLY), None):
        verdict = f"NVFP4 native for {', '.join(partly.on[gpu].served(gpu))} only"
        return Observation(Axis.CONVERTS, Level.RED, verdict, (why,), todo)
    if Reach.NOTHING in {row.reaches[gpu] for row in rows}:
        return Observation(Axis.LOADS, Level.RED, "nothing loads", (why,), todo)
    return Observation(Axis.CONVERTS, Level.RED, "emulated or missing", (why,), todo)


def kernels_of(build: Build) -> str:
    """Return the name of the kernels whose architectures decide: ``FP4 kernels``."""
    return "FP4 kernels" if build.converts else "kernels"


def _of_header(case: _Case, gate: Gate, gpu: Arch) -> Observation:
    """From the condition by which the headers let the GPU use the instruction, on the targets of the list if any."""
    asked, cuda = case.question.asked, case.cuda
    observed = partial(Observation, Axis.CONVERTS)
    targets = case.targets(gpu) if asked else _suffixed(gpu)
    if not targets:
        why = f"{asked} has no target with a suffix that {gpu} loads"
        if reach(Arch.parse_list(asked, ptx=True), gpu) is Reach.NOTHING:
            return Observation(Axis.LOADS, Level.RED, Reach.NOTHING.value, (why,), build_for(gpu, case.question))
        why = f"{why}; on others it uses {gate.otherwise}, or that of a variant"
        return observed(Level.YELLOW, "software conversion", (why,), build_for(gpu, case.question))
    if late := _too_old(cuda, targets):
        return Observation(Axis.TOOLS, Level.RED, "nothing is compiled", (late,), remedies.of("cuda_too_old"))
    usable = [arch for arch in targets if cuda is None or has(cuda, arch)]
    opened = case.facts.opened(gate, usable, str(cuda or FOR_GB10))
    if opened is None:
        why = f"{gate.file} has a condition that fp4patch does not recognize"
        return Observation(Axis.READ, Level.NONE, "not known", (why,), case.todo)
    where, others = listed(opened), [arch for arch in usable if arch not in opened]
    if not others:
        return observed(Level.GREEN, "NVFP4 native", (f"arrays of floats convert by the instruction on {where}",))
    why = f"the condition in {gate.file} does not include {listed(others)}, which uses {gate.otherwise}"
    verdict = f"NVFP4 native on {where} only" if opened else "software conversion"
    return observed(Level.GREEN if case.variant else Level.YELLOW, verdict, (why,), case.todo)


def _of_variant(case: _Case, found: Observation, gpu: Arch) -> Observation:
    """Return the same for the applied variant: a rule of its own may require software, or the instruction."""
    variant, target = case.variant, case.facts.tree.target
    if variant is None or found.level is Level.RED:
        return found
    targets = sorted(set(case.targets(gpu)))
    wants = {arch.torch: conversion_of(load(), variant.name, target.name, arch) for arch in targets}
    if software := [arch for arch, wanted in wants.items() if wanted == "software"]:
        why = f"{variant.name} converts in software for {listed(software)}: {variant.cost}"
        return replace(found, sentence=f"software conversion ({variant.name})", evidence=(*found.evidence, why))
    if set(wants.values()) == {"hardware"} and not target.build:
        why = f"{variant.name} uses the instruction on every target that has it"
        return Observation(Axis.CONVERTS, Level.GREEN, "NVFP4 native", (why,))
    return found


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


def _left_out(case: _Case, gpu: Arch) -> Iterator[Observation]:
    """Yield what the conditions in the sources leave of the conversions."""
    target = nearest(gpu, case.targets(gpu), ())
    if target is None:
        return
    left = case.facts.left_out(target, str(case.cuda or FOR_GB10))
    if lost := left.get(Left.CONSTANT):
        why = f"for {target}, {counted(len(lost), 'conversion')} left out, with {Left.CONSTANT}: {places(lost)}"
        todo = f"restore the condition at {lost[0].place}"
        yield Observation(Axis.CONVERTS, Level.RED, "conversions are left out", (why,), todo)
    name = case.variant.name if case.variant else ""
    in_software = bool(name) and conversion_of(load(), name, case.facts.tree.target.name, target) == "software"
    # What a variant inserts is decided by its verification, and other code in a branch is not.
    expected = {Left.OTHER: in_software, Left.UNKNOWN: bool(name)}
    for what, said in ((Left.OTHER, "with software in its place"), (Left.UNKNOWN, Left.UNKNOWN.value)):
        if (some := left.get(what)) and not expected[what]:
            why = f"{counted(len(some), 'conversion')} {said}"
            yield Observation(Axis.CONVERTS, Level.YELLOW, why, (f"for {target}: {places(some)}",))


def _defects(facts: TreeFacts, question: Question, apply: str) -> list[tuple[Defect, Finding]]:
    """Return the known defects of this release on the GPUs in question, without those that a patch has repaired."""
    open_patches = {row.patch.partition("/")[2] for row in facts.patches if row.state is State.PRISTINE}
    return [
        (defect, Finding(Level(defect.level), defect.subject, defect.found, defect.remedy or apply, link=defect.link))
        for defect in facts.tree.target.defects
        if set(map(Arch.parse, defect.gpus)) & set(question.gpus)
        and (not defect.patch or defect.patch in open_patches)
        and covers(defect.versions, facts.released.version)
    ]


def _failing(gpu: Arch, defects: Sequence[tuple[Defect, Finding]]) -> Iterator[Observation]:
    """Yield the known defects of the release that break it on a GPU."""
    for defect, finding in defects:
        if finding.level is Level.RED and gpu in map(Arch.parse, defect.gpus):
            why = f"{defect.subject}: {defect.found}"
            yield Observation(Axis.DEFECTS, Level.RED, f"{defect.subject} fails", (why,), finding.remedy)


def _clause(build: Build, rows: Sequence[BuildRow], gpu: Arch) -> str:
    """Return the result of one arch list in words, with the CUDA releases that were evaluated."""
    setting = f"{build.setting}={quoted(rows[0].asked)}" if rows[0].asked else f"with {build.setting} unset it"
    stops = [_stops(row, gpu) for row in rows]
    if all(stops):
        return f"{setting}{_with_cuda(rows)}: {'; '.join(dict.fromkeys(stops))}"
    return f"{setting} compiles its {kernels_of(build)} for {_made(rows, gpu)}{_with_cuda(rows)}"


def _stops(row: BuildRow, gpu: Arch) -> str:
    """Return the reason why nothing is compiled on the GPU's machine, or not all that a library needs."""
    return row.on[gpu].stops if row.on else row.stops


def _made(rows: Sequence[BuildRow], gpu: Arch) -> str:
    return " or ".join(dict.fromkeys(_of_row(row, gpu) for row in rows))


def _of_row(row: BuildRow, gpu: Arch) -> str:
    """Return the architectures; of a build at run time those that it makes where the GPU is, and of which module."""
    if row.error:
        return "unknown targets"
    if stops := _stops(row, gpu):
        return f"nothing ({stops})"
    made = {name: ", ".join(archs) or "nothing of SM12x" for name, archs in _modules(row, gpu).items()}
    usual, *_ = made.values()
    return " and ".join([usual, *(f"{name} for {archs}" for name, archs in made.items() if archs != usual)])


def _modules(row: BuildRow, gpu: Arch) -> Mapping[str, tuple[str, ...]]:
    """Return the architectures of each module of a build at run time where the GPU is; else those of all kernels."""
    return row.on[gpu].modules if row.on else {"": row.kernels}


def _with_cuda(rows: Sequence[BuildRow]) -> str:
    return f" (CUDA {' and '.join(dict.fromkeys(row.cuda for row in rows))})"


def _set(build: Build, rows: Sequence[BuildRow], gpu: Arch) -> str:
    """Return the command for a shell that sets the list of some rows, and what it makes."""
    cause = "arch_list" if rows[0].asked else "arch_list_unset"
    made = _made(rows, gpu) + _with_cuda(rows)
    return remedies.of(cause, setting=build.setting, list=quoted(rows[0].asked), made=made)
