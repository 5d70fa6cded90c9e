"""Findings of ``fp4patch doctor`` about a machine and about source trees, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from packaging.version import Version

from fp4patch.model.arch import Arch
from fp4patch.model.cuda import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fp4patch.model.state import State
    from fp4patch.model.target import Advice

GPUS = ("sm_120", "sm_121")
"""GPUs that fp4patch targets: RTX PRO 6000 and RTX 50 (sm_120), and GB10 (sm_121)."""


class Level(StrEnum):
    """Severity of a finding. Closed; the worst severity of all findings decides the exit status."""

    GREEN = "green"
    """The state is right, or the thing is absent and not needed."""
    YELLOW = "yellow"
    """It works now, or for some GPUs only. Read the remedy before you build."""
    RED = "red"
    """It fails in the present state."""
    NONE = "not looked at"
    """The thing is absent or was not examined, so nothing is known about it."""


def worst(levels: Iterable[Level]) -> Level:
    """Return RED if any level is RED, else YELLOW if any is YELLOW, else GREEN."""
    found = set(levels)
    return next((level for level in (Level.RED, Level.YELLOW) if level in found), Level.GREEN)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: its subject, the state that was found and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    link: str = ""
    """Link to a public discussion of the finding."""


@dataclass(frozen=True)
class Requirement:
    """Code that every compiled file must hold for a GPU: code that loads, or FP4 instructions."""

    gpu: str
    native: bool

    def __str__(self) -> str:
        """Return the form used on the command line: ``sm_121:native``."""
        return f"{self.gpu}{':native' if self.native else ''}"


@dataclass(frozen=True)
class Question:
    """Options of a run that apply to every tree and binary."""

    gpus: tuple[str, ...] = GPUS
    named: bool = False
    """True if the user named the GPUs. Otherwise an arch list that the user gave selects them."""
    asked: str = ""
    """Requested arch list, separated by semicolons. Empty: the arch lists in common use."""
    cuda: str = ""
    """CUDA release. Empty: the release of the installed toolkit."""
    required: tuple[Requirement, ...] = ()
    """Requirements of the user. If there are any, they alone decide."""
    strict: bool = False
    """True if code that no required GPU loads, and code that is compiled when it loads, fails a requirement."""
    time_jit: bool = False
    """True if the time that ptxas takes for PTX that a GPU loads is to be measured."""


# --- source trees ----------------------------------------------------------------------------------------------------


class Reach(StrEnum):
    """FP4 support that a GPU gets from code compiled for a set of architectures."""

    SUFFIXED = "native"
    """The GPU loads a cubin whose target has the FP4 instructions."""
    BARE = "no FP4"
    """The GPU loads a cubin, but its target has no suffix and therefore no FP4 instructions."""
    NOTHING = "nothing loads"
    PARTLY = "in part"
    """Some of several modules that are compiled separately have the FP4 instructions, and others do not."""


def runs_on(arch: Arch, gpu: Arch) -> bool:
    """Return whether a cubin for ``arch`` loads on ``gpu``.

    Both must have the same major version. A plain or family (``f``) target runs on its own and later minor versions, an
    ``a`` target on its own alone. (CUDA programming guide, "Compute capability and feature set compiler targets".)
    """
    if arch.major != gpu.major:
        return False
    return arch.minor == gpu.minor if arch.suffix == "a" else arch.minor <= gpu.minor


def reach(archs: Iterable[Arch], gpu: Arch) -> Reach:
    """Return the best support that ``gpu`` gets from code for these architectures."""
    loaded = [arch for arch in archs if runs_on(arch, gpu)]
    if not loaded:
        return Reach.NOTHING
    return Reach.SUFFIXED if any(arch.suffix for arch in loaded) else Reach.BARE


@dataclass(frozen=True)
class Compiled:
    """Architectures for which a build at run time, on the GPU's own machine, compiles its FP4 modules."""

    modules: dict[str, tuple[str, ...]]
    """Architectures of each module, as in TORCH_CUDA_ARCH_LIST."""
    stops: str = ""
    """Message of the exception that the build raises instead of compiling."""

    @property
    def targets(self) -> str:
        """Summary: the first module's architectures, then each module that differs: ``12.1a; quantization 12.0f``."""
        usual = next(iter(self.modules.values()), ())
        others = [f"{name} {', '.join(archs)}" for name, archs in self.modules.items() if archs != usual]
        return "; ".join([", ".join(usual) or "nothing", *others])

    def served(self, gpu: str) -> tuple[str, ...]:
        """Return the modules of which the GPU loads a cubin with FP4 instructions."""
        here = Arch.parse(gpu)
        return tuple(n for n, made in self.modules.items() if reach(map(Arch.parse, made), here) is Reach.SUFFIXED)


@dataclass(frozen=True)
class BuildRow:
    """Result of the tree's own build for one arch list and one CUDA release."""

    cuda: str
    asked: str
    kernels: tuple[str, ...]
    """Architectures that all FP4 kernels have, as in TORCH_CUDA_ARCH_LIST. For a build at run time: those that any of
    the kernels has on any of the GPUs."""
    on: dict[str, Compiled] = field(default_factory=dict)
    """Result of a build at run time for each GPU (``sm_121``) on whose machine it happens. Empty for other builds."""
    reaches: dict[str, Reach] = field(default_factory=dict)
    """Support of each GPU (``sm_121``)."""
    recorded: bool = False
    """True if the row comes from the survey of this release's pristine tree, and was not evaluated in this run."""
    error: str = ""
    """Reason why the build could not be evaluated: the tree's own fatal error, or source text that is not
    understood."""
    stops: str = ""
    """Reason why the build would stop: its compiler does not support a target. For a build at run time, ``on`` holds
    the reason of each GPU."""

    def reached(self, targets: Iterable[str], cuda: str = "") -> BuildRow:
        """Return the row with the support of each GPU: none if the compiler of ``cuda`` (by default: the row's) does
        not have one of the targets."""
        if stops := refused(Version(cuda or self.cuda), map(Arch.parse, sorted(targets))):
            return replace(self, stops=stops, error="", kernels=(), reaches=dict.fromkeys(GPUS, Reach.NOTHING))
        archs = [Arch.parse(arch) for arch in self.kernels]
        return replace(self, reaches={gpu: reach(archs, Arch.parse(gpu)) for gpu in GPUS})


@dataclass(frozen=True)
class Content:
    """Release that a tree's files belong to, independent of the version that the tree states."""

    releases: tuple[str, ...]
    """Releases that have exactly these files: several if they share them, none if no surveyed release matches."""
    nearest: str = ""
    differs: int = 0
    """Number of files that differ from the nearest release. ``of`` is the number of files compared."""
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
    """Result for one GPU from this tree, in one line."""

    gpu: str
    level: Level
    verdict: str
    because: str
    todo: str = ""


@dataclass(frozen=True)
class TreeReport:
    """Complete report on one source tree."""

    root: str
    target: str
    title: str
    claims: str
    """The version that the tree states; empty if none."""
    content: Content
    variant: str
    """Variant that is applied; empty if none."""
    state: State
    patches: tuple[PatchRow, ...]
    setting: str
    """Environment variable that sets the build's architectures; empty if the build has none of its own."""
    builds: tuple[BuildRow, ...]
    advice: Advice | None
    next_command: str
    """Command to run next; empty if there is none."""
    findings: tuple[Finding, ...]
    outlooks: tuple[Outlook, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings and outlooks."""
        return (*(f.level for f in self.findings), *(o.level for o in self.outlooks))

    @property
    def level(self) -> Level:
        """Worst of these levels."""
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
        """Levels of all findings; GREEN for recipes without any."""
        return tuple(finding.level for finding in self.findings) or (Level.GREEN,)


# --- machine ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """Findings of one kind: compilers, Python packages, GPUs."""

    title: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class MachineReport:
    """Complete report on this machine."""

    name: str
    """Description of the machine: ``Linux x86_64, Python 3.12.3``."""
    sections: tuple[Section, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings."""
        return tuple(finding.level for section in self.sections for finding in section.findings)

    @property
    def level(self) -> Level:
        """Worst of these levels."""
        return worst(self.levels)
