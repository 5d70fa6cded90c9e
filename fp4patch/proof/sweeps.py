"""``verify --numerics``: every float32 input through what a variant makes of a tree, on the host and on a GPU.

On the host: NVIDIA's own conversion, a second witness of the specification; the encoders that the variant names; and
what of the tree is host code. On a GPU: these encoders in every packing, and the tree's own functions, compiled for its
bare target, where every conversion is software.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.probe import Needs
from fp4patch.catalog.rule import Promise
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.cache import cache_dir
from fp4patch.core.errors import ProofError
from fp4patch.core.problem import Problem
from fp4patch.core.progress import OnProgress, Step
from fp4patch.proof import numerics
from fp4patch.proof.cache import Cache
from fp4patch.proof.callables import FORCE_SOFTWARE, Header, callables, encoders_of, include_folders, subjects
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
    encoders = tuple(encoders_of(variant, tree.target.name, patches))
    usable = gpu if gpu and gpu.arch >= OLDEST_GPU else None
    what = _Sweeps(tree, variant, toolchain, encoders, callables(patches, has), threads, slow_too)
    sweeps = [*what.on_host(), *(what.on_gpu(usable) if usable else ())]
    reports: list[NumericsReport] = []
    problems: list[Problem] = []
    for done, (name, sweep) in enumerate(sweeps):
        on_progress(Step(done, len(sweeps), f"all inputs: {name}"))
        try:
            reports += sweep()
        except ProofError as error:
            problems.append(Problem(f"all inputs through {name}", error.message, error.help))
    on_progress(Step(len(sweeps), len(sweeps), "all inputs"))
    return Numbers(tuple(reports), tuple(what.notes(gpu, usable)), tuple(problems))


@dataclass(frozen=True)
class _Sweeps:
    """The sweeps over one tree, and what they share."""

    tree: Identified
    variant: Variant
    toolchain: Toolchain
    encoders: tuple[Path, ...]
    functions: Sequence[Header]
    threads: int | None
    slow_too: bool

    def on_host(self) -> Iterator[_Sweep]:
        """Yield NVIDIA's own conversion, the encoders, and those of the tree's functions that are host code."""
        target, compiler, include = self.tree.target, self.toolchain.host_compiler, self.toolchain.root / "include"
        cache = Cache(cache_dir() / "executions")
        reference = partial(
            numerics.host_sweep,
            numerics.NVIDIA_REFERENCE,
            "nvidia::e2m1",
            subject="__nv_cvt_float_to_fp4 of the toolkit's cuda_fp4.hpp",
            promise=Promise.EXACT,
            compiler=compiler,
            include=[include, include / "cccl"],
            threads=self.threads,
            cache=cache,
        )
        yield "NVIDIA's own conversion, on the host", lambda: (reference(),)
        sweep = partial(numerics.host_sweeps, promise=self.variant.promise, threads=self.threads, cache=cache)
        for path in self.encoders:
            chosen = [subject for subject in numerics.encoder_subjects(path) if subject.lanes in HOST_LANES]
            text = path.read_text(encoding="utf-8")
            yield f"{path.stem}, on the host", partial(sweep, text, chosen, compiler=compiler, what=path.stem)
        flags, name = target.compile, f"{target.name}'s own code"
        allowed = ("yes", "if-asked") if self.slow_too else ("yes",)
        for one in self.functions:
            if run := subjects([function for function in one.functions if function.host in allowed]):
                there = partial(sweep, toolchain=self.toolchain, include=self._include(one), flags=flags, what=name)
                yield f"{target.name}'s own functions, on the host", partial(there, one.preamble, run)

    def on_gpu(self, gpu: Gpu) -> Iterator[_Sweep]:
        """Yield the encoders and the tree's functions, compiled for a GPU."""
        sweep = partial(numerics.device_sweep, toolchain=self.toolchain, gpu=gpu, promise=self.variant.promise)
        for path in self.encoders:
            text = path.read_text(encoding="utf-8")
            yield f"{path.stem}, on {gpu.name}", partial(sweep, text, numerics.encoder_subjects(path))
        flags = [*self.tree.target.compile, FORCE_SOFTWARE]
        for one in self.functions:
            there = partial(sweep, include=self._include(one), flags=flags)
            name = f"{self.tree.target.name}'s own functions, on {gpu.name}"
            yield name, partial(there, one.preamble, subjects(one.functions))

    def _include(self, header: Header) -> list[Path]:
        return [*include_folders(self.tree.root, self.tree), *header.include]

    def notes(self, gpu: Gpu | None, usable: Gpu | None) -> Iterator[str]:
        """Yield notes about where the sweeps ran, and about those that were left out."""
        name = self.tree.target.name
        if not (self.encoders or self.functions):
            own = "only NVIDIA's own was run, as the reference"
            yield f"{self.variant.name} puts no software conversion into {name}: {own}"
            return
        if usable:
            yield f"on {usable.name} everything was compiled for bare {usable.arch}, where conversions are software"
            return
        why = f"{gpu.name} is {gpu.arch}, older than {OLDEST_GPU}" if gpu else "no CUDA GPU in this machine"
        functions = [one for header in self.functions for one in header.functions]
        device_only = f", and {name}'s own functions are device code" if any(f.host == "no" for f in functions) else ""
        yield f"{why}: only the host ran{device_only}"
        slow = [one.name for one in functions if one.host == "if-asked"]
        if slow and not self.slow_too:
            yield f"left out on the host, where each takes a minute or so (--numerics-all runs them): {', '.join(slow)}"
