"""The JSON file that the program writes on a GPU, and what it supports. Nothing in a file proves who made it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from fp4patch.catalog.manifest import load
from fp4patch.commands.evidence.forms import Form, digests
from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, Report, shown
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.results import PassOrFail, verdict_on
from fp4patch.core.wording import counted, listed

_CHECKSUM = re.compile(rb',\n  "checksum": "([0-9a-f]{16})"\n\}\n')
_HELP = "ask for the file as the program wrote it, attached and not pasted"


class _PartOfFile(Document):
    """A part of a file, which has no other keys."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "use_attribute_docstrings": True,
        "json_schema_serialization_defaults_required": True,
    }


@dataclass(frozen=True)
class KitInfo(_PartOfFile):
    """Origin of the machine code in a program: versions of fp4patch and of the compilers, and the trees."""

    fp4patch: str
    variant: str
    nvcc: str
    ptxas: str
    trees: dict[str, tuple[str, ...]]
    """Patches of each tree, ``cutlass/e2m1-encode 3``, by its target and version, ``cutlass 4.2.1``."""
    conversions: dict[str, int]
    """Number of conversions for each target."""

    @property
    def title(self) -> str:
        """Variant and trees: ``next3 on cutlass 4.2.1 and vllm 0.33.0``."""
        return f"{self.variant} on {listed(self.trees)}"


@dataclass(frozen=True)
class Device(_PartOfFile):
    """The GPU on which a program ran; ``memory`` in bytes, ``cuda`` is the newest that the driver supports."""

    name: str
    arch: str
    multiprocessors: int
    memory: int
    driver: str
    """Release of the driver; empty if the machine does not state it."""
    cuda: str
    machine: str
    """Kind of processor: ``aarch64``."""


@dataclass(frozen=True)
class First(_PartOfFile):
    """The first wrong value of a run: its record, its place there, and the bits in hexadecimal."""

    record: int
    lane: int
    input: str
    expected: str
    got: str
    random: int | None = None
    """Random byte of stochastic rounding."""


@dataclass(frozen=True)
class Run(_PartOfFile):
    """One conversion over all its inputs: the number of its records, of values in each, and of wrong values."""

    tree: str
    """Target and version of the tree: ``cutlass 4.2.1``."""
    probe: str
    arch: str
    cubin: str
    """SHA-256 of the machine code."""
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
    seconds: float = 0.0
    first: First | None = None
    error: str = ""
    """Error of the driver, if there is no result."""

    @property
    def fault(self) -> str:
        """What is not as it must be; empty if every result is right."""
        if self.error:
            return self.error
        values = f"{self.wrong:,} of {self.records * self.lanes:,} values are wrong"
        first = f"the first is {self.first.input} to {self.first.got}, not {self.first.expected}" if self.first else ""
        signs = f"{self.nan_signs:,} NaNs keep a sign" if self.exact and self.nan_signs else ""
        stray = "it stores behind its output" if self.stray else ""
        faults = [values * bool(self.wrong), first, signs, stray]
        return listed(faults if any(faults) else [self._not_as_recorded()])

    def _not_as_recorded(self) -> str:
        """Return why the results that no comparison found wrong are not those of all inputs."""
        expected = digests().get(self.form)
        if expected is None:
            return f"the form {self.form!r} is unknown"
        form = Form.parse(self.form)
        if (self.records, self.lanes) != (1 << form.space, form.lanes):
            return f"{self.records:,} records of {self.lanes} are not all inputs"
        return "" if self.digest == f"{expected:016x}" else "the digest of the results is not the expected one"


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


@dataclass(frozen=True)
class Checked(Report):
    """Statements that a file of a GPU supports."""

    file: str
    kit: KitInfo
    device: Device
    runs: tuple[Run, ...]
    missing: dict[str, int]
    """Number of conversions without a result, for each target that the GPU runs."""
    outdated: tuple[str, ...]
    """Patches that are not those of this fp4patch."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if every conversion that the GPU can run has a result, and each is right."""
        return verdict_on(self.runs and not self.missing and not any(run.fault for run in self.runs))


def check(file: Path) -> Checked:
    """Return what a program's JSON file supports; Fp4PatchError if it is damaged or unknown."""
    content = _read(file)
    kit, gpu = content.kit, Arch.parse(content.device.arch)
    catalog = load()
    if kit.variant not in catalog.variants:
        raise Fp4PatchError(
            f"{file} is about the variant {kit.variant}, which this fp4patch does not have",
            help=f"use fp4patch {kit.fp4patch}, which built the program",
        )
    done = Counter(arch for *_, arch in {(run.tree, run.probe, run.arch) for run in content.runs})
    wanted = {arch: count for arch, count in kit.conversions.items() if Arch.parse(arch).runs_on(gpu)}
    missing = {arch: count - done[arch] for arch, count in wanted.items() if count > done[arch]}
    ours = {f"{patch.id} {patch.version}" for patch in catalog.patches.values()}
    outdated = tuple(patch for patches in kit.trees.values() for patch in patches if patch not in ours)
    return Checked(str(file), kit, content.device, content.runs, missing, outdated)


def _read(file: Path) -> EvidenceFile:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - it takes a while to load

    try:
        content = file.read_bytes()
    except OSError as error:
        raise Fp4PatchError(f"cannot read {file}: {error.strerror}", help="name the program's JSON file") from error
    if b'"fp4patch-evidence"' not in content:
        raise Fp4PatchError(f"{file} is not a file of fp4patch-evidence", help="name the JSON, not the output")
    end = _CHECKSUM.search(content)
    if end is None or end.end() != len(content) or checksum(content[: end.start()]) != int(end[1], 16):
        raise Fp4PatchError(f"{file} is not as the program wrote it: its checksum is wrong or missing", help=_HELP)
    try:
        parsed = TypeAdapter(EvidenceFile).validate_json(content, strict=True)
        Arch.parse_list(",".join([parsed.device.arch, *parsed.kit.conversions, *(run.arch for run in parsed.runs)]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "JSON"
        raise Fp4PatchError(f"{file} has no valid {where}: {first['msg']}", help=_HELP) from error
    except ValueError as error:
        raise Fp4PatchError(f"{file} has no valid architecture: {error}", help=_HELP) from error
    return parsed


def checksum(content: bytes) -> int:
    """Return FNV-1a of 64 bits, as the program computes it."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def lines(checked: Checked) -> Iterator[str]:
    """Yield what a file of a GPU supports, and what it does not, as text."""
    kit, device, runs = checked.kit, checked.device, checked.runs
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
    yield from (f"  {patch}: this fp4patch has no such version of the patch" for patch in checked.outdated)
    if checked.verdict.failed:
        yield "FAIL  the file does not show that every conversion is right"
    else:
        forms = [Form.parse(run.form) for run in runs]
        in_part = any(form.stochastic and form.input == "float32" for form in forms)  # see Form.space
        limit = ", of float32 with stochastic rounding those with four of 256 random bytes" if in_part else ""
        yield f"PASS  every conversion that this GPU can run is right for all inputs{limit}"
    yield (
        "The digests are compared with fp4patch's own record. The checksum detects damage. "
        "Nothing in the file proves who made it."
    )
