"""Means by which a patch is proven: probes to compile, and functions to run on every input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, StrictFloat, StrictInt

from fp4patch.core.arch import Arch
from fp4patch.core.table import SOME, ArchName, FileBeside, FolderBeside, Globs, Manifest

CARD = Arch(12, 0, "a")
"""The RTX PRO 6000's own target: what the others are compared with."""


class ProbeKind(StrEnum):
    """Result of compiling a probe, or of executing a layer."""

    SASS = "sass"
    """Device code, disassembled and judged by the variant's rules."""
    UNIT = "unit"
    """Device code as SASS, but of all kernels of a whole source file of the tree; rules judge them together."""
    HOST = "host"
    """A whole object file including the host pass; it only has to compile."""
    LAYER = "layer"
    """A program with kernels, all of which are executed as it launches them; its results are judged."""


WITH_HOST = (ProbeKind.HOST, ProbeKind.LAYER)
"""Kinds that are compiled with their host code."""


@dataclass(frozen=True, kw_only=True)
class Needs(Manifest):
    """Condition on a tree for a probe to apply: a file, and C++ tokens that must or must not be in it."""

    search: Globs
    """Globs, relative to upstream's repository; ``**`` is allowed. One matching file is enough."""
    tokens: str = ""
    without: str = ""
    """Tokens of releases that the probe is not for, in any matching file: the patch has nothing to do there."""


Format = Literal["float64", "float32", "float16", "bfloat16", "e2m1", "e2m3", "e3m2"]
"""A number format. In memory, E2M1 is packed with two values per byte, and FP6 takes one byte per value."""

BITS: Mapping[str, int] = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "e2m1": 4, "e2m3": 6, "e3m2": 6}
"""Bits of each format's codes."""

Reciprocal = Literal["exact", "up", "down", "any"]


@dataclass(frozen=True, kw_only=True)
class Executes(Manifest):
    """Statement that a probe's kernel converts ``lanes`` values per thread, value 0 lowest, and does nothing else.

    The kernel's parameters are two pointers, to the values and to its output. Thread i of the grid reads and writes
    record i, in whole bytes. A single value has a byte of its own.
    """

    input: Format
    """Format of the values."""
    lanes: int
    """Number of values of a record."""
    output: Format = "e2m1"
    """Format of what it stores."""
    rounding: Literal["nearest", "stochastic"] = "nearest"
    """``stochastic``: a record has random words behind its values, one for four of them."""
    sampled: bool | Literal["with-branches", "pristine-with-branches"] = False
    """A sample of the inputs runs, each exponent in every lane: all of them take minutes. ``with-branches``: only if
    the machine code has branches, as software of upstream's own on older targets; or only on the pristine side."""
    factors: tuple[float, ...] = ()
    """Factors by which the kernel multiplies the values of a record in turn before it converts them, as
    ``mul.rn.f32`` does."""
    pristine_from: int = 0
    """Lowest ``__CUDA_ARCH__`` (1000: sm_100) for which the pristine kernel converts. Below it, upstream's code does
    not convert, and only the patched kernel is executed."""

    @property
    def bits(self) -> int:
        """Bits of an input: there are 2 to this power."""
        return BITS[self.input]

    @property
    def swept(self) -> bool:
        """True if the sweep over all inputs covers it. Otherwise all codes in pairs of lanes, a sample of floats, or
        all thresholds of stochastic rounding run."""
        narrow = self.output in ("e2m1", "e2m3", "e3m2") and self.lanes * stored_bits(self.output) <= 64
        return (
            self.rounding == "nearest"
            and not self.sampled
            and not self.factors
            and self.bits in (16, 32)
            and narrow
            and self.lanes in (1, 2, 4, 8, 16)
        )


Number = StrictInt | StrictFloat

NumberType = Literal[
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
"""Type of an argument, or of the elements of an array."""


@dataclass(frozen=True, kw_only=True)
class Argument(Manifest):
    """A parameter of a kernel: a number, or a pointer to an array, which has a ``count`` or consists of ``blocks``."""

    type: NumberType | None = None
    """Type of the number, or of the array's elements."""
    count: PositiveInt | None = None
    """Number of elements of an array. None: the parameter is a number."""
    values: tuple[Number | tuple[Number, ...], ...] = ()
    """Of a number, each launch takes the next one. An array has these values over and over; if they are lists, each
    launch takes the next list. An array without any has seeded ones."""
    out: bool = False
    """True if the kernel may write the array."""
    blocks: PositiveInt | None = None
    """Number of blocks of 16 values that an array has, of the type that ``quantizes`` reads."""

    def __post_init__(self) -> None:
        if self.blocks:
            if self.type or self.count or self.values or self.out:
                raise ValueError("blocks without another key")
            return
        if not self.type:
            raise ValueError("a type, or blocks")
        if not self.count and (self.out or not self.values or self.lists):
            raise ValueError("values of a number, or the count of an array")
        if self.lists and len(self.lists) != len(self.values):
            raise ValueError("values that are all numbers, or all lists")
        for value in (value for listed in self.lists or [self.values] for value in listed):
            if not _fits(value, self.type):
                raise ValueError(f"values of the type {self.type}")

    @property
    def lists(self) -> tuple[tuple[Number, ...], ...]:
        """The values of each launch, if they are lists."""
        return tuple(value for value in self.values if isinstance(value, tuple))

    @property
    def alternatives(self) -> int:
        """Number of launches in which it differs."""
        return len(self.lists) if self.count else len(self.values)


def _fits(value: object, kind: str) -> bool:
    if "float" in kind:
        return True
    bits, unsigned = int(kind.lstrip("uint")), kind[0] == "u"
    return isinstance(value, int) and -(1 << bits - 1) * (not unsigned) <= value < 1 << bits - (not unsigned)


Extent = PositiveInt | Annotated[tuple[PositiveInt, ...], Field(min_length=1, max_length=3)]
"""Size of a grid or a block: a number, or one for each dimension."""


@dataclass(frozen=True, kw_only=True)
class LaunchSeries(Manifest):
    """Launches of a kernel. Where a key or an argument has a list of alternatives, each launch takes the next of them,
    and after the last one the first again. There are as many launches as the longest list has."""

    arguments: Annotated[tuple[Argument, ...], SOME]
    """The parameters, in their order."""
    block: PositiveInt | Annotated[tuple[Extent, ...], SOME]
    """Number of threads in a block, or alternatives. One of several dimensions is a list: ``[[8, 16]]``."""
    grid: PositiveInt | Annotated[tuple[Extent, ...], SOME] = 1
    """Number of blocks, likewise."""
    reciprocals: Annotated[tuple[Reciprocal, ...], SOME] = ("any", "exact")
    """Results of MUFU.RCP: the rounded quotient, the float above or below it in magnitude, or any of these."""

    @property
    def alternatives(self) -> int:
        """Number of launches."""
        listed = [len(of) for of in (self.block, self.grid, self.reciprocals) if isinstance(of, tuple)]
        return max(*listed, *(argument.alternatives for argument in self.arguments))


@dataclass(frozen=True, kw_only=True)
class PageCache(Manifest):
    """A KV cache of vLLM that is filled in one launch."""

    pages: PositiveInt
    """Number of pages."""
    tokens: PositiveInt
    """Number of tokens in a page, a multiple of four."""
    heads: PositiveInt
    """Number of heads of keys, and of values."""
    head: PositiveInt
    """Number of values in a head, a multiple of 16."""
    by_heads: bool
    """True if a page has the tokens of each head, else the heads of each token."""
    scales: tuple[float, float]
    """Global scales of K and of V."""
    reciprocal: Reciprocal
    """Result of MUFU.RCP."""

    def __post_init__(self) -> None:
        if self.tokens % 4 or self.head % 16:
            raise ValueError("tokens in fours, and a head of blocks of 16 values")

    @property
    def data(self) -> int:
        """Bytes of the codes of K, or of V, in a page; an eighth of them are block scales behind these."""
        return self.tokens * self.heads * self.head // 2


@dataclass(frozen=True, kw_only=True)
class Quantizes(Manifest):
    """Statement that a probe's kernel quantizes: to E2M1 codes and a scale for every 16 values.

    It gives on each target the bytes that upstream's gives on sm_120a. ``linear``: the parameters are pointers to the
    values, the global scale, the codes and the scales; each thread takes 8 values. ``swizzled``: also the numbers of
    rows and of columns (32 bits each), and row r is that of block r of threads; the scales are in the order that
    ``mma`` reads. Kernels with other parameters have them in ``launch``.
    """

    input: Literal["float32", "float16", "bfloat16"]
    """Format of the values."""
    layout: Literal["linear", "swizzled"] = "linear"
    """Its parameters, and the order of its scales."""
    launch: LaunchSeries | None = None
    """Its launches, if its parameters are of no layout."""
    caches: tuple[PageCache, ...] = ()
    """KV caches that ``reshape_and_cache_nvfp4_kernel`` of vLLM fills, one in each launch, with a token for each block
    of threads. The parameters are pointers to keys, values, their two scales, slots and pages, and the numbers of
    heads, of values of a head, of tokens of a page, and 1 if a page has tokens by heads. Not the bytes of the pages are
    compared but what attention kernels read there: in patched code for SM12x, the block scales of V in the order of the
    tokens."""
    pristine_from: int = 0
    """As in :class:`Executes`."""

    def __post_init__(self) -> None:
        if self.launch and self.caches:
            raise ValueError("launch or caches")


@dataclass(frozen=True, kw_only=True)
class Launches(LaunchSeries):
    """Statement that kernels give on each target the bytes that upstream's give on sm_120a, for the same arguments.

    It is for whole kernels. Every conversion in upstream's machine code must run in one of the launches.
    """

    kernels: str = "*"
    """Glob of the names of the kernels in the object file."""
    pristine_from: int = 0
    """As in :class:`Executes`."""

    def __post_init__(self) -> None:
        if any(argument.blocks for argument in self.arguments):
            raise ValueError("arguments with a type: blocks are of what quantizes reads")


def stored_bits(form: Format) -> int:
    """Return the number of bits that a value of a format takes in memory."""
    return 8 if form in ("e2m3", "e3m2") else BITS[form]


@dataclass(frozen=True, kw_only=True)
class Probe(Manifest):
    """A small translation unit that makes the compiler emit the code in question.

    ``source`` is a path below the patch's directory; ``defines`` become ``-D`` flags. A SASS probe has exactly one
    kernel, named ``probe``. A probe does not run on a tree that does not meet ``needs``, and verify reports that.
    """

    name: str
    title: str
    source: FileBeside
    kind: ProbeKind = ProbeKind.SASS
    defines: dict[str, str | int] = field(default_factory=dict)
    include: tuple[FolderBeside, ...] = ()
    """Include directories below the patch's directory, searched after the tree's. They replace headers that the probe
    includes."""
    uses: tuple[str, ...] = ()
    """Headers of other projects that the probe uses in their real form: ``torch``, or a target. If they are not
    available, it does not run, and verify reports that."""
    needs: Needs | None = None
    arch: tuple[str, ...] = ("*",)
    """Globs of the targets that it is compiled for: upstream's headers may refuse others."""
    also: tuple[ArchName, ...] = ()
    """Targets for which it is compiled beside the variant's, unless ``verify --arch`` names others: the patched text
    has a branch of its own for them."""
    together: str = ""
    """Probes of one target with the same word here are compiled as one translation unit, which takes less time. The
    macros of ``defines`` are then defined around the probe's own source alone, but for those of :attr:`flags`."""
    slow: bool = False
    """True if compilation takes minutes: the probe runs only with ``verify --all``."""
    executes: Executes | None = None
    """Function that its kernel computes, used to execute the machine code. None: the code is only inspected."""
    quantizes: Quantizes | None = None
    """The same for a kernel that scales blocks of values."""
    launches: Launches | None = None
    """The same for whole kernels, which are compared with upstream's."""
    patch: str = ""
    """Set by the loader: ``cutlass/e2m1-guard``."""
    ours: str = "FP4PATCH_"
    """Beginning of the macros of patched headers; another one in a tree with the commits of an export."""

    def in_upstreams_names(self, target: str) -> Self:
        """Return the probe for a tree in which macros of patched headers have names of the target."""
        theirs = f"{target.upper()}_"
        defines = {name.replace(self.ours, theirs): value for name, value in self.defines.items()}
        return replace(self, defines=defines, ours=theirs)

    def is_for(self, arch: Arch) -> bool:
        """Return whether it is compiled for a target."""
        return any(fnmatchcase(str(arch), one) for one in self.arch)

    def targets(self, archs: Sequence[Arch], *, also: bool) -> tuple[Arch, ...]:
        """Return the targets that it is compiled for: those of ``archs`` that it is for, and with ``also`` its own.

        Kernels that are no conversion alone are compiled for sm_120a too, with which the others are compared.
        """
        more = [Arch.parse(one) for one in self.also] if also else []
        wanted = [*filter(self.is_for, archs), *more]
        return tuple(dict.fromkeys((*wanted, *([CARD] if (self.launches or self.quantizes) and wanted else []))))

    @property
    def flags(self) -> dict[str, str | int]:
        """Macros of ``defines`` for patched headers, by their prefix: flags of a unit whose probes all have them."""
        return {name: value for name, value in self.defines.items() if name.startswith(self.ours)}

    @property
    def does(self) -> Executes | Quantizes | Launches | None:
        """Statement by which its machine code is executed."""
        return self.executes or self.quantizes or self.launches

    @property
    def id(self) -> str:
        """Identifier that is unique in the catalog and that rules select by: ``cutlass/e2m1-x8``."""
        return f"{self.patch.partition('/')[0]}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Layer(Manifest):
    """A program that launches kernels one after the other, as a layer of a model does: ``verify --layers`` runs them.

    ``source`` has the tree's host code and a ``main``, which gets the numbers of a shape and the addresses of arrays.
    """

    name: str
    title: str
    source: FileBeside
    defines: dict[str, str | int] = field(default_factory=dict)
    include: tuple[FolderBeside, ...] = ()
    uses: tuple[str, ...] = ()
    needs: Needs | None = None
    arch: tuple[str, ...] = ("*",)
    computes: Literal["nvfp4-linear", "nvfp4-experts", "fp8-block-linear"]
    """The reference, which states the arrays (``fp4patch/proof/layers.py``)."""
    shapes: Annotated[tuple[tuple[PositiveInt, PositiveInt, PositiveInt], ...], SOME]
    """M, N and K of each run."""
    patch: str = ""
    """Set by the loader: ``vllm/e2m1-asm``."""

    @property
    def unit(self) -> Probe:
        """The program, as a unit to compile."""
        return Probe(
            name=self.name,
            title=self.title,
            source=self.source,
            kind=ProbeKind.LAYER,
            defines=self.defines,
            include=self.include,
            uses=self.uses,
            needs=self.needs,
            arch=self.arch,
            patch=self.patch,
        )
