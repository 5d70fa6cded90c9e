"""``verify --numerics``: every float32 input through what a variant makes of a tree, on the host and on a GPU.

On the host: NVIDIA's own conversion, a second witness of the specification; the encoders that the variant names; and
what of the tree is host code. On a GPU: these encoders in every packing, and the tree's own functions, compiled for its
bare target, where every conversion is software.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.probe import Needs
from fp4patch.catalog.rule import Promise
from fp4patch.catalog.variant import Variant
from fp4patch.commands.verify.callables import FORCE_SOFTWARE, Header, callables, encoders_of, include_folders, subjects
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.problem import Problem
from fp4patch.core.progress import OnProgress, Step
from fp4patch.proof import numerics
from fp4patch.proof.gpu import Gpu
from fp4patch.proof.inputs import NumericsReport
from fp4patch.proof.toolchain import Toolchain

OLDEST_GPU = Arch(7, 5)

HOST_LANES = (1, 8)
"""Packings of an encoder that the host runs: the single value, and what kernels use. A GPU runs all."""


@dataclass(frozen=True)
class Numbers:
    """Results of all sweeps over one tree."""

    reports: tuple[NumericsReport, ...]
    notes: tuple[str, ...]
    """Notes on the sweeps: where they ran, and why others did not."""
    problems: tuple[Problem, ...]
    """Sweeps that do not compile or did not end."""


_Sweep = tuple[str, Callable[[], tuple[NumericsReport, ...]]]
"""A sweep by its name, and the function that runs it."""


def run(
    tree: Identified,
    variant: Variant,
    catalog: Catalog,
    toolchain: Toolchain,
    *,
    has: Callable[[Needs], bool],
    slow_too: bool,
    threads: int | None,
    on_progress: OnProgress,
    gpu: Gpu | None,
) -> Numbers:
    """All sweeps over a tree in the variant's state. ``has`` returns whether the tree meets a function's needs."""
    patches = catalog.patches_of(variant, tree.target.name)
    encoders = list(encoders_of(variant, tree.target.name, patches))
    functions = callables(patches, has)
    usable = gpu if gpu and gpu.arch >= OLDEST_GPU else None
    sweeps = [
        _reference(toolchain, threads),
        *(_encoder_on_host(path, variant.promise, toolchain, threads) for path in encoders),
        *_tree_on_host(tree, functions, variant.promise, toolchain, threads, slow_too=slow_too),
    ]
    if usable:
        sweeps += _on_gpu(tree, encoders, functions, variant.promise, toolchain, usable)
    reports: list[NumericsReport] = []
    problems: list[Problem] = []
    for done, (what, sweep) in enumerate(sweeps):
        on_progress(Step(done, len(sweeps), f"all inputs: {what}"))
        try:
            reports += sweep()
        except ProofError as error:
            problems.append(Problem(f"all inputs through {what}", error.message, error.help))
    on_progress(Step(len(sweeps), len(sweeps), "all inputs"))
    notes = tuple(_notes(tree, variant, encoders, functions, gpu, usable, slow_too=slow_too))
    return Numbers(tuple(reports), notes, tuple(problems))


def _reference(toolchain: Toolchain, threads: int | None) -> _Sweep:
    name = "__nv_cvt_float_to_fp4 of the toolkit's cuda_fp4.hpp"
    include = [toolchain.root / "include", toolchain.root / "include/cccl"]

    def sweep() -> tuple[NumericsReport, ...]:
        report = numerics.host_sweep(
            numerics.NVIDIA_REFERENCE,
            "nvidia::e2m1",
            subject=name,
            promise=Promise.EXACT,
            compiler=toolchain.host_compiler,
            include=include,
            threads=threads,
        )
        return (report,)

    return "NVIDIA's own conversion, on the host", sweep


def _encoder_on_host(path: Path, promise: Promise, toolchain: Toolchain, threads: int | None) -> _Sweep:
    sweep = partial(
        numerics.host_sweeps,
        path.read_text(encoding="utf-8"),
        [subject for subject in numerics.encoder_subjects(path) if subject.lanes in HOST_LANES],
        promise=promise,
        compiler=toolchain.host_compiler,
        threads=threads,
        what=path.stem,
    )
    return f"{path.stem}, on the host", sweep


def _tree_on_host(
    tree: Identified,
    functions: Sequence[Header],
    promise: Promise,
    toolchain: Toolchain,
    threads: int | None,
    *,
    slow_too: bool,
) -> list[_Sweep]:
    allowed = ("yes", "if-asked") if slow_too else ("yes",)
    sweeps: list[_Sweep] = []
    for one in functions:
        if chosen := [function for function in one.functions if function.host in allowed]:
            sweep = partial(
                numerics.host_sweeps,
                one.preamble,
                subjects(chosen),
                promise=promise,
                toolchain=toolchain,
                include=[*include_folders(tree.root, tree), *one.include],
                flags=tree.target.compile,
                threads=threads,
                what=f"{tree.target.name}'s own code",
            )
            sweeps.append((f"{tree.target.name}'s own functions, on the host", sweep))
    return sweeps


def _on_gpu(
    tree: Identified,
    encoders: Sequence[Path],
    functions: Sequence[Header],
    promise: Promise,
    toolchain: Toolchain,
    gpu: Gpu,
) -> list[_Sweep]:
    run_there = partial(numerics.device_sweep, toolchain=toolchain, gpu=gpu, promise=promise)
    sweeps: list[_Sweep] = []
    for path in encoders:
        sweep = partial(run_there, path.read_text(encoding="utf-8"), numerics.encoder_subjects(path))
        sweeps.append((f"{path.stem}, on {gpu.name}", sweep))
    flags = [*tree.target.compile, FORCE_SOFTWARE]
    for one in functions:
        include = [*include_folders(tree.root, tree), *one.include]
        sweep = partial(run_there, one.preamble, subjects(one.functions), include=include, flags=flags)
        sweeps.append((f"{tree.target.name}'s own functions, on {gpu.name}", sweep))
    return sweeps


def _notes(
    tree: Identified,
    variant: Variant,
    encoders: Sequence[Path],
    functions: Sequence[Header],
    gpu: Gpu | None,
    usable: Gpu | None,
    *,
    slow_too: bool,
) -> Iterator[str]:
    name = tree.target.name
    if not (encoders or functions):
        yield f"{variant.name} puts no software conversion into {name}: only NVIDIA's own was run, as the reference"
        return
    if usable:
        yield f"on {usable.name} everything was compiled for bare {usable.arch}, where conversions are software"
        return
    why = f"{gpu.name} is {gpu.arch}, older than {OLDEST_GPU}" if gpu else "no CUDA GPU in this machine"
    device_only = [one.name for group in functions for one in group.functions if one.host == "no"]
    yield f"{why}: only the host ran" + (f", and {name}'s own functions are device code" if device_only else "")
    slow = [one.name for group in functions for one in group.functions if one.host == "if-asked"]
    if slow and not slow_too:
        yield f"left out on the host, where each takes a minute or so (--numerics-all runs them): {', '.join(slow)}"
