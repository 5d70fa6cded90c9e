"""Compile the probes of a small tree, and judge them by rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.rule import Rule
from fp4patch.catalog.target import StatedVersion, Target
from fp4patch.catalog.variant import Variant, VariantTarget
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem
from fp4patch.proof import judge
from fp4patch.proof.compile import CompiledProbes, compile_probes
from fp4patch.proof.evidence import Evidence
from fp4patch.proof.result import Check, ProbeResult
from fp4patch.proof.subject import Folded, Means, Probes, Subject
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SourceView

TARGET = Target(
    name="lib",
    title="a library of one function",
    marks=("include/lib.h",),
    version=StatedVersion(files=("include/lib.h",), pattern="A (.)"),
    include=("include", "tools/include"),  # the second is not there, as in a wheel's copy
    git="",
    tag="",
)


def subject(
    pristine: SourceView,
    probes: Probes,
    rules: Sequence[Rule],
    toolchain: Toolchain,
    headers: Mapping[str, Sequence[Path]] | None = None,
) -> Subject:
    """Return a tree as it is, with other bytes for its pristine files."""
    written = {path: (pristine.root / path).read_bytes() for path in pristine.overlay}
    return Subject(
        tree=Identified(pristine.root, TARGET, None),
        folded=Folded(pristine=pristine, written=written, applied=("lib/guard 1",)),
        variant=Variant(
            name="lib",
            title="lib",
            summary="",
            cost="",
            arch=("sm_121a",),
            targets={"lib": VariantTarget(patches=())},
            rules=tuple(rules),
        ),
        probes=probes,
        toolchain=toolchain,
        headers=headers or {},
    )


@dataclass(frozen=True)
class Verified:
    """The rows, the problems beside them, and what they were made from."""

    results: tuple[ProbeResult, ...]
    problems: tuple[Problem, ...]
    compiled: CompiledProbes


def verified(subject: Subject, means: Means) -> Verified:
    compiled = compile_probes(subject, means)
    evidence = Evidence(subject=subject, compiled=compiled)
    checks: dict[tuple[str, Arch], list[Check]] = {}
    for found in (*judge.by_rules(evidence), *judge.by_effects(evidence)):
        checks.setdefault((found.probe, found.arch), []).append(found.check)
    return Verified(judge.rows(evidence, checks), judge.missing(evidence), compiled)
