"""Execute the machine code of probes on the host: every input, against the specification and one another.

Results are cached by the translation: code that is the same up to its address is executed once, and a second look
costs nothing.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from fp4patch.catalog.probe import CARD, Executes, Launches, Quantizes, stored_bits
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import key
from fp4patch.core.wording import counted
from fp4patch.proof.cache import Cache, Stored
from fp4patch.proof.disassemble import disassemble
from fp4patch.proof.execution import stochastic, sweep
from fp4patch.proof.execution.result import Batch, Equivalence, Executed, Execution, Side
from fp4patch.proof.execution.sweep import Swept
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import functions, kernel_of
from fp4patch.proof.sweep_result import Mismatch, NumericsReport, NumericsRow
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass import grid, independence, lane_equality
from fp4patch.sass.error import SassError
from fp4patch.sass.flow import flow
from fp4patch.sass.immediates import corners
from fp4patch.sass.instruction import InstructionClass
from fp4patch.sass.listing import Listing, read
from fp4patch.sass.program import KERNEL_NAME, Kernel
from fp4patch.sass.text import own_constants
from fp4patch.sass.translate import Unsupported, translate

FAILURES = (ProofError, SassError)
"""Why there is no result of a kernel; it must not hide those of others."""
Failure = ProofError | SassError


@dataclass(frozen=True, eq=False)
class Subject:
    """One probe's kernel, as it was compiled for one architecture from one side."""

    probe: str
    does: Executes | Quantizes | Launches
    arch: Arch
    side: Side
    cubin: bytes
    listing: SassListing
    promise: Promise

    @property
    def swept(self) -> Executes | None:
        """Conversion, if all inputs run; None if selected ones do."""
        does = self.does
        if isinstance(does, Executes) and does.sampled == "with-branches":
            does = replace(does, sampled=self.listing.branches > 0)
        return does if isinstance(does, Executes) and does.swept else None

    @property
    def name(self) -> str:
        """``patched sm_121a``."""
        return f"{self.side} {self.arch}"

    @property
    def instruction(self) -> bool:
        """True if it converts with F2FP."""
        return self.listing.count(InstructionClass.FP4) > 0

    def execution(
        self,
        report: NumericsReport | None = None,
        *,
        batch: Batch | None = None,
        problem: str = "",
        cached: bool = False,
    ) -> Execution:
        """Return the execution of the kernel with its result, or the reason why there is none."""
        return Execution(
            probe=self.probe,
            arch=self.arch,
            side=self.side,
            report=report,
            batch=batch,
            problem=problem,
            instruction=self.instruction,
            cached=cached,
        )


@dataclass(frozen=True)
class _Job:
    """A program to run: a kernel against the specification, or against another."""

    what: str
    kernel: Kernel
    executes: Executes
    reference: Kernel | None = None
    classes: int = sweep.EVERY_CLASS
    """Those to run; the others are known to match."""


@dataclass(frozen=True)
class _Done:
    """Result of a job."""

    swept: Swept | None
    seconds: float = 0.0
    cached: bool = False
    problem: str = ""


def execute(
    subjects: Sequence[Subject],
    *,
    toolchain: Toolchain,
    cache: Path | None,
    threads: int | None = None,
    progress: OnProgress = silent,
) -> Executed:
    """Return every input through each kernel, and those for SM121 against the one for the RTX PRO 6000.

    ``threads`` at a time, by default one for each processor that this process may use. A kernel that is not understood
    is a failed result; so is one that does not compile, or leaves its own memory.
    """
    lab = _Lab(toolchain, Cache(cache) if cache else None, threads or processors(), progress)
    whole = lab.launched([subject for subject in subjects if isinstance(subject.does, Launches)])
    kernels: dict[Subject, Kernel | Failure] = {
        subject: lab.translated(subject) for subject in subjects if subject not in whole
    }
    jobs = {
        subject: _Job(f"{subject.probe} {subject.name}", kernel, swept)
        for subject, kernel in kernels.items()
        if isinstance(kernel, Kernel) and (swept := subject.swept)
    }
    batches = lab.batches({s: k for s, k in kernels.items() if isinstance(k, Kernel) and not s.swept})
    done = lab.run(list(jobs.values()))
    executions = whole | {
        subject: _refused(subject, kernel)
        if isinstance(kernel, FAILURES)
        else batches.get(subject) or _execution(subject, done[lab.name(jobs[subject])])
        for subject, kernel in kernels.items()
    }
    pairs = list(_pairs([subject for subject, one in executions.items() if one.report]))
    direct = {
        pair: _Job(
            f"{pair[0].probe} {pair[0].name} against {pair[1].name}",
            *(job.kernel, job.executes, reference.kernel, inexact([executions[subject] for subject in pair])),
        )
        for pair in pairs
        if (reference := jobs[pair[0]]).kernel != (job := jobs[pair[1]]).kernel
        and not any(_exact(executions[subject]) for subject in pair)
    }
    compared = lab.run(list(direct.values()))
    equivalences = [
        _equivalence(
            pair,
            (executions[pair[0]], executions[pair[1]]),
            same_code=jobs[pair[0]].kernel == jobs[pair[1]].kernel,
            direct=compared[lab.name(direct[pair])] if pair in direct else None,
        )
        for pair in pairs
    ]
    return Executed(tuple(executions.values()), tuple(equivalences), tuple(_notes(executions)))


# --- what came of it -------------------------------------------------------------------------------------------------


def _refused(subject: Subject, error: Failure) -> Execution:
    return replace(subject.execution(problem=error.message), unsupported=isinstance(error, Unsupported))


def _execution(subject: Subject, done: _Done) -> Execution:
    swept, executes = done.swept, subject.swept
    report = None
    if executes and swept and not swept.stray:
        report = NumericsReport(
            subject=f"{subject.probe}, {subject.side}",
            where=f"executed {subject.arch} machine code",
            lanes=executes.lanes,
            rows=swept.rows,
            promise=subject.promise,
            seconds=done.seconds,
            passes=swept.passes,
            alike=swept.alike,
            bits=executes.bits,
        )
    problem = done.problem or (swept.stray if swept else "")
    corners = swept.corners if swept else ()
    return replace(subject.execution(report, problem=problem, cached=done.cached), corners=corners)


def _exact(execution: Execution) -> bool:
    """Return whether nothing mismatches: then the result of every input is known."""
    assert execution.report
    return not _mismatch((*execution.report.rows, *execution.corners))


def _mismatch(rows: Sequence[NumericsRow]) -> bool:
    return any(row.mismatches for row in rows)


def inexact(pair: Sequence[Execution]) -> int:
    """Return the classes, a bit for each, in which one of two kernels mismatches: in the others they are the same."""
    reports = [one.report for one in pair if one.report]
    return sum(1 << at for at, rows in enumerate(zip(*(one.rows for one in reports), strict=True)) if _mismatch(rows))


def _pairs(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, Subject]]:
    """Yield (reference, candidate) pairs: the sm_120a kernel and each patched sm_121a kernel.

    The reference is the pristine kernel if that uses the instruction; else, since upstream converts in software there
    too, it is the patched kernel.
    """
    upstream = {one.probe for one in subjects if (one.arch, one.side) == (CARD, "pristine") and one.instruction}
    for one in subjects:
        if one.arch != CARD or one.side != ("pristine" if one.probe in upstream else "patched"):
            continue
        for other in subjects:
            if (other.probe, other.side) == (one.probe, "patched") and (other.arch.major, other.arch.minor) == (12, 1):
                yield one, other


def _equivalence(
    pair: tuple[Subject, Subject], found: tuple[Execution, Execution], *, same_code: bool, direct: _Done | None
) -> Equivalence:
    one, other = pair
    rows: tuple[NumericsRow, ...] = ()
    assert one.swept
    passes = one.swept.lanes if one.swept.bits == 16 else 1
    if same_code:
        pass
    elif direct:
        rows = direct.swept.rows if direct.swept else ()
    elif _exact(found[0]):
        # The one gives the specification's nibble for every input: where the other does not, they differ.
        rows, passes = (found[1].report.rows, found[1].report.passes) if found[1].report else ((), 1)
    elif found[0].report:
        swapped = ((row, (Mismatch(m.input, m.got, m.expected) for m in row.first)) for row in found[0].report.rows)
        rows = tuple(replace(row, first=tuple(first)) for row, first in swapped)
        passes = found[0].report.passes
    return Equivalence(one.probe, one.name, other.name, passes << one.swept.bits, rows, other.promise, same_code)


def _notes(executions: Mapping[Subject, Execution]) -> Iterator[str]:
    if any(one.instruction and one.report for one in executions.values()):
        yield "F2FP has the meaning of the specification by definition: code that uses it is no proof of silicon"


# --- running ---------------------------------------------------------------------------------------------------------


class _Lab:
    """Translates, compiles and runs; remembers what it can."""

    def __init__(self, toolchain: Toolchain, cache: Cache | None, threads: int, progress: OnProgress) -> None:
        self._toolchain = toolchain
        self._cache = cache
        self._threads = threads
        self._progress = progress
        self._upstream: dict[Kernel, tuple[list[list[bytes]], frozenset[int]]] = {}

    def translated(self, subject: Subject) -> Kernel | Failure:
        """Return the subject's kernel as C, or why there is none: its own failure must not hide what others come to."""
        try:
            runner = Runner(self._toolchain.environ)
            text = disassemble(subject.cubin, toolchain=self._toolchain, runner=runner, cache=self._cache)
            _must_not_wait(subject)
            return self._kernel(text, kernel_of(subject.probe, functions(subject.cubin)), subject)
        except FAILURES as error:
            return error

    def launched(self, subjects: Sequence[Subject]) -> dict[Subject, Execution]:
        """Whole kernels, each compared with upstream's for sm_120a; the same code runs once."""
        upstream = {one.probe: one for one in subjects if one.side == "pristine" and one.instruction}
        with (
            tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
            ThreadPoolExecutor(max_workers=self._threads) as pool,
        ):
            found = {one: self._whole(Path(scratch), pool, one, upstream.get(one.probe)) for one in subjects}
        return {
            subject: self._batched(subject, *result) if isinstance(result, tuple) else _refused(subject, result)
            for subject, result in found.items()
        }

    def _whole(
        self, scratch: Path, pool: ThreadPoolExecutor, subject: Subject, upstream: Subject | None
    ) -> tuple[Batch | str, bool] | Failure:
        """Return the sum over the kernels of an object file."""
        if not upstream:
            return ProofError("upstream's code converts for no target that was requested: nothing to compare with")
        try:
            pairs = list(zip(self._kernels(subject), self._kernels(upstream), strict=True))
        except FAILURES as error:
            return error
        except ValueError:
            return ProofError("upstream's object file does not have the same kernels")
        results = list(pool.map(lambda pair: self._compared(scratch, subject, *pair), pairs))
        if problem := next((result for result, _ in results if isinstance(result, str)), None):
            return problem, False
        batches = [result for result, _ in results if isinstance(result, Batch)]
        first = tuple(line for one in batches for line in one.first)[:4]
        whole = Batch(
            f"bytes of {counted(len(batches), 'kernel')}",
            sum(one.inputs for one in batches),
            sum(one.mismatches for one in batches),
            first,
            batches[0].against,
        )
        return whole, all(cached for _, cached in results)

    def _kernels(self, subject: Subject) -> list[Kernel]:
        assert isinstance(subject.does, Launches)
        runner = Runner(self._toolchain.environ)
        text = disassemble(subject.cubin, toolchain=self._toolchain, runner=runner, cache=self._cache)
        names = sorted(
            name for name in functions(subject.cubin) if "$" not in name and fnmatchcase(name, subject.does.kernels)
        )
        if not names:
            raise ProofError(f"no kernel is named {subject.does.kernels}")
        return [self._kernel(text, name, subject) for name in names]

    def _kernel(self, text: str, name: str, subject: Subject) -> Kernel:
        """Return a function of a subject's disassembled cubin as C."""
        capability = (subject.arch.major, subject.arch.minor)
        grid, words = not subject.swept, own_constants(name, subject.cubin)
        stored = key(
            "translation", sources("fp4patch.sass"), text, name, json.dumps(words), str(grid), str(subject.arch)
        )
        if self._cache and (found := self._cache.find(stored, lambda _: None)):
            c, parameters, block_size, immediates = json.loads(found.log)
        else:
            made = translate(text, arch=capability, kernel=name, name=KERNEL_NAME, words=words, grid=grid)
            c, parameters, block_size = made.c, made.parameters, made.block_size
            immediates = corners(made.listing, 32)
            if self._cache:
                self._cache.store(stored, [], Stored(b"", json.dumps([c, parameters, block_size, immediates])))
        listing = cache(lambda: read(text, arch=capability, kernel=name, words=words))
        return Kernel(c, parameters, block_size, listing, tuple(immediates))

    def _compared(self, scratch: Path, subject: Subject, kernel: Kernel, upstream: Kernel) -> tuple[Batch | str, bool]:
        """Return the bytes that a kernel stores, compared with those of upstream's, and whether they were cached."""
        name = f"{self._batch_name(subject, kernel)}-{self._batch_name(subject, upstream)}"
        assert isinstance(subject.does, Launches)
        does = subject.does
        return kept(self._cache, name, lambda: self._both(scratch, does, kernel, upstream))

    def _both(self, scratch: Path, does: Launches, kernel: Kernel, upstream: Kernel) -> Batch:
        from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

        launches = chosen_inputs.launches(does)
        if upstream not in self._upstream:
            self._upstream[upstream] = self._ran(scratch, upstream, launches)
        expected, ran = self._upstream[upstream]
        missing = grid.conversions(upstream) - ran
        if missing or not ran:
            assert upstream.listing
            name = upstream.listing().kernel
            of = f"{len(ran)} of {len(ran | missing)} conversions"
            raise ProofError(f"{of} in upstream's {name} run with these arguments")
        got = expected if kernel == upstream else self._ran(scratch, kernel, launches)[0]
        return chosen_inputs.compare(chosen_inputs.beside_upstream(launches, expected), got)

    def _ran(
        self, scratch: Path, kernel: Kernel, launches: Sequence[grid.Launch]
    ) -> tuple[list[list[bytes]], frozenset[int]]:
        """Return the output of each launch, and the lines of the conversions that were executed."""
        folder = Path(tempfile.mkdtemp(dir=scratch))
        host = self._toolchain.host_compiler
        binary = grid.build(folder, kernel, compiler=host, environ=self._toolchain.environ, quick=True)
        done = [grid.run_with_conversions(binary, kernel, launch) for launch in launches]
        return [arrays for arrays, _ in done], frozenset[int]().union(*(lines for _, lines in done))

    def name(self, job: _Job) -> str:
        """Return the key of its result: everything that it is made of."""
        texts = sweep.files(job.kernel, job.executes, job.reference)
        return key(
            "execute",
            made_by(),
            self._toolchain.info.host_compiler,
            str(job.classes),
            *sweep.defines(job.kernel, job.executes, job.reference),
            *chain.from_iterable(sorted(texts.items())),
        )

    def run(self, jobs: Sequence[_Job]) -> dict[str, _Done]:
        """Return the result of each job by name. The jobs are compiled in parallel, and run one after another."""
        by_name = {self.name(job): job for job in jobs}
        found = {name: self._find(name) for name in by_name}
        done = {name: one for name, one in found.items() if one}
        missing = {name: job for name, job in by_name.items() if name not in done}
        with (
            tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
            ThreadPoolExecutor(max_workers=self._threads) as pool,
        ):
            built = {name: pool.submit(self._build, Path(scratch), name, job) for name, job in missing.items()}
            try:
                for at, (name, job) in enumerate(missing.items()):
                    done[name] = self._run(name, job, built[name], at, len(missing))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        if missing:
            self._progress(Step(len(missing), len(missing), "executed all inputs"))
        return done

    def batches(self, kernels: Mapping[Subject, Kernel]) -> dict[Subject, Execution]:
        """Chosen inputs through each kernel, several kernels at a time; the same code runs once."""
        names = {subject: self._batch_name(subject, kernel) for subject, kernel in kernels.items()}
        distinct = {names[subject]: (subject, kernel) for subject, kernel in kernels.items()}
        with (
            tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
            ThreadPoolExecutor(max_workers=self._threads) as pool,
        ):
            running = {
                name: pool.submit(self._batch, Path(scratch), name, subject, kernel)
                for name, (subject, kernel) in distinct.items()
            }
            found = {name: future.result() for name, future in running.items()}
        return {subject: self._batched(subject, *found[names[subject]]) for subject in kernels}

    def _batch_name(self, subject: Subject, kernel: Kernel) -> str:
        texts = grid.files(kernel)
        how = (repr(subject.does), subject.promise)
        return key(
            "batch", made_by(), self._toolchain.info.host_compiler, *how, *chain.from_iterable(sorted(texts.items()))
        )

    def _batch(self, scratch: Path, name: str, subject: Subject, kernel: Kernel) -> tuple[Batch | str, bool]:
        """Return the result of a kernel, or the reason why there is none, and whether it was cached."""

        def compared() -> Batch:
            self._progress(Step(0, 1, f"executing {subject.probe} {subject.name}: chosen inputs"))
            # NumPy and the reference are needed only for an execution.
            from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

            folder = scratch / name
            folder.mkdir()
            assert kernel.listing
            listing = kernel.listing()
            if isinstance(subject.does, Executes):
                _must_depend_on_input_alone(kernel)
                decides = _decides(subject, listing)
                plan = chosen_inputs.conversion(subject.does, subject.promise, listing, decides=decides)
            else:
                assert isinstance(subject.does, Quantizes)
                plan = chosen_inputs.quantization(subject.does, listing)
            binary = grid.build(folder, kernel, compiler=self._toolchain.host_compiler, environ=self._toolchain.environ)
            return chosen_inputs.compare(plan, [grid.run(binary, kernel, case.launch) for case in plan.cases])

        return kept(self._cache, name, compared)

    @staticmethod
    def _batched(subject: Subject, result: Batch | str, cached: bool) -> Execution:
        if isinstance(result, str):
            return subject.execution(problem=result, cached=cached)
        return subject.execution(batch=result, cached=cached)

    def _build(self, scratch: Path, name: str, job: _Job) -> Path:
        folder = scratch / name
        folder.mkdir()
        _must_depend_on_input_alone(job.kernel)
        return sweep.build(
            folder,
            job.kernel,
            job.executes,
            job.reference,
            compiler=self._toolchain.host_compiler,
            environ=self._toolchain.environ,
            quick=job.executes.bits == 16,
        )

    def _run(self, name: str, job: _Job, built: Future[Path], at: int, total: int) -> _Done:
        def tick(part: float) -> None:
            self._progress(Step(at, total, f"executing {job.what}: {part:.0%} of all inputs"))

        tick(0)
        try:
            binary = built.result()
            began = time.monotonic()
            turns, alike = _turns(job)
            text = sweep.run(binary, threads=self._threads, turns=turns, classes=job.classes, progress=tick)
        except FAILURES as error:
            return _Done(None, problem=f"{error.message}\n{error.help}".strip())
        result = _Stored(text, len(turns), alike, round(time.monotonic() - began, 3))
        if self._cache:
            self._cache.store(name, [], Stored(b"", json.dumps(result)))
        return _done(result, cached=False)

    def _find(self, name: str) -> _Done | None:
        found = self._cache.find(name, lambda _: None) if self._cache else None
        return _done(_Stored(*json.loads(found.log)), cached=True) if found else None


def kept(cache: Cache | None, name: str, compared: Callable[[], Batch]) -> tuple[Batch | str, bool]:
    """Return the result of a comparison or its error, and whether it was cached."""
    if cache and (found := cache.find(name, lambda _: None)):
        result = json.loads(found.log)
        return Batch(**result | {"first": tuple(result["first"])}), True
    try:
        batch = compared()
    except FAILURES as error:
        return f"{error.message}\n{error.help}".strip(), False
    if cache:
        cache.store(name, [], Stored(b"", json.dumps(asdict(batch))))
    return batch, False


def _must_depend_on_input_alone(kernel: Kernel) -> None:
    """ProofError if the machine code lets something else than a thread's input reach what it stores."""
    assert kernel.listing
    listing = kernel.listing()
    if found := independence.leaks(listing, flow(listing)):
        raise ProofError("what it stores may depend on more than its input", help="; ".join(map(str, found[:4])))


def _must_not_wait(subject: Subject) -> None:
    """ProofError if threads meet in a conversion, which callers may reach with some of their threads alone."""
    waits = [one for one in subject.listing.instructions if one.opcode.split(".")[0] in _TOGETHER]
    if waits and isinstance(subject.does, Executes):
        raise ProofError("it waits for other threads, or gets their values", help=waits[0].operation)


_TOGETHER = frozenset(("ATOMS", "B2R", "BAR", "ELECT", "MATCH", "REDUX", "SHFL", "VOTE", "VOTEU", "WARPSYNC"))
"""Opcodes, without modifiers, by which threads meet."""


def _decides(subject: Subject, listing: Listing) -> bool:
    """Return whether the inputs that run decide about all others. ProofError if stochastic rounding in software does
    not allow it."""
    does = subject.does
    if not isinstance(does, Executes) or does.rounding != "stochastic" or does.sampled or subject.instruction:
        return False
    because = stochastic.doubt(listing, flow(listing), does)
    if because and (subject.arch.major, subject.arch.minor) < stochastic.FROM:
        return False
    if because:
        raise ProofError("the inputs that run do not decide about all others", help=because)
    return True


def _turns(job: _Job) -> tuple[Sequence[int], bool]:
    """Return the rotations of the inputs over the lanes, and whether the lanes that an input then misses are alike.

    Each group of lanes gets every input. Code with loops, which takes many times as long, has all inputs once even if
    its lanes are not shown to be alike.
    """
    executes = job.executes
    if executes.bits == 16:
        return range(executes.lanes), False
    if job.reference or executes.lanes == 1 or not job.kernel.listing:
        return (0,), False
    listing = job.kernel.listing()
    graph = flow(listing)
    stored = stored_bits(executes.output)
    turns = lane_equality.turns(
        lane_equality.groups(listing, graph, lanes=executes.lanes, bits=executes.bits, stored=stored)
    )
    return (turns, True) if len(turns) == 1 or not lane_equality.loops(graph) else ((0,), False)


@cache
def sources(*packages: str) -> str:
    """Return a digest of all files of these packages: of the code that makes a result."""
    files = chain.from_iterable(sorted(resources.files(one).iterdir(), key=lambda at: at.name) for one in packages)
    texts = [(at.name, at.read_text(encoding="utf-8")) for at in files if at.name.endswith((".py", ".c", ".h"))]
    return key("sources", *chain.from_iterable(texts))


def made_by() -> str:
    """Return a digest of the code that decides about a result: the inputs, what becomes of them, what should."""
    return sources("fp4patch.sass", "fp4patch.proof.execution", "fp4patch.reference")


class _Stored(NamedTuple):
    """What is kept of a job."""

    text: str
    """What its program wrote."""
    passes: int
    alike: bool
    seconds: float


def _done(stored: _Stored, *, cached: bool) -> _Done:
    swept = replace(sweep.read(stored.text), passes=stored.passes, alike=stored.alike)
    return _Done(swept, stored.seconds, cached)
