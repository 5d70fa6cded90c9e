"""Reports of ``fp4patch doctor`` on a machine, on source trees, on other projects and on compiled code, as values."""

from dataclasses import dataclass, field, fields

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries.findings import Answer, Finding, Level, worst
from fp4patch.binaries.report import BinaryReport
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.document import Document, Report, key, shown
from fp4patch.core.results import State, Verdict
from fp4patch.doctor.settings import Setting
from fp4patch.images.image import ProofReport
from fp4patch.tree.receipt import PatchStatus


@dataclass(frozen=True)
class Requirement:
    """Code that compiled files must hold for a GPU: code that loads, FP4 instructions, or a variant's conversions."""

    gpu: Arch
    native: bool = False
    """True if FP4 instructions are required."""
    fp4: bool = False
    """True if no axis of doctor's answer may be no or not judged, and FP4 code must be in hardware."""
    variant: str = ""
    """Variant whose conversions are required; empty: those of any."""
    only: tuple[str, ...] = ()
    """Patterns of the files that it concerns; empty: all."""
    excepted: tuple[str, ...] = ()
    """Patterns of files that it does not concern."""
    text: str = ""
    """The form used on the command line, for its GPU alone: ``sm_121:native:except=hopper*``."""


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
    patches: bool = True
    """True if the report has the states of all patches of a tree; else of those that repair a known defect."""

    @property
    def concerned(self) -> tuple[Arch, ...]:
        """GPUs to answer for: of those that the user did not name the ones that the arch list names, if any."""
        listed = {arch.gpu for arch in Arch.parse_list(self.asked, ptx=True)} if self.asked else set()
        return self.gpus if self.named else tuple(gpu for gpu in self.gpus if gpu in listed) or self.gpus


@dataclass(frozen=True)
class Recommendation(Document):
    """Variant to use on a tree."""

    variant: str | None
    """Name of the variant; null: no advice; empty: none is needed."""
    because: str
    next: str
    """Command to run next."""


class Examined(Document):
    """One input that was examined."""

    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...] = ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of all findings and answers. If no GPU was judged, only a red finding is an answer."""
        judged = not self.answers or any(answer.level is not Level.NONE for answer in self.answers)
        beside = (finding.level for finding in self.findings if judged or finding.level is Level.RED)
        return (*beside, *(answer.level for answer in self.answers))


@dataclass(frozen=True)
class TreeReport(Examined):
    """Complete report on one source tree."""

    root: str = field(metadata=key("tree"))
    target: str
    version: str
    """The version that the tree states; empty if none."""
    releases: tuple[str, ...]
    """Releases that have exactly its files: several if they share them, none if no surveyed release matches."""
    variant: str
    """Variant that is applied; empty if none."""
    state: State
    patches: tuple[PatchStatus, ...]
    builds: tuple[BuildRow, ...]
    recommended: Recommendation
    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...] = field(metadata=key("gpus"))
    """Answer for each GPU from this tree."""


@dataclass(frozen=True)
class ProjectReport(Examined):
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


@dataclass(frozen=True)
class FindingsReport(Examined):
    """Report on this machine, on the log of a build or a program, or on a list of packages."""

    name: str
    """The machine, ``Linux-6.14.0-x86_64-with-glibc2.39, Python /usr/bin/python3``, or the file."""
    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...] = field(default=(), metadata=key("gpus"))
    """Answer for each GPU of the machine that has FP4 instructions; for each, if none of them has any."""


LEVELS = {Verdict.PASS: Level.GREEN, Verdict.FAIL: Level.RED, Verdict.NOTHING: Level.NONE}
"""Level of a proof, by the verdict on its statements."""


@dataclass(frozen=True)
class DoctorReport(Report):
    """Findings about everything that was examined."""

    machine: FindingsReport | None = None
    """This machine; null if the user named a tree or a file."""
    trees: tuple[TreeReport, ...] = ()
    """Source trees."""
    projects: tuple[ProjectReport, ...] = ()
    """Other projects, configured builds, and recipes."""
    binaries: tuple[BinaryReport, ...] = ()
    """Wheels, libraries, cubins, directories and images."""
    proofs: tuple[ProofReport, ...] = ()
    """Images and directories that ``fp4patch build`` made: their labels and their proof."""
    logs: tuple[FindingsReport, ...] = ()
    """Logs of builds and programs: the first occurrence of each known message, in the order of the log."""
    lists: tuple[FindingsReport, ...] = ()
    """Lists of packages: the answer for each release that doctor knows, for each GPU."""

    def __add__(self, other: "DoctorReport") -> "DoctorReport":
        """Return one report on everything that both are about."""
        _, *names = (part.name for part in fields(self))
        parts = {name: getattr(self, name) + getattr(other, name) for name in names}
        return DoctorReport(self.machine or other.machine, **parts)

    @property
    @shown()
    def verdict(self) -> Level:
        """Worst of all levels."""
        parts: list[Examined | BinaryReport] = [*self.trees, *self.projects, *self.binaries, *self.logs, *self.lists]
        parts += [self.machine] if self.machine else []
        levels = [level for part in parts for level in part.levels]
        return worst([*levels, *(LEVELS[proof.verdict] for proof in self.proofs)])
