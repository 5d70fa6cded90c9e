"""The ways to execute a probe's code, one class each: all inputs, chosen ones, on the host, or beside upstream's."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Protocol

from fp4patch.catalog.probe import Executes, Launches, Quantizes, stored_bits
from fp4patch.core import process
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.core.store import Store
from fp4patch.proof.execution import chosen_inputs, stochastic, sweep
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.result import Ran
from fp4patch.proof.execution.scheduler import Scheduler
from fp4patch.proof.machine_code import disassemble, kernel_of
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass import grid
from fp4patch.sass.flow import flow
from fp4patch.sass.folding import NotFollowedError
from fp4patch.sass.lane_equality import lane_functions, loops
from fp4patch.sass.program import Kernel
from fp4patch.sass.text import functions, own_constants
from fp4patch.sass.translate import translate


@dataclass(frozen=True)
class Tools:
    """Translates machine code, compiles and runs it, with the scheduler of those who share the machine."""

    toolchain: Toolchain
    runner: Runner
    store: Store
    scratch: Path
    scheduler: Scheduler

    def folder(self) -> Path:
        """Return a new directory."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def kernel(self, code: ProbeCode, name: str = "") -> Kernel:
        """Return a function of a cubin as C; the probe's own kernel if none is named."""
        text = disassemble(code.content, toolchain=self.toolchain, runner=self.runner, store=self.store)
        name = name or kernel_of(code.probe, functions(code.content))
        words = own_constants(name, code.content)
        return translate(text, arch=code.capability, kernel=name, words=words, grid=not code.swept)

    def launched(
        self, kernel: Kernel, launches: Sequence[grid.Launch], *, quick: bool = False
    ) -> tuple[list[list[bytes]], frozenset[int]]:
        """Return the output of each launch, and the lines of the conversions that were executed."""
        host_compiler, environ = self.toolchain.host_compiler, self.toolchain.environ
        binary = grid.build(self.folder(), kernel, compiler=host_compiler, environ=environ, quick=quick)
        done = [grid.run(binary, kernel, launch) for launch in launches]
        return [arrays for arrays, _ in done], frozenset[int]().union(*(lines for _, lines in done))

    def functions(self, executes: Executes, kernel: Kernel) -> tuple[object, ...]:
        """Return the function of its value that each code is; none of code with loops, which is not followed.

        ProofError if a code may depend on anything else.
        """
        graph = flow(kernel.listing)
        if loops(graph):
            return ()
        try:
            with self.scheduler.symbols() as symbols:
                return lane_functions(
                    kernel.listing,
                    graph,
                    lanes=executes.lanes,
                    bits=stored_bits(executes.input),
                    stored=stored_bits(executes.output),
                    symbols=symbols,
                )
        except NotFollowedError as why:
            raise ProofError("what it stores may depend on more than its input", help=str(why)) from why


class Strategy(Protocol):
    """A way to execute one code."""

    def run(self) -> Ran:
        """Return what the inputs gave; ProofError or SassError if that is not known."""
        ...


def strategy_for(code: ProbeCode, upstream: ProbeCode | None, tools: Tools) -> Strategy:
    """Return the way to execute a code. ``upstream`` is the code that it may be compared with.

    ProofError if threads meet in a conversion, which callers may reach with some of their threads alone.
    """
    does, swept = code.does, code.swept
    if not isinstance(does, Executes):
        return BesideUpstream(code, does, upstream, tools)
    if code.listing is None:
        return HostCode(does, code.content, tools)
    waits = (line for line in code.listing.instructions if line.opcode.split(".")[0] in _TOGETHER)
    if found := next(waits, None):
        raise ProofError("it waits for other threads, or gets their values", help=found.operation)
    return AllInputs(code, swept, tools) if swept else ChosenInputs(code, does, tools)


_TOGETHER = frozenset(
    (
        "ATOMS",
        "B2R",
        "BAR",
        "ELECT",
        "MATCH",
        "REDUX",
        "SHFL",
        "VOTE",
        "VOTEU",
        "WARPSYNC",
    )
)
"""Opcodes, without modifiers, by which threads meet."""


@dataclass(frozen=True)
class AllInputs:
    """Each input goes through one lane if all are alike, else through each; through one of code with loops, which takes
    many times as long."""

    code: ProbeCode
    executes: Executes
    tools: Tools

    def run(self) -> Ran:
        """Return what all inputs gave; the boundaries, which go through every lane, first."""
        tools = self.tools
        executes = self.executes
        kernel = self.tools.kernel(self.code)
        functions, few = tools.functions(executes, kernel), executes.bits == 16
        each = few or len(set(functions)) > 1
        turns = range(executes.lanes if each else 1)
        function = (executes.output, functions[0]) if functions and not each else None
        with tools.scheduler.turn(function) as known:
            binary = sweep.build(
                tools.folder(),
                kernel,
                executes,
                compiler=tools.toolchain.host_compiler,
                environ=tools.toolchain.environ,
                quick=few or bool(known),
            )
            stride = sweep.CORNERS_ALONE if known else 1
            with tools.scheduler.all_processors() as threads:
                corners, swept = sweep.run(tools.runner, binary, threads=threads, stride=stride, turns=turns)
            every = known or swept
            if every.inputs != len(turns) << executes.bits:
                raise ProofError(f"{every.inputs:,} inputs ran, which are not all")
            tools.scheduler.keep(function, every)
        alone = executes.lanes > 1 and not (each or functions)
        what = "inputs, each in one lane, boundaries in every lane," if alone else "inputs"
        first = corners if corners.wrong else every
        return replace(first, what=what, inputs=1 << executes.bits, signs=every.signs, bits=executes.bits)


@dataclass(frozen=True)
class ChosenInputs:
    """Inputs near the boundaries and in between, of kernels with too many to run them all."""

    code: ProbeCode
    does: Executes
    tools: Tools

    def run(self) -> Ran:
        """Return what the chosen inputs gave, and whether they decide about all others."""
        kernel = self.tools.kernel(self.code)
        what = f"records of {self.does.lanes}{' with random bits' if self.does.rounding == 'stochastic' else ''}"
        what += ", which decide about all others," if self._decide(kernel) else ""
        cases = list(chosen_inputs.conversion(self.does, kernel.listing))
        stored, _ = self.tools.launched(kernel, [case.launch for case in cases])
        return chosen_inputs.compare(what, cases, [arrays[0] for arrays in stored])

    def _decide(self, kernel: Kernel) -> bool:
        """Return whether the inputs that run decide about all others; ProofError if a code depends on anything else.

        Stochastic rounding in software must allow it.
        """
        if self.does.rounding != "stochastic":
            self.tools.functions(self.does, kernel)
            return False
        if self.code.instruction:
            return False
        try:
            because = stochastic.doubt(kernel.listing, flow(kernel.listing), self.does)
        except NotFollowedError as why:
            because = str(why)
        if because and not self.does.sampled and self.code.capability >= stochastic.FROM:
            raise ProofError("the inputs that run do not decide about all others", help=because)
        return not because


@dataclass(frozen=True)
class HostCode:
    """``fp4patch_host(values, packed, records)``, in C, of an object file with host code."""

    does: Executes
    content: bytes
    tools: Tools

    def run(self) -> Ran:
        """Return what chosen inputs gave; ProofError if it does not link or run."""
        cases = list(chosen_inputs.conversion(self.does))
        folder = self.tools.folder()
        stored = list[bytes]()
        (folder / "probe.o").write_bytes(self.content)
        main = (resources.files(__package__) / "host.c").read_text(encoding="utf-8")
        toolchain = self.tools.toolchain
        linked = ("-x", "c", "-", "-x", "none", "probe.o", "-lstdc++", "-lm", "-o", "host")
        command = [str(toolchain.host_compiler), *linked]
        done = process.run(command, limit=None, folder=folder, environ=toolchain.environ, text=main)
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
        return chosen_inputs.compare(f"records of {self.does.lanes} on the host", cases, stored)


@dataclass(frozen=True)
class BesideUpstream:
    """The bytes that the kernels of an object file store, compared with those that upstream's store."""

    code: ProbeCode
    does: Quantizes | Launches
    upstream: ProbeCode | None
    tools: Tools

    def run(self) -> Ran:
        """Return the comparison; ProofError if the launches do not show each of upstream's conversions."""
        code = self.code
        upstream = self.upstream
        does = self.does
        tools = self.tools
        if not upstream:
            raise ProofError("upstream's code converts for no target that was requested: nothing to compare with")
        names, theirs = (_kernels(either, does) for either in (code, upstream))
        if len(names) != len(theirs):
            raise ProofError("upstream's object file does not have the same kernels")
        launches = chosen_inputs.launches(does)
        results = list[Ran]()
        quick = isinstance(does, Launches)
        for name, other in zip(names, theirs, strict=True):
            kernel = tools.kernel(upstream, other)
            expected, ran = tools.launched(kernel, launches, quick=quick)
            missing = grid.conversions(kernel) - ran
            if missing or not ran:
                of = f"{len(ran)} of {len(ran | missing)} conversions"
                raise ProofError(f"{of} in upstream's {other} run with these arguments")
            got = expected if code is upstream else tools.launched(tools.kernel(code, name), launches, quick=quick)[0]
            results.append(chosen_inputs.beside(does, expected, got, in_order=code.in_order))
        first = next((ran for ran in results if ran.wrong), results[0])
        return replace(first, inputs=sum(ran.inputs for ran in results), wrong=sum(ran.wrong for ran in results))


def _kernels(code: ProbeCode, does: Quantizes | Launches) -> list[str]:
    """Return the names of the kernels in a cubin that are executed."""
    defined = functions(code.content)
    if isinstance(does, Quantizes):
        return [kernel_of(code.probe, defined)]
    names = sorted(name for name in defined if "$" not in name and fnmatchcase(name, does.kernels))
    if not names:
        raise ProofError(f"no kernel is named {does.kernels}")
    return names
