"""Reports of ``fp4patch doctor`` on a machine, on source trees and on recipes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.adapters.result import BuildRow
from fp4patch.core.arch import GPUS
from fp4patch.inspect.findings import Finding, Level, worst

if TYPE_CHECKING:
    from fp4patch.catalog.target import Advice
    from fp4patch.core.state import State


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
