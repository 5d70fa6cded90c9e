"""Device code of one file: its fatbins and cubins, the FP4 instructions of each, and the code that every GPU loads."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

from fp4patch.binaries import cubin, fatbin, sass_bits
from fp4patch.binaries.containers import Member
from fp4patch.binaries.fatbin import DriverModule, FatbinEntry
from fp4patch.binaries.known_programs import read_table
from fp4patch.binaries.report import (
    FP4_CLASSES,
    BinaryFile,
    Fp4Code,
    ImageGroup,
    Loading,
    LoadOutcome,
    LostKernel,
    readable,
    total,
)
from fp4patch.binaries.stream_reader import Window
from fp4patch.core.arch import Arch, nearest
from fp4patch.core.errors import BinaryError

_LoadKey = tuple[Arch, str, LoadOutcome, tuple[str, ...], str, bool]
"""GPU, target of the loaded code, outcome, the architectures that hold the FP4 code, the version of PTX, and whether
another family's code is for tensor memory."""


# Example: cvt.rn.satfinite.e2m1x2.f32
_PTX_ENCODE = re.compile(rb"\bcvt\.r([ns])(?:\.relu)?\.satfinite(?:\.relu)?\.e2m1x[24]\.(?:f32|f16x2|bf16x2)")
# Example: cvt.rn.f16x2.e2m1x2
_PTX_DECODE = re.compile(rb"\bcvt\.rn(?:\.relu)?\.(?:f16x2|bf16x2)\.e2m1x2")
# Modifiers are bounded: a text that begins the same instruction again and again would else take its square in time.
# Example: mma.sync.aligned.m16n8k64.row.col.kind::mxf4
_PTX_MATRIX = re.compile(rb"\b(?:mma|tcgen05\.mma)\.[\w.:]{0,120}kind::(?:mxf4|(?:mxf8f6f4|f8f6f4)[\w.:]*\.e2m1)")
# Example: .entry _Z13quantize_e2m1v
_PTX_ENTRY = re.compile(rb"\.entry\s+([\w$]*(?:fp4|FP4|e2m1)[\w$]*)")


@dataclass(frozen=True)
class _Image:
    entry: FatbinEntry
    arch: Arch
    code: Fp4Code
    kernels: Mapping[str, sass_bits.FunctionCode] = field(default_factory=dict)
    """Each kernel of a cubin that can have FP4 code."""
    empty: bool = False
    """True if it has no function, so that no GPU lacks it."""
    tensor_memory: bool = False
    """True if a function of it multiplies in tensor memory (tcgen05)."""

    @property
    def native(self) -> list[str]:
        return [name for name, kernel in self.kernels.items() if kernel.code.native]

    @property
    def label(self) -> str:
        return str(self.arch) if self.entry.kind == "cubin" else f"compute_{self.arch.number}"


def examine(member: Member, gpus: Sequence[Arch], tick: Callable[[int], None]) -> BinaryFile | None:
    """Return what a file holds, or None if it holds no device code. Raises BinaryError for a damaged one."""
    window = Window(member.stream, member.name, member.size, tick)
    cubin.check_whole(window)
    processor = cubin.processor(window)
    groups: dict[tuple[bool, int, int, str], list[Fp4Code]] = defaultdict(list)
    loads: dict[_LoadKey, list[tuple[Fp4Code, list[LostKernel], Sequence[str]]]] = defaultdict(list)
    number = 0
    for unit in fatbin.driver_modules(window):
        images = [_image(entry, unit) for entry in unit.entries]
        number += bool(images)
        for image in images:
            arch = image.arch
            groups[image.entry.kind != "cubin", arch.major, arch.minor, image.label].append(image.code)
        images = [image for image in images if image.entry.kind != "lto"]  # a linker's input, which no driver loads
        if all(image.empty for image in images):
            continue
        for gpu in gpus:
            chosen = _chosen(images, gpu, unit.name)
            label, outcome, code, held_by, lost = _loading(images, chosen, gpu)
            native = chosen.native if chosen and outcome is LoadOutcome.NATIVE else ()
            isa = chosen.entry.isa if chosen else ""
            other = any(image.tensor_memory and image.arch.major != gpu.major for image in images)
            loads[gpu, label, outcome, held_by, isa, other].append((code, lost, native))
    if not number:
        return None
    return BinaryFile(
        member.name,
        member.size,
        number,
        tuple(ImageGroup(label, len(codes), total(codes)) for (*_, label), codes in sorted(groups.items())),
        tuple(
            Loading(
                gpu=gpu,
                loads=label,
                outcome=outcome,
                fatbins=len(of),
                code=total(code for code, _, _ in of),
                held_by=held_by,
                lost=tuple(kernel for _, lost, _ in of for kernel in lost),
                native=tuple(dict.fromkeys(name for _, _, native in of for name in native)),
                isa=isa,
                tensor_memory=tensor_memory,
            )
            for (gpu, label, outcome, held_by, isa, tensor_memory), of in sorted(loads.items())
        ),
        processor,
    )


def _image(entry: FatbinEntry, unit: DriverModule) -> _Image:
    if entry.kind == "lto" or (unit.container and entry.arch.major < fatbin.FIRST_WITH_FP4 and entry.kind == "cubin"):
        return _Image(replace(entry, payload=b""), entry.arch, Fp4Code(), empty=_without_functions(entry, unit.name))
    data = fatbin.unpack(entry, unit.name)
    if entry.kind == "ptx":
        empty = b".entry" not in data and b".func" not in data
        return _Image(entry, entry.arch, scan_ptx(data), empty=empty, tensor_memory=b"tcgen05.mma" in data)
    light = replace(entry, payload=b"")  # a fatbin's cubins together may not fit into memory
    parsed = cubin.parse(data, unit.name)
    arch = entry.arch if unit.container else parsed.arch
    if arch.major < fatbin.FIRST_WITH_FP4:
        return _Image(light, arch, Fp4Code())
    found = sass_bits.by_function(data, parsed.functions)
    kernels = {f.name: code for f, code in zip(parsed.functions, found, strict=True) if f.kernel}
    tensor_memory = any(one.tensor_memory for one in found)
    return _Image(light, arch, total(one.code for one in found), kernels, not parsed.functions, tensor_memory)


def _without_functions(entry: FatbinEntry, name: str) -> bool:
    """Return whether an older cubin has none; False where it was not read."""
    try:
        return bool(entry.payload) and not cubin.parse(fatbin.unpack(entry, name), name).functions
    except BinaryError:
        return False


def _chosen(images: Sequence[_Image], gpu: Arch, name: str) -> _Image | None:
    """Return what the driver loads of a fatbin; None also for PTX without a kernel or function, which gains nothing."""
    cubins = {image.arch: image for image in reversed(images) if image.entry.kind == "cubin"}
    texts = {image.arch: image for image in reversed(images) if image.entry.kind == "ptx"}
    arch = nearest(gpu, cubins, texts)
    if arch is None:
        return None
    if arch in cubins and arch.runs_on(gpu):
        return cubins[arch]
    text = fatbin.unpack(texts[arch].entry, name)
    return texts[arch] if b".entry" in text or b".func" in text else None


def _loading(
    images: Sequence[_Image], chosen: _Image | None, gpu: Arch
) -> tuple[str, LoadOutcome, Fp4Code, tuple[str, ...], list[LostKernel]]:
    """Return the code that one GPU loads of a fatbin, its outcome, and the owners of FP4 code that it does not get."""
    code = chosen.code if chosen else Fp4Code()
    label = "nothing" if chosen is None else chosen.label + (" (JIT)" if chosen.entry.kind == "ptx" else "")
    holders = [image for image in images if image.code.native or image.code.encoders]
    held_by = tuple(dict.fromkeys(image.label for image in holders))
    lost = list(_lost(chosen, images, gpu)) if chosen else []
    if code.encoders:
        return label, LoadOutcome.SOFTWARE, code, (), lost
    if code.native:
        return label, LoadOutcome.NATIVE, code, (), lost
    lost += _held(holders, {kernel.name for kernel in lost}, alone=chosen is None)
    intended = {kernel.name for kernel in lost if kernel.reason}
    named = {name for name in code.named if not _reason(LostKernel(name, "", {}))}
    outcome = LoadOutcome.PLAIN
    if any(image.arch.major == gpu.major for image in holders):
        outcome = LoadOutcome.LOST
    elif named - intended:
        outcome = LoadOutcome.UNWRITTEN
    elif holders or named:
        outcome = LoadOutcome.OTHER
    elif chosen is None and any(_general(image.arch, gpu) for image in images):
        outcome = LoadOutcome.ABSENT
    if outcome in (LoadOutcome.LOST, LoadOutcome.OTHER) and lost and all(kernel.reason for kernel in lost):
        outcome = LoadOutcome.DESIGN
    return label, outcome, code, held_by, lost


def _general(arch: Arch, gpu: Arch) -> bool:
    """Return whether code for a target would be built for the GPU too: not what is for one other family."""
    return arch.major == gpu.major or (not arch.suffix and arch.major < fatbin.FIRST_WITH_FP4)


def _held(holders: Sequence[_Image], known: Collection[str], *, alone: bool) -> Iterator[LostKernel]:
    """Yield the FP4 kernels of other targets of which this GPU loads no copy.

    ``alone``: it loads nothing of the fatbin, which is then as a whole for tensor memory if one of its kernels is.
    """
    names = set(known)
    for image in holders:
        tensor_memory = alone and any(kernel.tensor_memory for kernel in image.kernels.values())
        for name in image.native:
            if name in names:
                continue
            names.add(name)
            there = image.kernels[name]
            kernel = LostKernel(name, image.label, {kind: n for kind, n in _classes(there.code).items() if n})
            reason = _reason(kernel, tensor_memory=tensor_memory or there.tensor_memory)
            yield replace(kernel, reason=reason)


def _lost(chosen: _Image, images: Sequence[_Image], gpu: Arch) -> Iterator[LostKernel]:
    """Yield kernels whose loaded copy does not have FP4 instructions of another copy."""
    others = [image for image in images if image is not chosen and image.kernels]
    others.sort(key=lambda image: image.arch.major == gpu.major)
    for name, here in chosen.kernels.items():
        own = _classes(here.code)
        keeps = [kind for kind, number in own.items() if number]
        for image, there in ((image, image.kernels[name]) for image in others if name in image.kernels):
            lost = {kind: number for kind, number in _classes(there.code).items() if number and not own[kind]}
            if here.code.encoders:
                lost = {kind: number for kind, number in lost.items() if kind not in ("nearest", "stochastic")}
            if lost:
                kernel = LostKernel(name, image.label, lost, here.idle)
                yield replace(kernel, reason=_reason(kernel, keeps=keeps, tensor_memory=there.tensor_memory))
                break


def _classes(code: Fp4Code) -> dict[str, int]:
    """Return how many FP4 instructions of each class there are."""
    return {name: getattr(code, name) for name in FP4_CLASSES}


@dataclass(frozen=True)
class _ByDesign:
    """A kind of kernel without FP4 instructions on SM12x, and the reason why it is as it should be: by_design.toml."""

    name: str
    lost: tuple[str, ...]
    reason: str
    tensor_memory: bool = False
    keeps: tuple[str, ...] = ()


@cache
def _by_design() -> tuple[_ByDesign, ...]:
    file = resources.files(__package__).joinpath("by_design.toml")
    return read_table(file, dict[str, tuple[_ByDesign, ...]])["kernel"]


def _reason(kernel: LostKernel, *, keeps: Collection[str] = (), tensor_memory: bool = False) -> str:
    """Return why a kernel is as it should be; empty where no reason is known.

    ``keeps`` are the classes of instructions that the copy for SM12x has; ``tensor_memory`` is of the other copy.
    """
    name = readable(kernel.name)
    for entry in _by_design():
        fits = fnmatchcase(name, entry.name) and set(kernel.lost) <= set(entry.lost)
        if fits and set(entry.keeps) <= set(keeps) and (tensor_memory or not entry.tensor_memory):
            return entry.reason
    return ""


# --- PTX, the text that a driver compiles where no cubin fits ---------------------------------------------------------


def scan_ptx(text: bytes) -> Fp4Code:
    """Return the FP4 instructions of a PTX file; software encoders are recognised in machine code alone."""
    entries = (found[1].decode() for found in _PTX_ENTRY.finditer(text))
    named = tuple(name for name in entries if sass_bits.is_named_for_fp4(name))
    if b"e2m1" not in text and b"mxf4" not in text:  # most texts; the expressions would take a hundred times as long
        return Fp4Code(named=named)
    roundings = [found[1] for found in _PTX_ENCODE.finditer(text)]
    return Fp4Code(
        nearest=roundings.count(b"n"),
        stochastic=roundings.count(b"s"),
        decodings=sum(1 for _ in _PTX_DECODE.finditer(text)),
        matrix=sum(1 for _ in _PTX_MATRIX.finditer(text)),
        named=named,
    )
