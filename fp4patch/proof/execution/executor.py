"""Execute the machine code of probes on the host: every input, or chosen ones, against what it should give.

Results are kept by the code and all that decides about them: the same code is executed once, and a second look costs
nothing.
"""

import hashlib
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from fp4patch.catalog.probe import Executes, Launches, Quantizes, stored_bits
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import Store, key, source_hash
from fp4patch.core.wording import counted
from fp4patch.proof.execution import host, stochastic, sweep
from fp4patch.proof.execution.result import Batch, Execution, Sweep, SweepRow
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import disassemble, kernel_of
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SideName
from fp4patch.sass import grid
from fp4patch.sass.bit_functions import Symbols
from fp4patch.sass.c_evaluator import NotFollowedError
from fp4patch.sass.error import SassError
from fp4patch.sass.flow import flow
from fp4patch.sass.instruction import InstructionClass
from fp4patch.sass.lane_equality import lane_functions, loops
from fp4patch.sass.program import Kernel
from fp4patch.sass.text import functions, own_constants
from fp4patch.sass.translate import Unsupported, translate

FAILURES = (ProofError, SassError)
"""Why there is no result of a kernel; it must not hide those of others."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One probe's code, as it was compiled for one architecture from one side."""

    probe: str
    does: Executes | Quantizes | Launches
    arch: Arch
    side: SideName
    content: bytes
    """The cubin, or an object file with host code."""
    listing: SassListing | None
    """None: the host's code is executed."""
    promise: Promise

    @property
    def swept(self) -> Executes | None:
        """Conversion, if all inputs run; None if selected ones do."""
        does = self.does
        if self.listing is None or not isinstance(does, Executes):
            return None
        if does.sampled == "with-branches":
            does = replace(does, sampled=self.listing.branches > 0)
        return does if does.swept else None

    @property
    def name(self) -> str:
        """``patched sm_121a``."""
        return f"{self.side} {self.arch}"

    @property
    def instruction(self) -> bool:
        """True if it converts with F2FP."""
        return bool(self.listing and self.listing.count(InstructionClass.FP4))


def execute(
    subjects: Sequence[Subject],
    *,
    toolchain: Toolchain,
    store: Store,
    threads: int | None = None,
    progress: OnProgress = silent,
) -> tuple[Execution, ...]:
    """Return the executions of these kernels.

    ``threads`` at a time, by default one for each processor that this process may use. A kernel that is not understood
    is a failed result; so is one that does not compile, or leaves its own memory.
    """
    upstream = {code.probe: code for code in subjects if code.side == "pristine" and code.instruction}
    names = {subject: _name(subject, upstream.get(subject.probe), toolchain) for subject in subjects}
    results = _kept(store, names.values())
    missing = {name: subject for subject, name in names.items() if name not in results}
    with (
        tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
        ThreadPoolExecutor(max_workers=threads or processors()) as pool,
    ):
        lab = _Lab(toolchain, store, Path(scratch), threads or processors(), progress)
        begun = {
            name: pool.submit(lab.begin, subject, upstream.get(subject.probe)) for name, subject in missing.items()
        }
        try:
            for number, (name, subject) in enumerate(missing.items()):
                results[name] = lab.finish(subject, begun[name], Step(number, len(missing), ""))
                if not results[name].problem:
                    store.put(name, asdict(results[name]) | {"arch": str(subject.arch)})
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    # The same code can be that of several subjects.
    return tuple(
        replace(
            results[name],
            probe=subject.probe,
            arch=subject.arch,
            side=subject.side,
            promise=subject.promise,
            instruction=subject.instruction,
        )
        for subject, name in names.items()
    )


def _kept(store: Store, names: Iterable[str]) -> dict[str, Execution]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - takes a tenth of a second to import

    adapter = TypeAdapter(Execution)
    data = {name: store.get(name) for name in names}
    return {name: replace(adapter.validate_python(kept), cached=True) for name, kept in data.items() if kept}


def _name(subject: Subject, upstream: Subject | None, toolchain: Toolchain) -> str:
    """Return the name of a result: a hash of all that decides it."""
    other = upstream.listing.code_sha256 if isinstance(subject.does, Launches) and upstream and upstream.listing else ""
    code = subject.listing.code_sha256 if subject.listing else hashlib.sha256(subject.content).hexdigest()
    made_by = source_hash("fp4patch.sass", "fp4patch.proof.execution", "fp4patch.reference")
    info = toolchain.info
    return key(
        *("execute", made_by, toolchain.fingerprint, info.nvdisasm, info.host_compiler),
        *(code, other, str(subject.arch.major), str(_capability(subject) >= stochastic.FROM)),
        *(repr(subject.does), "" if subject.swept else subject.promise),
    )


def _capability(subject: Subject) -> tuple[int, int]:
    return subject.arch.major, subject.arch.minor


@dataclass(frozen=True)
class _Program:
    """A sweep that was compiled."""

    binary: Path
    turns: Sequence[int]
    alike: bool
    function: object = None
    """The function that each lane is shown to be; None if it is not known, or not the same for each."""


@dataclass(frozen=True)
class _Lab:
    """Translates, compiles and runs."""

    toolchain: Toolchain
    store: Store
    scratch: Path
    threads: int
    progress: OnProgress
    symbols: Symbols = field(default_factory=Symbols)
    """What the functions of all kernels are made of, so that those that are the same are found."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: dict[object, tuple[SweepRow, ...]] = field(default_factory=dict)
    """What all inputs gave, by the function that they went through: kernels with the same one run them once."""

    def begin(self, subject: Subject, upstream: Subject | None) -> _Program | Batch:
        """Return the result of chosen inputs, or a program that takes all processors to run all inputs."""
        if subject.listing and isinstance(subject.does, Executes):
            _must_not_wait(subject.listing)
        if subject.swept:
            return self._program(subject, subject.swept)
        self.progress(Step(0, 1, f"executing {subject.probe} {subject.name}: chosen inputs"))
        if subject.listing is None:
            assert isinstance(subject.does, Executes)
            return host.run(subject.does, subject.promise, subject.content, self._folder(), self.toolchain)
        if isinstance(subject.does, Launches):
            return self._beside_upstream(subject, upstream, subject.does)
        return self._chosen(subject, subject.does)

    def finish(self, subject: Subject, begun: Future[_Program | Batch], step: Step) -> Execution:
        """Return the result of a subject, or the reason why there is none."""
        nothing = Execution(subject.probe, subject.arch, subject.side, subject.promise)

        def tick(part: float) -> None:
            self.progress(replace(step, what=f"executing {subject.probe} {subject.name}: {part:.0%} of all inputs"))

        try:
            program = begun.result()
            if isinstance(program, Batch):
                return replace(nothing, batch=program)
            tick(0)
            rows = self.rows.get(program.function)
            stride = 1 if rows is None else sweep.CORNERS_ALONE
            swept = sweep.run(program.binary, threads=self.threads, stride=stride, turns=program.turns, progress=tick)
            if program.function is not None:
                rows = self.rows.setdefault(program.function, swept.rows)
        except FAILURES as error:
            unsupported = isinstance(error, Unsupported)
            message = error.message if unsupported else f"{error.message}\n{error.help}".strip()
            return replace(nothing, problem=message, unsupported=unsupported)
        assert subject.swept
        report = Sweep(subject.swept.lanes, rows or swept.rows, subject.swept.bits, len(program.turns), program.alike)
        return replace(nothing, report=report, corners=swept.corners)

    def _program(self, subject: Subject, executes: Executes) -> _Program:
        """Each input goes through one lane if all are alike, else through each; through one of code with loops, which
        takes many times as long."""
        kernel = self._kernel(subject)
        functions = self._functions(executes, kernel)
        host_compiler, environ = self.toolchain.host_compiler, self.toolchain.environ
        quick = executes.bits == 16
        binary = sweep.build(self._folder(), kernel, executes, compiler=host_compiler, environ=environ, quick=quick)
        if quick or len(set(functions)) > 1:
            return _Program(binary, range(executes.lanes), alike=True)
        if functions:
            return _Program(binary, (0,), alike=True, function=(executes.output, functions[0]))
        return _Program(binary, (0,), alike=executes.lanes == 1)

    def _functions(self, executes: Executes, kernel: Kernel) -> tuple[object, ...]:
        """Return the function of its value that each code is; none of code with loops, which is not followed.

        ProofError if a code may depend on anything else.
        """
        graph = flow(kernel.listing)
        if loops(graph):
            return ()
        try:
            with self.lock:
                return lane_functions(
                    kernel.listing,
                    graph,
                    lanes=executes.lanes,
                    bits=stored_bits(executes.input),
                    stored=stored_bits(executes.output),
                    symbols=self.symbols,
                )
        except NotFollowedError as why:
            raise ProofError("what it stores may depend on more than its input", help=str(why)) from why

    def _chosen(self, subject: Subject, does: Executes | Quantizes) -> Batch:
        # NumPy and the reference are needed only for an execution.
        from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

        kernel = self._kernel(subject)
        if isinstance(does, Executes):
            decides = self._decides(subject, does, kernel)
            trial = chosen_inputs.conversion(does, subject.promise, kernel.listing, decides=decides)
        else:
            trial = chosen_inputs.quantization(does, kernel.listing)
        stored, _ = self._ran(kernel, [case.launch for case in trial.cases])
        return chosen_inputs.compare(trial, stored)

    def _decides(self, subject: Subject, does: Executes, kernel: Kernel) -> bool:
        """Return whether the inputs that run decide about all others; ProofError if a code depends on anything else.

        Stochastic rounding in software must allow it.
        """
        if does.rounding != "stochastic":
            self._functions(does, kernel)
            return False
        if subject.instruction:
            return False
        try:
            because = stochastic.doubt(kernel.listing, flow(kernel.listing), does)
        except NotFollowedError as why:
            because = str(why)
        if because and not does.sampled and _capability(subject) >= stochastic.FROM:
            raise ProofError("the inputs that run do not decide about all others", help=because)
        return not because

    def _beside_upstream(self, subject: Subject, upstream: Subject | None, does: Launches) -> Batch:
        """Return the bytes that the kernels of an object file store, compared with those that upstream's store."""
        from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

        if not upstream:
            raise ProofError("upstream's code converts for no target that was requested: nothing to compare with")
        names, theirs = (_kernels(code.content, does.kernels) for code in (subject, upstream))
        if len(names) != len(theirs):
            raise ProofError("upstream's object file does not have the same kernels")
        launches, batches = chosen_inputs.launches(does), list[Batch]()
        for name, other in zip(names, theirs, strict=True):
            kernel = self._kernel(upstream, other)
            expected, ran = self._ran(kernel, launches, quick=True)
            missing = grid.conversions(kernel) - ran
            if missing or not ran:
                of = f"{len(ran)} of {len(ran | missing)} conversions"
                raise ProofError(f"{of} in upstream's {other} run with these arguments")
            got = expected if subject is upstream else self._ran(self._kernel(subject, name), launches, quick=True)[0]
            batches.append(chosen_inputs.compare(chosen_inputs.beside_upstream(launches, expected), got))
        return Batch(
            f"bytes of {counted(len(batches), 'kernel')}",
            sum(batch.inputs for batch in batches),
            sum(batch.mismatches for batch in batches),
            tuple(line for batch in batches for line in batch.first)[:4],
            batches[0].against,
        )

    def _kernel(self, subject: Subject, name: str = "") -> Kernel:
        """Return a function of a subject's cubin as C; its own kernel if none is named."""
        runner = Runner(self.toolchain.environ)
        text = disassemble(subject.content, toolchain=self.toolchain, runner=runner, store=self.store)
        name = name or kernel_of(subject.probe, functions(subject.content))
        words = own_constants(name, subject.content)
        return translate(text, arch=_capability(subject), kernel=name, words=words, grid=not subject.swept)

    def _ran(
        self, kernel: Kernel, launches: Sequence[grid.Launch], *, quick: bool = False
    ) -> tuple[list[list[bytes]], frozenset[int]]:
        """Return the output of each launch, and the lines of the conversions that were executed."""
        host_compiler, environ = self.toolchain.host_compiler, self.toolchain.environ
        binary = grid.build(self._folder(), kernel, compiler=host_compiler, environ=environ, quick=quick)
        done = [grid.run_with_conversions(binary, kernel, launch) for launch in launches]
        return [arrays for arrays, _ in done], frozenset[int]().union(*(lines for _, lines in done))

    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.scratch))


def _kernels(cubin: bytes, pattern: str) -> list[str]:
    names = sorted(name for name in functions(cubin) if "$" not in name and fnmatchcase(name, pattern))
    if not names:
        raise ProofError(f"no kernel is named {pattern}")
    return names


def _must_not_wait(listing: SassListing) -> None:
    """ProofError if threads meet in a conversion, which callers may reach with some of their threads alone."""
    waits = [code for code in listing.instructions if code.opcode.split(".")[0] in _TOGETHER]
    if waits:
        raise ProofError("it waits for other threads, or gets their values", help=waits[0].operation)


_TOGETHER = frozenset(("ATOMS", "B2R", "BAR", "ELECT", "MATCH", "REDUX", "SHFL", "VOTE", "VOTEU", "WARPSYNC"))
"""Opcodes, without modifiers, by which threads meet."""
