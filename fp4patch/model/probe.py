"""What a patch brings to be proven with: probes to compile, and functions to run every input through."""

from __future__ import annotations

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


@dataclass(frozen=True, kw_only=True)
class Executes(Manifest):
    """That a probe's kernel turns ``lanes`` values a thread into packed ``output``, value 0 lowest, and nothing else.

    Its parameters are two pointers, to the values and to what it stores; thread i of the grid reads and writes record
    i. One value alone has a byte of its own.
    """

    input: Literal["float32", "float16", "bfloat16"]
    lanes: Literal[1, 2, 4, 8, 16]
    output: Literal["e2m1"] = "e2m1"
    pristine_from: int = 0
    """The least ``__CUDA_ARCH__`` (1000: sm_100) for which the pristine kernel does so. Below it, where upstream's code
    is no conversion at all, the patched one alone is executed."""

    @property
    def bits(self) -> int:
        """Bits of an input: there are 2 to this power."""
        return 32 if self.input == "float32" else 16


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
    slow: bool = False
    """The compiler takes minutes for it: it runs only if asked for (``verify --all``)."""
    executes: Executes | None = None
    """What its kernel computes, for the machine code to be executed. None: it is only looked at."""
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
