"""Reports of ``fp4patch doctor`` on a machine, on source trees, on other projects and on compiled code, as values."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries.findings import Answer, Finding, Level, worst
from fp4patch.binaries.report import BinaryReport
from fp4patch.catalog.target import Advice
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.document import HIDDEN, Document, Report, key, shown
from fp4patch.core.results import State, Verdict
from fp4patch.doctor.messages import LogReport
from fp4patch.doctor.settings import Setting
from fp4patch.images.image import ProofReport

NATIVE = "native"


@dataclass(frozen=True)
class Requirement:
    """Code that compiled files must hold for a GPU: code that loads, FP4 instructions, or a variant's conversions."""

    gpu: Arch
    native: bool = False
    """True if FP4 instructions are required."""
    variant: str = ""
    """Variant whose conversions are required; empty: those of any."""
    only: tuple[str, ...] = ()
    """Patterns of the files that it concerns; empty: all."""
    excepted: tuple[str, ...] = ()
    """Patterns of files that it does not concern."""

    def __str__(self) -> str:
        """Return the form used on the command line: ``sm_121:native:except=hopper*``."""
        what = f":variant={self.variant}" if self.variant else f":{NATIVE}" if self.native else ""
        files = [*(f":only={one}" for one in self.only), *(f":except={one}" for one in self.excepted)]
        return f"{self.gpu}{what}{''.join(files)}"


@dataclass(frozen=True)
class Question:
    """Options of a run that apply to every tree and binary."""

    gpus: tuple[Arch, ...] = GPUS
    named: bool = False
    """True if the user named the GPUs. Otherwise an arch list that the user gave selects them."""
    asked: str = ""
    """Requested arch list, separated by semicolons. Empty: the arch lists in common use."""
    cuda: str = ""
    """CUDA release. Empty: the release of the installed toolkit."""
    required: tuple[Requirement, ...] = ()
    """Requirements of the user. If there are any, they alone decide."""
    unlike_pytorch: str = ""
    """Element of the requested arch list that is not in PyTorch's notation: ``121a``; empty if there is none."""


@dataclass(frozen=True)
class Content(Document):
    """Release that a tree's files belong to, independent of the version that the tree states."""

    releases: tuple[str, ...]
    """Releases that have exactly these files: several if they share them, none if no surveyed release matches."""


@dataclass(frozen=True)
class PatchInTree(Document):
    """A patch on this tree."""

    patch: str
    state: State
    because: str
    variants: tuple[str, ...]
    """Variants that would apply it."""


@dataclass(frozen=True)
class Recommendation(Document):
    """Variant to use on a tree."""

    variant: str | None
    """Name of the variant; null: no advice; empty: none is needed."""
    because: str
    next: str
    """Command to run next."""


def _levels(findings: Sequence[Finding], answers: Sequence[Answer]) -> tuple[Level, ...]:
    """Return the levels of both. If no GPU was judged, only a red finding is an answer."""
    judged = not answers or any(answer.level is not Level.NONE for answer in answers)
    beside = (finding.level for finding in findings if judged or finding.level is Level.RED)
    return (*beside, *(answer.level for answer in answers))


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
    patches: tuple[PatchInTree, ...]
    setting: str = field(metadata=HIDDEN)
    """Environment variable that sets the build's architectures; empty if the build has none of its own."""
    builds: tuple[BuildRow, ...]
    advice: Advice | None = field(metadata=HIDDEN)
    next_command: str = field(metadata=HIDDEN)
    """Command to run next; empty if there is none."""
    findings: tuple[Finding, ...]
    outlooks: tuple[Answer, ...] = field(metadata=key("gpus"))
    """Result for each GPU from this tree."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings and outlooks."""
        return _levels(self.findings, self.outlooks)

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


@dataclass(frozen=True)
class ProjectReport(Document):
    """Report on a directory that is no known source tree, on a configured build, or on one recipe."""

    path: str
    """A project's directory, a build directory, or a Dockerfile, script or patch."""
    read: int
    """Files that were read: sources, build files, recipes."""
    settings: tuple[Setting, ...]
    """Places that set architectures, and what they set."""
    statements: dict[str, int]
    """Number of FP4 statements in the sources, by kind."""
    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...] = field(metadata=key("gpus"))
    """Answer for each GPU; none of a known source tree, which has its own."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings and answers."""
        return _levels(self.findings, self.answers)


@dataclass(frozen=True)
class MachineReport(Document):
    """Complete report on this machine."""

    name: str
    """Description of the machine: ``Ubuntu 24.04.3 LTS, Linux x86_64, Python /usr/bin/python3``."""
    findings: tuple[Finding, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings."""
        return tuple(finding.level for finding in self.findings)


_LEVELS = {Verdict.PASS: Level.GREEN, Verdict.FAIL: Level.RED, Verdict.NOTHING: Level.NONE}
"""Level of a proof, by the verdict on its statements."""


@dataclass(frozen=True)
class DoctorReport(Report):
    """Findings about everything that was examined."""

    machine: MachineReport | None
    """This machine; null if the user named a tree or a file."""
    trees: tuple[TreeReport, ...]
    """Source trees."""
    projects: tuple[ProjectReport, ...]
    """Other projects, configured builds, and recipes."""
    binaries: tuple[BinaryReport, ...]
    """Wheels, libraries, cubins, directories and images."""
    proofs: tuple[ProofReport, ...] = ()
    """Images and directories that ``fp4patch build`` made: their labels and their proof."""
    logs: tuple[LogReport, ...] = ()
    """Logs of builds and programs."""

    @property
    def levels(self) -> list[Level]:
        """Levels of all findings."""
        parts = [tree.levels for tree in self.trees] + [project.levels for project in self.projects]
        parts += [binary.levels for binary in self.binaries] + [log.levels for log in self.logs]
        parts.append(tuple(_LEVELS[proof.verdict] for proof in self.proofs))
        return [*(self.machine.levels if self.machine else ()), *(level for levels in parts for level in levels)]

    @property
    @shown()
    def verdict(self) -> Level:
        """Worst of these levels."""
        return worst(self.levels)
