"""Execute the machine code of probes on the host: every input, or chosen ones, against what it should give.

Results are kept by the code and all that decides about them: the same code is executed once, and a second look costs
nothing.
"""

import hashlib
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path

from fp4patch.catalog.probe import Executes, Launches, Quantizes, stored_bits
from fp4patch.catalog.rule import Promise
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import Store, key, source_hash
from fp4patch.proof.execution import chosen_inputs, stochastic, sweep
from fp4patch.proof.execution.result import Execution, Ran
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

_LONGEST = 86_400.0
"""Seconds that a sweep may take: of code with loops, on one processor, it takes many minutes."""


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
        if isinstance(does.sampled, str):
            is_meant = does.sampled == "with-branches" or self.side == "pristine"
            does = replace(does, sampled=is_meant and self.listing.branches > 0)
        return does if does.swept else None

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
    upstream = {code.probe: code for code in reversed(subjects) if code.side == "pristine" and code.instruction}
    names = {subject: _name(subject, upstream.get(subject.probe), toolchain) for subject in subjects}
    threads = threads or processors()
    results: dict[str, Ran | ProofError | SassError] = {}
    with (
        tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
        ThreadPoolExecutor(max_workers=threads) as pool,
    ):
        lab = _Lab(toolchain, Runner(toolchain.environ, _LONGEST), store, Path(scratch), threads)
        different = {name: subject for subject, name in names.items()}  # the same code can be that of several subjects
        pending = [
            (name, subject, pool.submit(lab.run, name, subject, upstream.get(subject.probe)))
            for name, subject in different.items()
        ]
        try:
            for number, (name, subject, future) in enumerate(pending):
                progress(Step(number, len(pending), f"executing {subject.probe} {subject.side} {subject.arch}"))
                results[name] = future.result()
        except BaseException:
            lab.runner.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(_execution(subject, results[name]) for subject, name in names.items())


def _execution(subject: Subject, result: Ran | ProofError | SassError) -> Execution:
    known = Execution(subject.probe, subject.arch, subject.side, subject.promise, instruction=subject.instruction)
    if isinstance(result, Ran):
        return replace(known, ran=result)
    if isinstance(result, Unsupported):
        return replace(known, problem=result.message, unsupported=True)
    return replace(known, problem=f"{result.message}\n{result.help}".strip())


def _name(subject: Subject, upstream: Subject | None, toolchain: Toolchain) -> str:
    """Return the name of a result: a hash of all that decides it."""
    compared = upstream.listing if upstream and not isinstance(subject.does, Executes) else None
    code = subject.listing.code_sha256 if subject.listing else hashlib.sha256(subject.content).hexdigest()
    made_by = source_hash("fp4patch.sass", "fp4patch.proof.execution", "fp4patch.reference")
    info = toolchain.info
    target = str(subject.arch.major), str(_capability(subject) >= stochastic.FROM), str(bool(subject.swept))
    tools = toolchain.fingerprint, info.nvdisasm, info.host_compiler
    return key("execute", made_by, *tools, code, repr(subject.does), compared.code_sha256 if compared else "", *target)


def _capability(subject: Subject) -> tuple[int, int]:
    return subject.arch.major, subject.arch.minor


@dataclass(frozen=True)
class _Lab:
    """Translates, compiles and runs."""

    toolchain: Toolchain
    runner: Runner
    store: Store
    scratch: Path
    threads: int
    symbols: Symbols = field(default_factory=Symbols)
    """What the functions of all kernels are made of, so that those that are the same are found."""
    following: threading.Lock = field(default_factory=threading.Lock)
    sweeping: threading.Lock = field(default_factory=threading.Lock)
    """Held by the program that takes all processors."""
    swept: dict[object, Ran] = field(default_factory=dict)
    """What all inputs gave, by the function that they went through: kernels with the same one run them once."""
    one_of: dict[object, threading.Lock] = field(default_factory=dict)
    """Held for a kernel, by its function: the next one with it is compiled for the boundaries alone, in less time."""

    def run(self, name: str, subject: Subject, upstream: Subject | None) -> Ran | ProofError | SassError:
        """Return the result that is kept under a name, or work it out; an error, which must not hide other results."""
        if kept := self.store.get(name):
            return Ran(**kept)
        try:
            ran = self._result(subject, upstream)
        except (ProofError, SassError) as error:
            return error
        self.store.put(name, asdict(ran))
        return ran

    def _result(self, subject: Subject, upstream: Subject | None) -> Ran:
        """Return the result of a subject; ProofError if threads meet in a conversion, which callers may reach with some
        of their threads alone."""
        if subject.listing and isinstance(subject.does, Executes):
            code = (code for code in subject.listing.instructions if code.opcode.split(".")[0] in _TOGETHER)
            if waits := next(code, None):
                raise ProofError("it waits for other threads, or gets their values", help=waits.operation)
        if subject.swept:
            return self._of_all_inputs(subject.swept, self._kernel(subject))
        if not isinstance(subject.does, Executes):
            return self._beside_upstream(subject, upstream, subject.does)
        if subject.listing is None:
            return self._on_host(subject.does, subject.content)
        return self._chosen(subject, subject.does)

    def _of_all_inputs(self, executes: Executes, kernel: Kernel) -> Ran:
        """Each input goes through one lane if all are alike, else through each; through one of code with loops, which
        takes many times as long."""
        functions, few = self._functions(executes, kernel), executes.bits == 16
        compiler, environ = self.toolchain.host_compiler, self.toolchain.environ
        each = few or len(set(functions)) > 1
        turns = range(executes.lanes if each else 1)
        function = (executes.output, functions[0]) if functions and not each else None
        with self.one_of.setdefault(function or object(), threading.Lock()):
            known = self.swept.get(function)
            quick, stride = few or bool(known), sweep.CORNERS_ALONE if known else 1
            binary = sweep.build(self._folder(), kernel, executes, compiler=compiler, environ=environ, quick=quick)
            with self.sweeping:
                corners, swept = sweep.run(self.runner, binary, threads=self.threads, stride=stride, turns=turns)
            every = known or swept
            if every.inputs != len(turns) << executes.bits:
                raise ProofError(f"{every.inputs:,} inputs ran, which are not all")
            if function:
                self.swept[function] = every
        alone = executes.lanes > 1 and not (each or functions)
        what = "inputs, each in one lane, boundaries in every lane," if alone else "inputs"
        first = corners if corners.wrong else every
        return replace(first, what=what, inputs=1 << executes.bits, signs=every.signs, bits=executes.bits)

    def _functions(self, executes: Executes, kernel: Kernel) -> tuple[object, ...]:
        """Return the function of its value that each code is; none of code with loops, which is not followed.

        ProofError if a code may depend on anything else.
        """
        graph = flow(kernel.listing)
        if loops(graph):
            return ()
        try:
            with self.following:
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

    def _on_host(self, does: Executes, content: bytes) -> Ran:
        """Return the result of ``fp4patch_host(values, packed, records)``, in C, of an object file with host code.

        ProofError if it does not link or run.
        """
        cases, folder, stored = list(chosen_inputs.conversion(does)), self._folder(), list[bytes]()
        (folder / "probe.o").write_bytes(content)
        main = (resources.files(__package__) / "host.c").read_text(encoding="utf-8")
        linked = ("-x", "c", "-", "-x", "none", "probe.o", "-lstdc++", "-lm", "-o", "host")
        command = [str(self.toolchain.host_compiler), *linked]
        done = process.run(command, limit=None, folder=folder, environ=self.toolchain.environ, text=main)
        if done.status:
            raise ProofError("the host code of the probe cannot be linked", help=done.said[:2000])
        for case in cases:
            values, packed = (array.content for array in case.launch.arrays)
            count = len(case.inputs)
            arguments = [str(number) for number in (count, len(values) // count, len(packed) // count)]
            (folder / "values").write_bytes(values)
            with (folder / "values").open("rb") as file:  # a pipe would get it in pieces of 512 bytes
                ended = subprocess.run([folder / "host", *arguments], stdin=file, capture_output=True, check=False)
            if ended.returncode:
                raise ProofError(f"the host code of the probe did not run to its end: status {ended.returncode}")
            stored.append(ended.stdout)
        return chosen_inputs.compare(f"records of {does.lanes} on the host", cases, stored)

    def _chosen(self, subject: Subject, does: Executes) -> Ran:
        kernel = self._kernel(subject)
        what = f"records of {does.lanes}{' with random bits' if does.rounding == 'stochastic' else ''}"
        what += ", which decide about all others," if self._decides(subject, does, kernel) else ""
        cases = list(chosen_inputs.conversion(does, kernel.listing))
        stored, _ = self._ran(kernel, [case.launch for case in cases])
        return chosen_inputs.compare(what, cases, [arrays[0] for arrays in stored])

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

    def _beside_upstream(self, subject: Subject, upstream: Subject | None, does: Quantizes | Launches) -> Ran:
        """Return the bytes that the kernels of an object file store, compared with those that upstream's store."""
        if not upstream:
            raise ProofError("upstream's code converts for no target that was requested: nothing to compare with")
        names, theirs = (_kernels(code, does) for code in (subject, upstream))
        if len(names) != len(theirs):
            raise ProofError("upstream's object file does not have the same kernels")
        launches, results, quick = chosen_inputs.launches(does), list[Ran](), isinstance(does, Launches)
        for name, other in zip(names, theirs, strict=True):
            kernel = self._kernel(upstream, other)
            expected, ran = self._ran(kernel, launches, quick=quick)
            missing = grid.conversions(kernel) - ran
            if missing or not ran:
                of = f"{len(ran)} of {len(ran | missing)} conversions"
                raise ProofError(f"{of} in upstream's {other} run with these arguments")
            got = expected if subject is upstream else self._ran(self._kernel(subject, name), launches, quick=quick)[0]
            results.append(chosen_inputs.beside(launches, expected, got))
        first = next((ran for ran in results if ran.wrong), results[0])
        return replace(first, inputs=sum(ran.inputs for ran in results), wrong=sum(ran.wrong for ran in results))

    def _kernel(self, subject: Subject, name: str = "") -> Kernel:
        """Return a function of a subject's cubin as C; its own kernel if none is named."""
        text = disassemble(subject.content, toolchain=self.toolchain, runner=self.runner, store=self.store)
        name = name or kernel_of(subject.probe, functions(subject.content))
        words = own_constants(name, subject.content)
        return translate(text, arch=_capability(subject), kernel=name, words=words, grid=not subject.swept)

    def _ran(
        self, kernel: Kernel, launches: Sequence[grid.Launch], *, quick: bool = False
    ) -> tuple[list[list[bytes]], frozenset[int]]:
        """Return the output of each launch, and the lines of the conversions that were executed."""
        host_compiler, environ = self.toolchain.host_compiler, self.toolchain.environ
        binary = grid.build(self._folder(), kernel, compiler=host_compiler, environ=environ, quick=quick)
        done = [grid.run(binary, kernel, launch) for launch in launches]
        return [arrays for arrays, _ in done], frozenset[int]().union(*(lines for _, lines in done))

    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.scratch))


def _kernels(subject: Subject, does: Quantizes | Launches) -> list[str]:
    """Return the names of the kernels in a subject's cubin that are executed."""
    defined = functions(subject.content)
    if isinstance(does, Quantizes):
        return [kernel_of(subject.probe, defined)]
    names = sorted(name for name in defined if "$" not in name and fnmatchcase(name, does.kernels))
    if not names:
        raise ProofError(f"no kernel is named {does.kernels}")
    return names


_TOGETHER = frozenset(("ATOMS", "B2R", "BAR", "ELECT", "MATCH", "REDUX", "SHFL", "VOTE", "VOTEU", "WARPSYNC"))
"""Opcodes, without modifiers, by which threads meet."""
