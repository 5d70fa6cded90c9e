"""The JSON file that the program writes on a GPU, and what it supports. Nothing in a file proves who made it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fp4patch.commands.evidence.forms import digests
from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, Report, shown
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.results import PassOrFail, verdict_on
from fp4patch.core.table import ArchName
from fp4patch.core.wording import counted, listed


@dataclass(frozen=True)
class KitInfo(Document):
    """Origin of the machine code in a program: versions of fp4patch and of the compilers, and the trees."""

    fp4patch: str
    variant: str
    nvcc: str
    ptxas: str
    trees: dict[str, tuple[str, ...]]
    """Patches of each tree, ``cutlass/e2m1-encode 3``, by its target and version, ``cutlass 4.2.1``."""
    conversions: dict[ArchName, int]
    """Number of conversions for each target."""

    @property
    def title(self) -> str:
        """Variant and trees: ``next3 on cutlass 4.2.1 and vllm 0.33.0``."""
        return f"{self.variant} on {listed(self.trees)}"


@dataclass(frozen=True)
class Device(Document):
    """The GPU on which a program ran; ``cuda`` is the newest release that the driver supports."""

    name: str
    arch: ArchName
    driver: str
    """Release of the driver; empty if the machine does not state it."""
    cuda: str
    machine: str
    """Kind of processor: ``aarch64``."""


@dataclass(frozen=True)
class Run(Document):
    """One conversion over all its inputs: the number of its records, of values in each, and of wrong values."""

    tree: str
    """Target and version of the tree: ``cutlass 4.2.1``."""
    probe: str
    arch: str
    form: str
    """``float32 to e2m1, 8 values``."""
    exact: bool = True
    """True if the sign of NaN counts."""
    records: int = 0
    lanes: int = 0
    wrong: int = 0
    nan_signs: int = 0
    """Number of NaNs whose result has a sign."""
    stray: bool = False
    """True if the kernel stored behind its output."""
    digest: str = ""
    """Digest of all results: 64 bits in hexadecimal."""
    first: dict[str, str | int] | None = None
    """The first wrong value: ``input``, ``expected`` and ``got``, with its ``record`` and ``lane``."""
    error: str = ""
    """Error of the driver, if there is no result."""

    @property
    def fault(self) -> str:
        """What is not as it must be; empty if every result is right."""
        if self.error:
            return self.error
        values = f"{self.wrong:,} of {self.records * self.lanes:,} values are wrong"
        first = "the first is {input} to {got}, not {expected}".format_map(self.first) if self.first else ""
        signs = f"{self.nan_signs:,} NaNs keep a sign" if self.exact and self.nan_signs else ""
        stray = "it stores behind its output" if self.stray else ""
        faults = [values * bool(self.wrong), first, signs, stray]
        if not any(faults) and self.digest != f"{digests().get(self.form, 0):016x}":
            return "the digest of the results is not the expected one"
        return listed(faults)


@dataclass(frozen=True)
class EvidenceFile:
    """The JSON file that a program writes."""

    format: Literal["fp4patch-evidence"]
    schema: Literal[1]
    kit: KitInfo
    device: Device
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Checked(Report):
    """Statements that a file of a GPU supports."""

    file: str
    kit: KitInfo
    device: Device
    runs: tuple[Run, ...]
    missing: dict[str, int]
    """Number of conversions without a result, for each target that the GPU runs."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if every conversion that the GPU can run has a result, and each is right."""
        return verdict_on(self.runs and not self.missing and not any(run.fault for run in self.runs))


def check(file: Path) -> Checked:
    """Return what a program's JSON file supports; Fp4PatchError if it is damaged or unknown."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - it takes a while to load

    try:
        content = TypeAdapter(EvidenceFile).validate_json(file.read_bytes(), strict=True)
    except OSError as error:
        raise Fp4PatchError(f"cannot read {file}: {error.strerror}", help="name the program's JSON file") from error
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(str(part) for part in first['loc']) or 'JSON'}: {first['msg']}"
        remedy = "ask for the file as the program wrote it, attached and not pasted"
        raise Fp4PatchError(f"{file} has no valid {why}", help=remedy) from error
    gpu = Arch.parse(content.device.arch)
    wanted = {arch: count for arch, count in content.kit.conversions.items() if Arch.parse(arch).runs_on(gpu)}
    done = Counter(arch for *_, arch in {(run.tree, run.probe, run.arch) for run in content.runs})
    missing = {arch: count - done[arch] for arch, count in wanted.items() if count > done[arch]}
    return Checked(str(file), content.kit, content.device, content.runs, missing)


def lines(checked: Checked) -> Iterator[str]:
    """Yield what a file of a GPU supports, and what it does not, as text."""
    kit = checked.kit
    device = checked.device
    runs = checked.runs
    yield f"{kit.title}, built by fp4patch {kit.fp4patch} with nvcc {kit.nvcc}"
    driver = device.driver or "unknown"
    yield f"ran on {device.name} ({device.arch}), driver {driver}, CUDA {device.cuda}, {device.machine}"
    for arch in dict.fromkeys(run.arch for run in runs):
        here = [run for run in runs if run.arch == arch]
        right = [run for run in here if not run.fault]
        values = sum(run.records * run.lanes for run in right)
        yield f"  {arch}: {len(right)} of {counted(len(here), 'conversion')} right, {values:,} values compared"
    yield from (f"    {run.tree}, {run.probe} {run.arch}: {run.fault}" for run in runs if run.fault)
    for arch, count in checked.missing.items():
        yield f"  {arch}: {counted(count, 'conversion')} of the program without a result"
    if checked.verdict.failed:
        yield "FAIL  the file does not show that every conversion is right"
    else:
        in_part = any(run.form.startswith("float32") and "stochastic" in run.form for run in runs)  # see Form.space
        limit = ", of float32 with stochastic rounding those with four of 256 random bytes" if in_part else ""
        yield f"PASS  every conversion that this GPU can run is right for all inputs{limit}"
    yield "The digests are compared with fp4patch's own record. Nothing in the file proves who made it."
