"""Python packages with kernels, by their files; PyTorch by an import in another process."""

import json
import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries import remedies, run_time
from fp4patch.binaries.findings import Answer, Axis, Finding, Level, Observation, worst
from fp4patch.binaries.known_programs import known
from fp4patch.binaries.report import BinaryReport, RunTimeCompiler
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.core.arch import GB10, GPUS, Arch, Reach, reach
from fp4patch.core.cuda import FAMILIES_SINCE, ptx_needs
from fp4patch.core.errors import BinaryError, UsageError
from fp4patch.core.wording import counted, joined, listed
from fp4patch.doctor import recorded, settings
from fp4patch.doctor.builds import readers, wrong_form
from fp4patch.doctor.gpus import Driver, sm12x
from fp4patch.doctor.host import Host, output_of
from fp4patch.doctor.known_defects import refused_by_pytorch
from fp4patch.doctor.result import Question
from fp4patch.tree.evaluate import bypasses

_REPLACED_BY = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}
"""Environment variable that replaces each assembler of Triton."""
_LARGEST_NAMES = 1 << 26
"""Bytes; a table of a library's names is smaller."""
TORCH_LIST = "TORCH_CUDA_ARCH_LIST"
IMPORT = """import json, torch
print(json.dumps([torch.version.cuda or "", (torch._C._cuda_getArchFlags() or "").split()]))"""


@dataclass(frozen=True)
class Torch:
    """PyTorch as it is installed."""

    version: str
    cuda: str | None
    """The CUDA release that it was built with; empty for a build without, None where it could not be asked."""
    archs: tuple[str, ...] = ()
    """``sm_120``, ``compute_120``."""


def torch(host: Host) -> Torch | None:
    """Return PyTorch, which a Python of its own imports; None: not installed."""
    installed = host.distribution("torch")
    if installed is None:
        return None
    environ = dict(host.environ) | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in host.site_packages)}
    lines = output_of([host.python, "-W", "ignore", "-c", IMPORT], environ, seconds=90).splitlines()
    try:
        cuda, archs = json.loads(lines[-1])
    except (IndexError, ValueError):
        return Torch(installed.version, None)
    return Torch(installed.version, cuda, tuple(archs))


def examine_torch(found: Torch | None, gpus: Sequence[Arch], nvcc: str) -> tuple[Finding, ...]:
    """Return findings for ``gpus``, and for ``nvcc``, the version of the compiler that a build takes, or nothing."""
    if found is None:
        return ()
    if not found.cuda:
        what, cause = f"{found.version}, built without CUDA", "torch_without_cuda"
        if found.cuda is None:
            what, cause = f"{found.version}; `import torch` fails", "torch_import"
        return (remedies.finding(Level.YELLOW, "PyTorch", what, cause),)
    what = f"{found.version}, built with CUDA {found.cuda}, for {', '.join(found.archs)}"
    archs = [Arch.parse(arch) for arch in found.archs if arch.startswith("sm_")]
    if out := [gpu for gpu in gpus if reach(archs, gpu) is Reach.NOTHING]:
        why = f"{what}: none of its code loads on {listed(out)}"
        return (remedies.finding(Level.RED, "PyTorch", why, "torch_for_gb10"),)
    own = Finding(Level.GREEN, "PyTorch", what)
    why = f"a build against it uses CUDA {found.cuda}, whose compiler does not support sm_121a"
    if GB10 in gpus and Version(found.cuda) < FAMILIES_SINCE:
        return own, remedies.finding(Level.RED, "PyTorch's CUDA", why, "torch_for_gb10")
    why = f"a build against it uses nvcc {nvcc}, whose major release is not that of {found.cuda}: PyTorch rejects it"
    if nvcc and Version(nvcc).major != Version(found.cuda).major:
        return own, remedies.finding(Level.RED, "PyTorch's CUDA", why, "torch_and_nvcc", cuda=found.cuda)
    return (own,)


def variant_of(version: str) -> str:
    """Return the variant that the local version of a build from a patched tree names; empty if it names none."""
    # Example: +cu130.fp4patch.next3
    found = re.search(r"\+(?:[\w.]*\.)?fp4patch\.([a-z0-9]+)", version)
    return found[1] if found else ""


def examine_packages(host: Host, gpus: Sequence[Arch], cuda: str, driver: Driver | None = None) -> tuple[Finding, ...]:
    """Return each package with kernels: what a GPU gets of its compiled code, and compiled code that it would run
    instead of its sources; then each package whose libraries need another CUDA runtime.

    ``cuda``: PyTorch's, or nothing.
    """
    findings = []
    targets = {target.distribution: target for target in load().targets.values()}
    for package in known().package:
        installed = host.distribution(*package.distributions)
        if installed is None:
            continue
        variant = variant_of(installed.version)
        built = f", built from a tree with the variant {variant} of fp4patch" if variant else ""
        findings.append(Finding(Level.GREEN, package.name, installed.version + built))
        if target := targets.get(package.distributions[0]):
            notes = bypasses(Path(str(installed.locate_file(""))) / target.name, target)
            findings += [remedies.finding(Level.YELLOW, "loaded instead", note, "loaded_instead") for note in notes]
        if folder := host.package(package.code) if package.code else None:
            findings += _code(f"{package.name}'s code", folder, gpus, driver)
    return (*findings, *_libraries(host, cuda))


def with_driver(report: BinaryReport, driver: Driver | None) -> BinaryReport:
    """Return the report with the answer *no* for a GPU of this machine whose driver does not take its PTX."""

    def judged(answer: Answer) -> Answer:
        rows = [row for file in report.files for row in file.loading if row.gpu == answer.gpu and row.isa]
        if driver is None or answer.gpu not in sm12x(driver) or not rows:
            return answer
        isa = max((row.isa for row in rows), key=Version)
        release, needed = ptx_needs(isa)
        if Version(driver.cuda) >= Version(release):
            return answer
        why = f"{counted(len(rows), 'group')} of fatbins load as PTX {isa}, and this driver is for CUDA {driver.cuda}"
        number = f" ({needed} or later)" if needed else ""
        todo = remedies.of("driver_older_than_ptx", release=release, driver=number, gpu=answer.gpu)
        return answer.beside(Observation(Axis.TOOLS, Level.RED, "the driver is older than its PTX", (why,), todo))

    return replace(report, answers=tuple(map(judged, report.answers)))


def _code(subject: str, folder: Path, gpus: Sequence[Arch], driver: Driver | None) -> list[Finding]:
    from fp4patch.binaries import scan  # noqa: PLC0415 - it loads NumPy

    if not gpus:
        why = "this machine has no SM12x GPU, and --for is not set"
        return [remedies.finding(Level.NONE, subject, why, "code_not_examined")]
    try:
        report = with_driver(scan.examine(folder, gpus=gpus), driver)
    except BinaryError as error:
        return [Finding(Level.NONE, subject, error.message, error.help)]
    found = [
        Finding(answer.level, subject, f"{answer.gpu}: {joined(answer.verdict, answer.because, by=': ')}", answer.todo)
        for answer in report.answers
    ]
    return found + [Finding(Level.RED, subject, f"{file.name}: {file.because}", file.help) for file in report.unread]


def _libraries(host: Host, cuda: str) -> list[Finding]:
    """Return a finding for each package whose libraries need the CUDA runtime of another major release than PyTorch's.

    It is by the names that they are linked to (``libcudart.so.12``). A package with libraries for both is right.
    """
    own = cuda.partition(".")[0]
    if not own:
        return []
    needed: dict[str, set[str]] = {}
    places = (place for folder in host.site_packages for place in folder.glob("*") if place.is_dir())
    for place in places:
        if place.name not in ("nvidia", "torch", "triton"):
            for file in place.rglob("*.so"):
                needed.setdefault(place.name, set()).update(_cudart(file))
    names = {package.code: package.name for package in known().package if package.code}
    findings = []
    for package, releases in sorted(needed.items()):
        if releases and own not in releases:
            why = f"it needs libcudart.so.{listed(sorted(releases))}, and PyTorch was built with CUDA {cuda}"
            subject = names.get(package, package)
            findings.append(remedies.finding(Level.RED, subject, why, "cudart", cuda=cuda, own=own))
    return findings


_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_STRINGS = 3  # SHT_STRTAB


def _cudart(file: Path) -> list[str]:
    """Return the major releases of the CUDA runtime that a library names; OSError and damage count as none."""
    found: list[str] = []
    try:
        with file.open("rb") as stream:
            header = _ELF.unpack(stream.read(_ELF.size))
            stream.seek(header[6])
            sections = list(_SECTION.iter_unpack(stream.read(header[11] * header[12])))
            for _, kind, _, _, at, size, *_ in sections:
                if kind == _STRINGS and size < _LARGEST_NAMES:
                    stream.seek(at)
                    found += re.findall(r"libcudart\.so\.(\d+)\0", stream.read(size).decode(errors="replace"))
    except (OSError, ValueError, struct.error, OverflowError):
        return found
    return found


def examine_compilers(host: Host, gpus: Sequence[Arch]) -> tuple[Finding, ...]:
    """Return the compilers in packages that run when a program does, Triton's assembler among them.

    The environment can name another assembler in the place of Triton's.
    """
    patterns = [pattern for compiler in known().compiler for pattern in compiler.installed]
    files = {file for folder in host.site_packages for pattern in patterns for file in folder.glob(pattern)}
    findings, compilers = [], []
    for file in sorted(file for file in files if run_time.program(file.as_posix())):
        variable = _REPLACED_BY.get(file.name, "")
        try:
            compilers.append(run_time.read(Path(host.environ.get(variable, file)), file.as_posix(), gpus or GPUS))
        except OSError as error:
            why = f"{variable or file} cannot be read: {error.strerror}"
            findings.append(remedies.finding(Level.RED, "compiler", why, "compiler_unread"))
    for finding in map(compiler_finding, run_time.used(compilers)):
        findings.append(finding if gpus or finding.level is not Level.RED else replace(finding, level=Level.YELLOW))
    return tuple(findings)


def compiler_finding(compiler: RunTimeCompiler) -> Finding:
    """Return the finding about a compiler that runs when a program does."""
    support = (
        f"does not support {listed(compiler.unsupported)}" if compiler.unsupported else "supports every requested GPU"
    )
    subject = joined(compiler.role, compiler.release)
    return Finding(compiler.level, subject, f"{compiler.name}: {support}; {compiler.used_by}", compiler.remedy)


def examine_lists(host: Host, gpus: Sequence[Arch] = (), cuda: Version | None = None) -> tuple[Finding, ...]:
    """Return a finding for each architecture list in the environment: whether what reads it takes it, and what the
    newest recorded release makes of it with a CUDA release, for ``gpus``, or if none is known for those that it names.
    """
    findings = []
    torch = host.distribution("torch")
    for name, target in readers().items():
        value = host.environ.get(name)
        if value is None:
            continue
        if why := wrong_form(name, value):
            findings.append(remedies.finding(Level.RED, name, f"{value!r}: {why}", "list_form", setting=name))
            continue
        setting = settings.of_list("", "--arch-list", value)
        archs = setting.code
        bare = [arch.torch for arch in archs if arch.major == GB10.major and not arch.suffix]
        release = Version(torch.version) if torch else None
        answers = _by_record(target, archs, gpus, cuda)
        level = worst(Level.YELLOW if one.level is Level.RED and not gpus else one.level for one in answers)
        if name == TORCH_LIST and (refused := refused_by_pytorch(archs, release, cmake=True)):
            why = f"{value}: PyTorch {release or ''} does not know {', '.join(refused)}"
            archs_instead = ";".join(dict.fromkeys(arch.torch.replace("f", "a") for arch in archs))
            findings.append(remedies.finding(Level.RED, name, why, "list_for_torch", setting=name, list=archs_instead))
        elif bare and level in (Level.GREEN, Level.NONE):
            why = f"{value}: {', '.join(bare)} has no suffix a or f, and therefore no FP4 instructions"
            findings.append(remedies.finding(Level.YELLOW, name, why, "list_without_suffix"))
        elif answers:
            told = "; ".join(f"{answer.gpu} {answer.verdict}" for answer in answers)
            todo = next((answer.todo for answer in answers if answer.level is not Level.GREEN), "")
            findings.append(Finding(level, name, f"{value}: with {target.title}, {told}", todo, "list_for_gpus"))
        else:
            findings.append(Finding(Level.NONE if setting.unknown or not archs else Level.GREEN, name, value))
    return tuple(findings)


def _by_record(target: Target, archs: Sequence[Arch], gpus: Sequence[Arch], cuda: Version | None) -> Sequence[Answer]:
    """Return the answers of a target's newest recorded release for a list; none where it is not recorded with it."""
    own = [arch for arch in archs if arch.major == GB10.major]
    matter = tuple(gpu for gpu in GPUS if gpu in (gpus or [arch.gpu for arch in own]))
    if not (own and matter):
        return ()
    release = max((t.version for t in recorded.read(load().root).trees if t.target == target.name), key=Version)
    asked = Question(matter, True, ";".join(arch.torch for arch in own), str(cuda or ""))
    try:
        return recorded.examine_release(load().root, f"{target.name}=={release}", asked).answers
    except UsageError:
        return ()
