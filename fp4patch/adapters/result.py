"""Results of a tree's own build for an arch list, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fp4patch.catalog.target import Build
from fp4patch.core.arch import GPUS, Arch, Reach, reach
from fp4patch.core.document import HIDDEN, Document

Parts = Mapping[tuple[str, str], tuple[str, ...]]
"""What a build is made of: the sources, definitions, options, libraries and properties of each target and source. The
key is the target (empty: all of them) and the kind."""


@dataclass(frozen=True)
class JitTargets(Document):
    """Architectures for which a build at run time, on the GPU's own machine, compiles its FP4 modules."""

    modules: dict[str, tuple[str, ...]]
    """Architectures of each module, as in TORCH_CUDA_ARCH_LIST."""
    stops: str = ""
    """Message of the exception that the build raises instead of compiling; else empty."""
    ptx: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=HIDDEN)
    """Architectures of the PTX in each module."""
    parts: Parts = field(default_factory=dict, metadata=HIDDEN)
    """What the modules are made of."""
    ran: Mapping[str, frozenset[int]] = field(default_factory=dict, metadata=HIDDEN)
    """Lines of the tree's own files that were executed, by path."""
    error: str = field(default="", metadata=HIDDEN)
    """Reason why the targets are not known; else empty."""

    def served(self, gpu: Arch) -> tuple[str, ...]:
        """Return the modules of which the GPU loads a cubin with FP4 instructions."""
        return tuple(n for n, made in self.modules.items() if reach(map(Arch.parse, made), gpu) is Reach.SUFFIXED)


ON_AARCH64 = "aarch64: "
"""Stands before the names of targets and sources of a build for such a host, if it asks for the processor."""


@dataclass(frozen=True)
class BuildRow(Document):
    """Result of the tree's own build for one arch list and one CUDA release."""

    cuda: str
    """CUDA release of this evaluation."""
    asked: str
    """Arch list; empty: not set."""
    kernels: tuple[str, ...]
    """Architectures that all FP4 kernels have, as in TORCH_CUDA_ARCH_LIST. For a build at run time: those that any of
    the kernels has on any of the GPUs."""
    in_part: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    """Architectures that some of the kernels have and others do not."""
    on: dict[Arch, JitTargets] = field(default_factory=dict)
    """Result of a build at run time for each GPU (``sm_121``) on whose machine it happens. Empty for other builds."""
    code: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=HIDDEN)
    """Machine code of each source, not of FP4 kernels alone; empty for a build at run time."""
    ptx: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=HIDDEN)
    """PTX of each source, or of each module on each GPU's machine."""
    parts: Parts = field(default_factory=dict, metadata=HIDDEN)
    """What the build is made of; empty if it could not be recorded."""
    ran: Mapping[str, frozenset[int]] = field(default_factory=dict, metadata=HIDDEN)
    """Lines of the tree's own files at which something was executed, by path, if asked for."""
    reads: frozenset[str] = field(default=frozenset(), metadata=HIDDEN)
    """Files of the tree that its CMake read as data."""
    reaches: dict[Arch, Reach] = field(default_factory=dict)
    """Support of each GPU (``sm_121``)."""
    error: str = ""
    """Reason why the build could not be evaluated: the tree's own fatal error, or source text that is not
    understood."""
    stops: str = ""
    """Reason why the build would stop: its compiler does not support a target. For a build at run time, ``on`` holds
    the reason of each GPU."""
    lacks: str = ""
    """What a library of the build calls and does not have, so that it cannot be imported."""

    def of(self, kernels: str, build: Build) -> BuildRow:
        """Return the row of the sources whose paths match; of a build at run time, or one that stops, itself."""
        if self.stops or not self.code:
            return self
        chosen = {source: set(archs) for source, archs in self.code.items() if re.search(kernels, source)}
        # A GPU is supported as its least supported kernel is, each by whichever of the kernel's targets it loads.
        support = {gpu: {self._support(source, gpu, build) for source in chosen} for gpu in GPUS if chosen}
        reaches = {gpu: max(found, key=list(Reach).index) for gpu, found in support.items()}
        common = set.intersection(*chosen.values()) if chosen else set[str]()
        some = set[str]().union(*chosen.values()) - common
        reaches = reaches or dict.fromkeys(GPUS, Reach.NOTHING)
        return replace(self, kernels=tuple(sorted(common)), in_part=tuple(sorted(some)), reaches=reaches)

    def _support(self, source: str, gpu: Arch, build: Build) -> Reach:
        found = reach(map(Arch.parse, self.code[source]), gpu)
        if build.converts:
            return found
        if found is Reach.BARE:
            return Reach.SUFFIXED
        compiled = any(Arch.parse(arch).compiles_on(gpu) for arch in self.ptx.get(source, ()))
        return Reach.PTX if found is Reach.NOTHING and compiled else found
