"""What ``fp4patch doctor`` finds of a machine and of source trees, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fp4patch.model.arch import Arch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fp4patch.model.state import State
    from fp4patch.model.target import Advice

GPUS = ("sm_120", "sm_121")
"""The GPUs that fp4patch is about: RTX PRO 6000 and RTX 50, and GB10."""


class Level(StrEnum):
    """How much attention a finding needs. Closed; the worst of all makes the exit status."""

    GREEN = "green"
    """As it should be, or absent and not missed."""
    YELLOW = "yellow"
    """Works for now, or for some; read the remedy before you build."""
    RED = "red"
    """This goes wrong as it is."""
    NONE = "not looked at"
    """Absent, or not looked at: nothing is known of it."""


def worst(levels: Iterable[Level]) -> Level:
    """RED if any is, else YELLOW if any is; GREEN of none."""
    found = set(levels)
    return next((level for level in (Level.RED, Level.YELLOW) if level in found), Level.GREEN)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what it is, what was found, and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    link: str = ""
    """Where this is discussed in public."""


@dataclass(frozen=True)
class Requirement:
    """What every compiled file must hold for a GPU: code that loads, or FP4 instructions."""

    gpu: str
    native: bool

    def __str__(self) -> str:
        """Return it as it is written on the command line: ``sm_121:native``."""
        return f"{self.gpu}{':native' if self.native else ''}"


@dataclass(frozen=True)
class Question:
    """What is asked of every tree and binary."""

    gpus: tuple[str, ...] = GPUS
    named: bool = False
    """Whether the user named the GPUs; else a list of architectures that is asked about names them."""
    asked: str = ""
    """The list of architectures, with semicolons; empty: those that people set."""
    cuda: str = ""
    """The CUDA release; empty: that of the toolkit at hand."""
    required: tuple[Requirement, ...] = ()
    """They decide alone where there are any."""
    strict: bool = False
    """Whether code that no required GPU loads, and code that is compiled when it loads, fails a requirement."""
    time_jit: bool = False
    """Whether to measure how long the ptxas at hand takes for PTX that a GPU loads."""


# --- source trees ----------------------------------------------------------------------------------------------------


class Reach(StrEnum):
    """What a GPU can make of the code that was compiled for some architectures."""

    SUFFIXED = "native"
    """A cubin loads whose target has the FP4 instructions."""
    BARE = "no FP4"
    """A cubin loads, but its target has no suffix, and so no FP4 instructions."""
    NOTHING = "nothing loads"
    PARTLY = "in part"
    """Of modules that are compiled each for itself, some have them and others do not."""


def runs_on(arch: Arch, gpu: Arch) -> bool:
    """Whether a cubin for ``arch`` loads on ``gpu``: the same major version, and the rule of its suffix.

    A plain or family (``f``) target serves its own and later minor versions, an ``a`` target its own alone.
    (CUDA programming guide, "Compute capability and feature set compiler targets".)
    """
    if arch.major != gpu.major:
        return False
    return arch.minor == gpu.minor if arch.suffix == "a" else arch.minor <= gpu.minor


def reach(archs: Iterable[Arch], gpu: Arch) -> Reach:
    """The best that ``gpu`` can load of these."""
    loaded = [arch for arch in archs if runs_on(arch, gpu)]
    if not loaded:
        return Reach.NOTHING
    return Reach.SUFFIXED if any(arch.suffix for arch in loaded) else Reach.BARE


@dataclass(frozen=True)
class Compiled:
    """What a build that happens at run time, on the GPU's own machine, compiles its FP4 modules for."""

    modules: dict[str, tuple[str, ...]]
    """Each module's architectures, as in TORCH_CUDA_ARCH_LIST."""
    stops: str = ""
    """What the build itself raises instead of compiling."""

    @property
    def targets(self) -> str:
        """In short, the first module speaking for those that agree with it: ``12.1a; quantization 12.0f``."""
        usual = next(iter(self.modules.values()), ())
        others = [f"{name} {', '.join(archs)}" for name, archs in self.modules.items() if archs != usual]
        return "; ".join([", ".join(usual) or "nothing", *others])

    def served(self, gpu: str) -> tuple[str, ...]:
        """The modules of which the GPU loads a cubin with FP4 instructions."""
        here = Arch.parse(gpu)
        return tuple(n for n, made in self.modules.items() if reach(map(Arch.parse, made), here) is Reach.SUFFIXED)


@dataclass(frozen=True)
class BuildRow:
    """What the tree's own build makes of one list of architectures with one CUDA release."""

    cuda: str
    asked: str
    kernels: tuple[str, ...]
    """The architectures of the FP4 kernels, as in TORCH_CUDA_ARCH_LIST; those that all of these kernels have. Of a
    build at run time: those that any of them has on any of the GPUs."""
    on: dict[str, Compiled] = field(default_factory=dict)
    """Of a build at run time, for each GPU (``sm_121``) on whose machine it happens; else empty."""
    reaches: dict[str, Reach] = field(default_factory=dict)
    """For each GPU (``sm_121``)."""
    recorded: bool = False
    """Not evaluated here, but when this release was surveyed, on its pristine tree."""
    error: str = ""
    """Why it could not be evaluated: the tree's own fatal error, or what of its text is not known."""
    stops: str = ""
    """Why such a build would stop: its compiler lacks a target. Of a build at run time, ``on`` says it for each GPU."""


@dataclass(frozen=True)
class Content:
    """Which release a tree's files are of, whatever it says of itself."""

    releases: tuple[str, ...]
    """Those whose files these are; more than one where releases share them, none where no surveyed release fits."""
    nearest: str = ""
    differs: int = 0
    """How many of the files differ from the nearest release's, and how many there are."""
    of: int = 0


@dataclass(frozen=True)
class PatchRow:
    """A patch on this tree, and the variants that would apply it."""

    patch: str
    state: State
    because: str
    variants: tuple[str, ...]


@dataclass(frozen=True)
class Outlook:
    """What a GPU gets of this tree: one line."""

    gpu: str
    level: Level
    verdict: str
    because: str
    todo: str = ""


@dataclass(frozen=True)
class TreeReport:
    """All that doctor says of one source tree."""

    root: str
    target: str
    title: str
    claims: str
    """The version that the tree states; empty if none."""
    content: Content
    variant: str
    """What is applied; empty if nothing."""
    state: State
    patches: tuple[PatchRow, ...]
    setting: str
    """The environment variable that the build's architectures come from; empty if it has none of its own."""
    builds: tuple[BuildRow, ...]
    advice: Advice | None
    next_command: str
    """What to type now; empty if nothing."""
    findings: tuple[Finding, ...]
    outlooks: tuple[Outlook, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Of its findings and of what its GPUs get."""
        return (*(f.level for f in self.findings), *(o.level for o in self.outlooks))

    @property
    def level(self) -> Level:
        """The worst of them."""
        return worst(self.levels)


# --- build recipes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecipeReport:
    """Dockerfiles, scripts and patch files at one place, and those that take SM121 out of CUTLASS's guard."""

    path: str
    read: int
    """Recipes that were read."""
    findings: tuple[Finding, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Of its findings; GREEN of recipes without any."""
        return tuple(finding.level for finding in self.findings) or (Level.GREEN,)


# --- machine ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """Findings of one kind: compilers, Python packages, GPUs."""

    title: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class MachineReport:
    """All that doctor says of this machine."""

    name: str
    """``Linux x86_64, Python 3.12.3``."""
    sections: tuple[Section, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Of its findings."""
        return tuple(finding.level for section in self.sections for finding in section.findings)

    @property
    def level(self) -> Level:
        """The worst of them."""
        return worst(self.levels)
