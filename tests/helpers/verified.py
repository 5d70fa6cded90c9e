"""Compile the probes of a small tree, and judge them by rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from fp4patch.catalog.rule import Rule
from fp4patch.catalog.target import StatedVersion, Target
from fp4patch.core.results import Problem
from fp4patch.proof.compile import CompiledProbes, CompileRequest, compile_probes
from fp4patch.proof.judge import judged, unjudged
from fp4patch.proof.result import ProbeResult

TARGET = Target(
    name="lib",
    title="a library of one function",
    marks=("include/lib.h",),
    version=StatedVersion(files=("include/lib.h",), pattern="A (.)"),
    include=("include", "tools/include"),  # the second is not there, as in a wheel's copy
    git="",
    tag="",
)


@dataclass(frozen=True)
class Verified:
    """The rows, the problems beside them, and what they were made from."""

    results: tuple[ProbeResult, ...]
    problems: tuple[Problem, ...]
    compiled: CompiledProbes


def verified(request: CompileRequest, rules: Sequence[Rule]) -> Verified:
    compiled = compile_probes(request)
    return Verified(judged(compiled, rules), unjudged(rules, compiled.pairs, request.archs), compiled)
