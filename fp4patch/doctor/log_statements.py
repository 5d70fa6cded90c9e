"""Targets and backends that a log states: commands of compilers, CMake's configuration, and the choice of a server.

What a log states is not what a library has: the findings say what was asked for, and are no verdict on a file.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.core.wording import shortened
from fp4patch.doctor import log_commands, settings
from fp4patch.doctor.log_commands import Compilation

# Example: -- CUDA supported target architectures: 12.0
# Example: -- Using CMAKE_CUDA_ARCHITECTURES=121a CMAKE_CUDA_ARCHITECTURES_NATIVE=121a-real
_OF_CMAKE = re.compile(
    r"(?:--|^|\|) *(?:Using )?(?P<name>CUDA (?:supported )?target architectures|Autodetected CUDA architecture\(s\)"
    r"|GPU architectures|CMAKE_CUDA_ARCHITECTURES)(?::\w+)?[:=] *(?P<value>\d[^\n]*)",
    re.MULTILINE,
)
# Example: .cache/flashinfer/0.6.6/120a/generated
_OF_FLASHINFER = re.compile(
    r"\.cache/flashinfer/(?P<release>[\w.+-]+)/(?P<archs>\d{2,3}[af]?(?:_\d{2,3}[af]?)*)/(?:generated|cached_ops)"
)
# Example: Target CUDA archs (resolved) : {(12, '0f')}
_RESOLVED = re.compile(r"Target CUDA archs \(resolved\) *: *\{(?P<archs>[^}\n]*)\}")
# Example: export TORCH_CUDA_ARCH_LIST="12.1a"
# Example: -DCMAKE_CUDA_ARCHITECTURES=120
_SET = re.compile(
    r"(?:^[+ ]*|export |declare -x |ENV |ARG |-e |--env[ =]|--build-arg[ =]|-D)(?P<name>[A-Za-z_]\w*)(?::STRING)?="
    r"(?P<quote>[\"']?)(?P<value>\d[\w.;,+ -]*?)(?P=quote)(?=[\s\"'\\]|$)",
    re.MULTILINE,
)
# Example: Building SM12x NVFP4 for archs: 12.0f
_BUILDING = re.compile(r"Building (?P<name>\S[^\n]*?) for archs: *(?P<value>[\d.af;+PTX]+)")
# Example: Using 'MARLIN' NvFp4 MoE backend
_EXPERTS = re.compile(r"Using '(\w+)' (?:NvFp4|NVFP4|Mxfp4|MXFP4) MoE backend")
# Example: Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM
# Example: Using NvFp4LinearBackend.MARLIN for NVFP4 GEMM
_DENSE = re.compile(r"Using (?:\w+\.)?([\w-]+) for (?:NVFP4|MXFP4) GEMM")
_IN_16_BITS = re.compile(r"marlin|humming|w4a16|emulation", re.IGNORECASE)
# Example: CUDA : ARCHS = 890,1200 | USE_GRAPHS = 1 | BLACKWELL_NATIVE_FP4 = 1 |
_OF_GGML = re.compile(r"CUDA : ARCHS = (?P<archs>[\d,]+)(?P<rest>[^\n]*)")
_OF_FP4 = re.compile(r"fp4|w4a4", re.IGNORECASE)


def read(whole: str, text: str, gpus: Sequence[Arch], *, named: bool) -> Iterator[Finding]:
    """Yield a finding for each kind of statement of a log.

    ``whole``: the log, whose commands can have long lines; ``text``: what of each line is searched for statements;
    ``named``: somebody asked about these GPUs.
    """
    yield from _commands(whole, gpus, named)
    yield from _configuration(text, gpus, named)
    for subject, pattern in (("experts", _EXPERTS), ("dense layers", _DENSE)):
        for name in dict.fromkeys(pattern.findall(text)):
            in_16_bits = _IN_16_BITS.search(name)
            what = "multiplies in FP4, if the checkpoint has activations of 4 bits"
            what = "multiplies in 16 bits, as a checkpoint of W4A16 asks" if in_16_bits else what
            level = Level.YELLOW if in_16_bits else Level.GREEN
            remedy = "for one of W4A4, docs/moe-backends.md has the order in which vLLM chooses" if in_16_bits else ""
            yield Finding(level, subject, f"the program chose {name}, which {what}", remedy)
    for archs, rest in dict.fromkeys(_OF_GGML.findall(text)):
        yield _of_ggml(archs, rest, gpus, named)


def _commands(text: str, gpus: Sequence[Arch], named: bool) -> Iterator[Finding]:
    """Yield what the commands of compilers in the log compile for, and apart from it the sources named for FP4."""
    found = log_commands.read(text)
    for_fp4 = [one for one in found if _OF_FP4.search(one.source)]
    if found:
        what = f"commands of nvcc name {log_commands.targets(found)}"
        yield _of_targets("targets", what, found, gpus, named, for_fp4 or found)
    if for_fp4 and len(for_fp4) < len(found):
        yield _of_targets("FP4 sources", shortened(one.source for one in for_fp4), for_fp4, gpus, named, for_fp4)


def _configuration(text: str, gpus: Sequence[Arch], named: bool) -> Iterator[Finding]:
    """Yield what CMake states of a whole build and of its FP4 kernels; else the lists that the build was given."""
    modules = _of_flashinfer(text)
    of_fp4 = {name: value for name, value in _BUILDING.findall(text) if re.search("fp4", name, re.IGNORECASE)}
    stated = {name: _before_assignment(value) for name, value in _OF_CMAKE.findall(text)}
    if "CUDA supported target architectures" in stated:
        stated.pop("CUDA target architectures", "")  # what was asked for
    given = {} if stated or of_fp4 or modules else {name: value for name, _, value in _SET.findall(text)}
    for name, value in (stated | given | of_fp4 | modules).items():
        notation = "CMAKE_CUDA_ARCHITECTURES" if name == "GPU architectures" else name
        made = settings.of_list("", notation, re.sub(r"\(\d\.\d\)", "", value))
        if not (made.code or made.ptx):
            continue
        is_exact = name in of_fp4 or name in modules
        is_read = is_exact or name in stated
        if not is_read and not settings.is_list(name):
            continue
        one = Compilation("CMake", "", made.code, made.ptx)
        judged = [one] if is_read else []
        what = f"{name}: {value.strip()}"
        subject = "FlashInfer" if name in modules else "CMake" if is_read else "list"
        yield _of_targets(subject, what, [one], gpus, named, judged, whole=not is_exact)


def _of_flashinfer(text: str) -> dict[str, str]:
    """Return the targets for which FlashInfer compiles its modules: by its cache's paths, and by its collect_env."""
    found = {
        f"FlashInfer {release}'s modules": archs.replace("_", ";") for release, archs in _OF_FLASHINFER.findall(text)
    }
    for archs in _RESOLVED.findall(text):
        pairs = re.findall(r"\((\d+), '?(\d[af]?)'?\)", archs)
        found["FlashInfer's targets"] = ";".join(f"{major}.{minor}" for major, minor in pairs)
    return found


def _before_assignment(text: str) -> str:
    """Return ``120a`` of ``120a CMAKE_CUDA_ARCHITECTURES_NATIVE=120a-real``."""
    return " ".join(takewhile(lambda word: not re.match(r"[A-Z_]+=", word), text.split()))


def _of_ggml(archs: str, rest: str, gpus: Sequence[Arch], named: bool) -> Finding:
    """Return what a program of GGML states of its CUDA code: its list has no suffixes, and a flag tells of FP4."""
    has_fp4 = "BLACKWELL_NATIVE_FP4 = 1" in rest
    own = {gpu for gpu in gpus if f"{gpu.gpu.number}0" in archs.split(",")}
    told = [f"{gpu} has {'code of its own' if gpu in own else 'none of its own'}" for gpu in gpus]
    what = f"CUDA code for {archs}, {'with' if has_fp4 else 'without'} FP4 kernels of SM12x: {'; '.join(told)}"
    well = has_fp4 and (own == set(gpus) if named else bool(own))
    remedy = "" if well else "`fp4patch doctor FILE` on what was built tells what it has"
    return Finding(Level.GREEN if well else Level.NONE, "GGML", what, remedy)


def _of_targets(
    subject: str,
    what: str,
    found: Sequence[Compilation],
    gpus: Sequence[Arch],
    named: bool,
    judged: Sequence[Compilation],
    *,
    whole: bool = False,
) -> Finding:
    """Return a finding on compilations. ``judged``: those that decide whether it is well; ``whole``: a list that
    holds for a build whose sources may have lists of their own."""
    told = "; ".join(log_commands.loaded(found, gpu) for gpu in gpus)
    told = (
        told.replace("without FP4 instructions", "which has FP4 where a source has a list of its own")
        if whole
        else told
    )
    having = [bool(judged) and all(one.has_fp4(gpu) for one in judged) for gpu in gpus]
    well = all(having) if named else any(having)
    remedy = "" if well else "`fp4patch doctor FILE` on what was built tells what it has"
    return Finding(Level.GREEN if well else Level.NONE, subject, f"{what}: {told}", remedy)
