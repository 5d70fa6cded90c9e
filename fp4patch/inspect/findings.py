"""Findings of ``fp4patch doctor`` about a machine and about source trees, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fp4patch.catalog.target import Advice
from fp4patch.core.arch import Arch, Reach, reach
from fp4patch.core.document import HIDDEN, Document, key, shown
from fp4patch.core.state import State

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
class Finding(Document):
    """One thing that was checked: its subject, the state that was found and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    """Recommended action; empty if all is well."""
    link: str = ""
    """Link to a public discussion of the finding; mostly empty."""


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


@dataclass(frozen=True)
class Compiled(Document):
    """Architectures for which a build at run time, on the GPU's own machine, compiles its FP4 modules."""

    modules: dict[str, tuple[str, ...]]
    """Architectures of each module, as in TORCH_CUDA_ARCH_LIST."""
    stops: str = ""
    """Message of the exception that the build raises instead of compiling; else empty."""

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
class BuildRow(Document):
    """Result of the tree's own build for one arch list and one CUDA release."""

    cuda: str
    """CUDA release of this evaluation."""
    asked: str
    """Arch list; empty: not set."""
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
    setting: str = ""
    """Environment variable of the arch list: ``TORCH_CUDA_ARCH_LIST``."""


@dataclass(frozen=True)
class Content(Document):
    """Release that a tree's files belong to, independent of the version that the tree states."""

    releases: tuple[str, ...]
    """Releases that have exactly these files: several if they share them, none if no surveyed release matches."""
    nearest: str = ""
    """Nearest release, if none matches."""
    differs: int = 0
    """Number of files that differ from the nearest release."""
    of: int = 0
    """Number of files compared."""


@dataclass(frozen=True)
class PatchRow(Document):
    """A patch on this tree."""

    patch: str
    state: State
    because: str
    variants: tuple[str, ...]
    """Variants that would apply it."""


@dataclass(frozen=True)
class Outlook(Document):
    """Result for one GPU from this tree, in one line."""

    gpu: str
    level: Level
    verdict: str
    because: str
    todo: str = ""
    """Recommended action; empty if none is needed."""


@dataclass(frozen=True)
class Recommendation(Document):
    """Variant to use on a tree."""

    variant: str | None
    """Name of the variant; null: no advice; empty: none is needed."""
    because: str
    next: str
    """Command to run next."""


@dataclass(frozen=True)
class TreeReport(Document):
    """Complete report on one source tree."""

    root: str = field(metadata=key("tree"))
    target: str
    title: str = field(metadata=HIDDEN)
    claims: str = field(metadata=key("version"))
    """The version that the tree states; empty if none."""
    content: Content
    variant: str
    """Variant that is applied; empty if none."""
    state: State
    patches: tuple[PatchRow, ...]
    setting: str = field(metadata=HIDDEN)
    """Environment variable that sets the build's architectures; empty if the build has none of its own."""
    builds: tuple[BuildRow, ...]
    advice: Advice | None = field(metadata=HIDDEN)
    next_command: str = field(metadata=HIDDEN)
    """Command to run next; empty if there is none."""
    findings: tuple[Finding, ...]
    outlooks: tuple[Outlook, ...] = field(metadata=key("gpus"))
    """Result for each GPU from this tree."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings and outlooks."""
        return (*(f.level for f in self.findings), *(o.level for o in self.outlooks))

    @property
    @shown()
    def level(self) -> Level:
        """Worst of these levels."""
        return worst(self.levels)

    @property
    @shown()
    def recommended(self) -> Recommendation:
        """Recommended variant, and the command to run next."""
        advice = self.advice
        return Recommendation(advice.variant if advice else None, advice.because if advice else "", self.next_command)


# --- build recipes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecipeReport(Document):
    """Dockerfiles, scripts and patch files at one place, and those that take SM121 out of CUTLASS's guard."""

    path: str
    """A file or directory with Dockerfiles, scripts or patches."""
    read: int
    """Recipes that were read."""
    findings: tuple[Finding, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings; GREEN for recipes without any."""
        return tuple(finding.level for finding in self.findings) or (Level.GREEN,)


# --- machine ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section(Document):
    """Findings of one kind: compilers, Python packages, GPUs."""

    title: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class MachineReport(Document):
    """Complete report on this machine."""

    name: str
    """Description of the machine: ``Linux x86_64, Python 3.12.3``."""
    sections: tuple[Section, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings."""
        return tuple(finding.level for section in self.sections for finding in section.findings)

    @property
    @shown()
    def level(self) -> Level:
        """Worst of these levels."""
        return worst(self.levels)
