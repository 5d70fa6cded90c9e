"""What a patch brings to be proven with: probes to compile, and functions to run every input through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from fp4patch.model.manifest import Manifest


class ProbeKind(StrEnum):
    """What a probe compiles to."""

    SASS = "sass"
    """Device code, disassembled and judged by the variant's rules."""
    UNIT = "unit"
    """Device code as SASS, but of all kernels of a whole source file of the tree: rules judge them together."""
    HOST = "host"
    """A whole object file, host pass included: it only has to compile."""


@dataclass(frozen=True, kw_only=True)
class Needs(Manifest):
    """What a tree must have for a probe to have something to show: a file, and C++ tokens in it if any are named."""

    search: tuple[str, ...]
    """Globs relative to the tree; ``**`` is allowed. One file is enough."""
    tokens: str = ""


Format = Literal["float32", "float16", "bfloat16", "e2m1", "e2m3", "e3m2"]
"""A number format. In memory E2M1 is packed, two values a byte, and FP6 has a byte for each."""

BITS: Mapping[str, int] = {"float32": 32, "float16": 16, "bfloat16": 16, "e2m1": 4, "e2m3": 6, "e3m2": 6}
"""Bits of each format's codes."""


@dataclass(frozen=True, kw_only=True)
class Executes(Manifest):
    """That a probe's kernel converts ``lanes`` values a thread, value 0 lowest, and does nothing else.

    Its parameters are two pointers, to the values and to what it stores; thread i of the grid reads and writes record
    i, whole bytes. One value alone has a byte of its own.
    """

    input: Format
    lanes: int
    output: Format = "e2m1"
    sampled: bool = False
    """A sample of the inputs runs, each exponent in every lane: all of them take minutes."""
    pristine_from: int = 0
    """The least ``__CUDA_ARCH__`` (1000: sm_100) for which the pristine kernel does so. Below it, where upstream's code
    is no conversion at all, the patched one alone is executed."""

    @property
    def bits(self) -> int:
        """Bits of an input: there are 2 to this power."""
        return BITS[self.input]

    @property
    def swept(self) -> bool:
        """Whether the sweep over all inputs does it; else all codes in pairs of lanes, or a sample of floats, run."""
        narrow = self.output in ("e2m1", "e2m3", "e3m2") and self.lanes * stored_bits(self.output) <= 64
        return not self.sampled and self.bits > 8 and narrow and self.lanes in (1, 2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True)
class Quantizes(Manifest):
    """That a probe's kernel makes E2M1 codes and a scale for every 16 values, as a function of upstream's does.

    ``vllm`` and ``flashinfer``: ``cvt_warp_fp16_to_fp4``. The parameters are pointers to the values, the global scale,
    the codes and the scales; each thread takes ``values`` of them. ``swizzled``: the kernel has also the numbers of
    rows and of columns (32 bits each) as parameters, and row r is that of block r of threads; the scales are in the
    order that ``mma`` reads. ``gemv``: ``GemvEpilogueWithScalingFactor``, with its parameters and a pointer to 16
    accumulators for each block of threads.
    """

    input: Literal["float32", "float16", "bfloat16"]
    function: Literal["vllm", "flashinfer", "gemv"]
    scales: Literal["e4m3", "power"] = "e4m3"
    layout: Literal["linear", "swizzled"] = "linear"
    values: Literal[8, 16] = 8
    pristine_from: int = 0
    """As of :class:`Executes`."""


def stored_bits(form: Format) -> int:
    """Bits that a value of a format takes in memory."""
    return 8 if form in ("e2m3", "e3m2") else BITS[form]


@dataclass(frozen=True, kw_only=True)
class Probe(Manifest):
    """A small translation unit that makes the compiler show the code in question.

    ``source`` is a path below the patch's directory; ``defines`` become ``-D`` flags. A SASS probe has exactly one
    kernel, named ``probe``. A tree that has not what ``needs`` says has no use for the probe: that is said, and the
    probe does not run.
    """

    name: str
    title: str
    source: str
    kind: ProbeKind = ProbeKind.SASS
    defines: dict[str, str | int] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    """Include folders below the patch's directory, searched after the tree's: stand-ins for headers it relies on."""
    uses: tuple[Literal["torch"], ...] = ()
    """Headers of others that it takes in earnest. Where they are not at hand it does not run, and that is said."""
    needs: Needs | None = None
    covers: tuple[str, ...] = ()
    """The functions that it checks, of those that the patch ``touches``: the beginnings of their names."""
    together: str = ""
    """Probes of one patch with the same word here are compiled as one translation unit, which takes less time. The
    macros of ``defines`` are then defined around the probe's own source alone, and not for the headers."""
    slow: bool = False
    """The compiler takes minutes for it: it runs only if asked for (``verify --all``)."""
    executes: Executes | None = None
    """What its kernel computes, for the machine code to be executed. None: it is only looked at."""
    quantizes: Quantizes | None = None
    """The same of a kernel that scales blocks of values."""
    patch: str = ""
    """Set by the loader: ``cutlass/e2m1-guard``."""

    @property
    def id(self) -> str:
        """``cutlass/e2m1-x8``: unique in the catalog; what rules select by."""
        return f"{self.patch.partition('/')[0]}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Numerics(Manifest):
    """A function of the tree that makes E2M1 of floats, for all 2^32 inputs to be run through it.

    ``source`` is a header below the patch's directory that makes it callable; ``expression`` is C++ whose value is the
    packed nibbles, value 0 lowest, of ``v``, a ``const float (&)[lanes]``. A tree that has not what ``needs`` says has
    no such function.
    """

    name: str
    """As a user of the tree would call it: ``NumericArrayConverter<float_e2m1_t, float, 8>``."""
    lanes: Literal[1, 2, 4, 8, 16]
    source: str
    expression: str
    include: tuple[str, ...] = ()
    """Include folders below the patch's directory, searched after the tree's."""
    host: Literal["no", "yes", "if-asked"] = "no"
    """Whether it is host code as well; ``if-asked`` if running all inputs there takes a minute or more."""
    bench: bool = False
    """What ``fp4patch bench`` measures of a tree: eight values."""
    needs: Needs | None = None
