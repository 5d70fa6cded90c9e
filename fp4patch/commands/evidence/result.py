"""Results of ``fp4patch evidence``: the kit that was written, the file of a GPU, and what that file proves."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from fp4patch.core.document import Document, Report, shown
from fp4patch.core.verdict import PassOrFail, verdict_on


class _PartOfFile(Document):
    """A part of a file, which has no other keys."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "use_attribute_docstrings": True,
        "json_schema_serialization_defaults_required": True,
    }


@dataclass(frozen=True)
class KitTree(_PartOfFile):
    """A tree whose kernels are in a program."""

    target: str
    version: str
    patches: tuple[str, ...]
    """Applied patches: ``cutlass/e2m1-encode 3``."""

    @property
    def name(self) -> str:
        """Target and version: ``cutlass 4.2.1``."""
        return f"{self.target} {self.version}".strip()


@dataclass(frozen=True)
class KitInfo(_PartOfFile):
    """Origin of the machine code in a program."""

    fp4patch: str
    """Version of fp4patch that built it."""
    variant: str
    nvcc: str
    """Release of nvcc that compiled the kernels."""
    ptxas: str
    """Release of ptxas."""
    trees: tuple[KitTree, ...]
    """Trees whose kernels are in the program."""
    conversions: dict[str, int]
    """Number of conversions for each target."""


@dataclass(frozen=True)
class Device(_PartOfFile):
    """The machine on which a program ran."""

    name: str
    """Name of the GPU."""
    arch: str
    """Architecture of the GPU: ``sm_121``."""
    multiprocessors: int
    memory: int
    """Memory of the GPU in bytes."""
    driver: str
    """Release of the driver; empty if the machine does not state it."""
    cuda: str
    """The newest CUDA release that the driver supports."""
    machine: str
    """Kind of processor: ``aarch64``."""


@dataclass(frozen=True)
class First(_PartOfFile):
    """The first wrong value of a run."""

    record: int
    """Number of the record."""
    lane: int
    """Number of the value in its record."""
    input: str
    """Bits of the input: ``0x3a00``."""
    expected: str
    """Bits of the expected result."""
    got: str
    """Bits of the result."""
    random: int | None = None
    """Random byte of stochastic rounding."""


@dataclass(frozen=True)
class Run(_PartOfFile):
    """One conversion over all its inputs."""

    tree: str
    """Target and version of the tree: ``cutlass 4.2.1``."""
    probe: str
    arch: str
    """Target of the machine code."""
    cubin: str
    """SHA-256 of the machine code's file."""
    form: str
    """Formats and number of values: ``float32 to e2m1, 8 values``."""
    exact: bool = True
    """True if the sign of NaN counts."""
    records: int = 0
    """Number of records that ran."""
    lanes: int = 0
    """Number of values in a record."""
    wrong: int = 0
    """Number of wrong values."""
    nan_signs: int = 0
    """Number of NaNs whose result has a sign."""
    stray: bool = False
    """True if the kernel stored behind its output."""
    digest: str = ""
    """Digest of all results: 64 bits in hexadecimal."""
    seconds: float = 0.0
    """Wall time."""
    first: First | None = None
    """The first wrong value."""
    error: str = ""
    """Error of the driver, if there is no result."""

    @property
    def right(self) -> bool:
        """Return whether every result is as expected."""
        return not (self.error or self.wrong or self.stray or (self.exact and self.nan_signs))


@dataclass(frozen=True)
class EvidenceFile(_PartOfFile):
    """The JSON file that a program writes."""

    format: Literal["fp4patch-evidence"]
    schema: Literal[1]
    kit: KitInfo
    device: Device
    runs: tuple[Run, ...]
    ended_early: bool
    seconds: float
    finished: str
    checksum: str


class Outdated(StrEnum):
    """Differences between the patches of a file and those of this fp4patch."""

    UNKNOWN = "unknown"
    """This fp4patch has no such patch."""
    OTHER_VERSION = "other version"
    """It has another version of the patch."""


@dataclass(frozen=True)
class Checked(Report):
    """Statements that a file of a GPU supports. Nothing in a file proves who made it."""

    file: str
    variant: str
    fp4patch: str
    """Version of fp4patch that built the program."""
    nvcc: str
    """Release of nvcc that compiled the kernels."""
    trees: tuple[KitTree, ...]
    """Trees whose kernels are in the program."""
    device: Device
    finished: str
    """End time in UTC, ISO 8601."""
    runs: tuple[Run, ...]
    """Conversions that ran on the GPU."""
    missing: dict[str, int]
    """Number of conversions without a result, for each target that the GPU runs."""
    outdated: dict[str, Outdated] = field(default_factory=dict)
    """Patches that are not those of this fp4patch."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if every conversion that the GPU can run has a result, and each is right."""
        return verdict_on(self.runs and not self.missing and all(run.right for run in self.runs))


@dataclass(frozen=True)
class Evidence(Report):
    """The files that were written."""

    folder: str
    """Directory of the files."""
    kit: KitInfo
    """Origin of the machine code in the program."""
    files: tuple[str, ...]
    """Paths in the directory."""
    no_program: dict[str, str]
    """Kinds of machines without a program, each with the reason."""
    not_run: dict[str, str]
    """Probes whose kernel is not in the program, by tree and probe, each with the reason."""
