"""What the machine gave for a subject, before anything is judged, and what a check makes of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem
from fp4patch.proof.builds import Evaluated
from fp4patch.proof.compile import CompiledProbes, Configured
from fp4patch.proof.conditions import Cut
from fp4patch.proof.execution.result import Executed, Execution
from fp4patch.proof.result import BuildResult, Check, ProbeResult, SetAside
from fp4patch.proof.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A subject, and the results of compiling, executing and evaluating it."""

    subject: Subject
    compiled: CompiledProbes
    executed: Executed = field(default_factory=lambda: Executed(()))
    configured: Sequence[tuple[Configured, Execution]] = ()
    """Executions of probes that other flags of the compiler make other code of."""
    layers: Sequence[ProbeResult] = ()
    """Executions of whole layers, each with its checks."""
    built: Evaluated = field(default_factory=Evaluated)
    """The tree's own build, evaluated."""
    conditions: Sequence[BuildResult] = ()
    """Conditions on the compute capability, evaluated."""
    idle: Sequence[SetAside] = ()
    """Those that are not judged, of edits that change nothing."""
    cuts: Sequence[Cut] = ()
    """The code of the conditions."""

    @property
    def builds(self) -> tuple[BuildResult, ...]:
        """All evaluations, each with its verdict."""
        return (*self.built.results, *self.conditions)


@dataclass(frozen=True)
class OnRow:
    """A check of the machine code of one probe for one architecture."""

    probe: str
    arch: Arch
    check: Check


Finding = OnRow | Problem
Judge = Callable[[Evidence], Iterable[Finding]]
"""Judges one thing: whatever it looked at is a check with its verdict, and what is missing is a problem."""
