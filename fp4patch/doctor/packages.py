"""Python packages with kernels, by their files; PyTorch's arch list by an import in another process."""

import json
import mmap
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries import remedies, run_time, scan
from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import known
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Build, Target
from fp4patch.core.arch import GB10, Arch, Reach, reach
from fp4patch.core.cuda import FAMILIES_SINCE
from fp4patch.core.errors import BinaryError, ToolchainError
from fp4patch.core.release import is_version
from fp4patch.core.wording import joined, listed
from fp4patch.doctor import settings
from fp4patch.doctor.compilers import toolkits
from fp4patch.doctor.host import Host, said
from fp4patch.doctor.known_defects import refused_by_pytorch
from fp4patch.proof.toolchain import release, version_of
from fp4patch.tree.installed import bypasses

TRITON_PTXAS = "https://github.com/triton-lang/triton/issues/8539"

TORCH_LIST = "TORCH_CUDA_ARCH_LIST"
IMPORT = "import json, torch; print(json.dumps((torch._C._cuda_getArchFlags() or '').split()))"
IMPORT_SECONDS = 90


@dataclass(frozen=True)
class Torch:
    """PyTorch as it is installed."""

    version: str
    cuda: str
    """The CUDA release that it was built with; empty for a build without."""
    archs: tuple[str, ...]
    """``sm_120``, ``compute_120``; empty where it could not be asked."""


def torch(host: Host) -> Torch | None:
    """PyTorch's version and CUDA from its files, its architectures from a Python of its own; None: not installed."""
    installed, folder = host.distribution("torch"), host.package("torch")
    if installed is None or folder is None:
        return None
    stated = folder / "version.py"
    text = stated.read_text(encoding="utf-8", errors="replace") if stated.is_file() else ""
    cuda = re.search(r"^cuda(?:\s*:[^=]+)?\s*=\s*['\"]([0-9.]+)['\"]", text, re.MULTILINE)
    return Torch(installed.version, cuda[1] if cuda else "", _archs(host) if cuda else ())


def _archs(host: Host) -> tuple[str, ...]:
    environ = dict(host.environ) | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in host.site_packages)}
    status, output = said([host.python, "-W", "ignore", "-c", IMPORT], environ, IMPORT_SECONDS)
    lines = output.splitlines()
    try:
        return tuple(json.loads(lines[-1])) if status == 0 and lines else ()
    except ValueError:
        return ()


def examine_torch(found: Torch | None, gpus: Sequence[Arch], nvcc: str) -> tuple[Finding, ...]:
    """Return findings for ``gpus``, and for ``nvcc``, the version of the compiler that a build takes, or nothing."""
    if found is None:
        return ()
    if not found.cuda:
        what = f"{found.version}, built without CUDA"
        return (remedies.finding(Level.YELLOW, "PyTorch", what, "torch_without_cuda"),)
    what = f"{found.version}, built with CUDA {found.cuda}"
    if not found.archs:
        findings = [remedies.finding(Level.YELLOW, "PyTorch", f"{what}; `import torch` fails", "torch_import")]
    else:
        what += f", for {', '.join(found.archs)}"
        findings = [_torch_archs(found, what, gpus)]
    if findings[0].level is Level.RED:
        pass  # the same remedy, or another PyTorch, decides about the compiler too
    elif GB10 in gpus and Version(found.cuda) < FAMILIES_SINCE:
        why = f"a build against it uses CUDA {found.cuda}, whose compiler does not support sm_121a"
        findings.append(remedies.finding(Level.RED, "PyTorch's CUDA", why, "torch_for_gb10"))
    elif nvcc and release(nvcc)[0] != release(found.cuda)[0]:
        why = (
            f"a build against it uses nvcc {nvcc}, whose major release is not that of {found.cuda}: PyTorch rejects it"
        )
        findings.append(remedies.finding(Level.RED, "PyTorch's CUDA", why, "torch_and_nvcc", cuda=found.cuda))
    return tuple(findings)


def _torch_archs(found: Torch, what: str, gpus: Sequence[Arch]) -> Finding:
    archs = [Arch.parse(arch) for arch in found.archs if arch.startswith("sm_")]
    out = [gpu for gpu in gpus if reach(archs, gpu) is Reach.NOTHING]
    if out:
        why = f"{what}: none of its code loads on {listed(out)}"
        return remedies.finding(Level.RED, "PyTorch", why, "torch_for_gb10")
    return Finding(Level.GREEN, "PyTorch", what)


def examine_triton(host: Host, gpus: Sequence[Arch]) -> tuple[Finding, ...]:
    """Triton's own assembler, or the one that the environment puts in its place."""
    folder = host.package("triton")
    if folder is None:
        return ()
    bundled = folder / "backends/nvidia/bin"
    # Releases that bring a ptxas-blackwell take it for sm_100 and later.
    name = "ptxas-blackwell" if (bundled / "ptxas-blackwell").is_file() else "ptxas"
    variable = "TRITON_PTXAS_BLACKWELL_PATH" if name == "ptxas-blackwell" else "TRITON_PTXAS_PATH"
    named = host.environ.get(variable)
    ptxas = Path(named) if named else bundled / name
    installed = host.distribution("triton")
    what = f"Triton{f' {installed.version}' if installed else ''}"
    if not ptxas.is_file():
        why = f"{f'{variable} is {named}' if named else name}, which does not exist"
        cause = "triton_variable" if named else "triton_incomplete"
        return (remedies.finding(Level.RED, what, why, cause, variable=variable),)
    newer = _newer_ptxas(host)
    cause = "triton_too_old" if newer else "triton_too_old_everywhere"
    try:
        version = version_of(ptxas)
    except ToolchainError as error:
        return (remedies.finding(Level.RED, what, error.message, cause, variable=variable, ptxas=newer),)
    said_so = f"{variable}" if named else f"its own {name}"
    users = next(one.used_by for one in known().compiler if one.alone)
    if Version(version) < FAMILIES_SINCE:
        level = Level.RED if GB10 in gpus else Level.YELLOW
        why = f"{said_so} is {version}, which does not support sm_121a: kernels do not compile on GB10, and {users}"
        return (remedies.finding(level, what, why, cause, link=TRITON_PTXAS, variable=variable, ptxas=newer),)
    return (Finding(Level.GREEN, what, f"{said_so} is {version}; {users}"),)


def _newer_ptxas(host: Host) -> Path | None:
    """Return the first assembler on this machine that is new enough."""
    for kit in toolkits(host):
        if "ptxas" in kit.parts and Version(kit.parts["ptxas"]) >= FAMILIES_SINCE:
            return kit.root / "bin/ptxas"
    return None


def variant_of(version: str) -> str:
    """Return the variant that the local version of a build from a patched tree names; empty if it names none."""
    found = re.search(r"\+(?:[\w.]*\.)?fp4patch\.([a-z0-9]+)", version)
    return found[1] if found else ""


def _stated(version: str) -> str:
    variant = variant_of(version)
    return version + (f", built from a tree with the variant {variant} of fp4patch" if variant else "")


def examine_targets(host: Host) -> tuple[Finding, ...]:
    """Return each target that is an installed package, and compiled code that it would run instead of its sources."""
    findings = []
    for target in load().targets.values():
        installed = host.distribution(target.distribution) if target.distribution else None
        if installed:
            root = Path(str(installed.locate_file(""))) / target.name
            findings.append(Finding(Level.GREEN, target.title, _stated(installed.version)))
            findings += bypass_findings(root, target, Version(installed.version), host.environ, host.home)
    return tuple(findings)


def bypass_findings(
    root: Path, target: Target, version: Version | None, environ: Mapping[str, str], home: Path | None = None
) -> list[Finding]:
    """Return a finding for each kind of compiled code that is used in the place of a tree's sources."""
    notes = bypasses(root, target, version, environ, home)
    return [remedies.finding(Level.YELLOW, "loaded instead", note, "loaded_instead") for note in notes]


def looked_for() -> list[str]:
    """Return the names of all packages that doctor looks for."""
    targets = [target.title for target in load().targets.values() if target.distribution]
    return ["PyTorch", "Triton", *targets, *(package.name for package in known().package)]


def examine_others(host: Host, gpus: Sequence[Arch], cache: Path | None) -> tuple[Finding, ...]:
    """Return the other packages with kernels, what each GPU gets of their compiled code, and compilers in packages.

    ``cache`` is a directory for what is found in compiled code.
    """
    findings = []
    for package in known().package:
        subject = package.name
        installed = next(filter(None, map(host.distribution, package.distributions)), None)
        folder = host.package(package.code) if package.code else None
        if installed is None:
            continue
        if folder is None or not gpus or variant_of(installed.version):
            findings.append(Finding(Level.GREEN, subject, _stated(installed.version)))
        if folder and gpus:
            findings += _code(f"{subject} {installed.version}", folder, gpus, cache)
        elif folder:
            why = "this machine has no SM12x GPU, and --for is not set"
            findings.append(remedies.finding(Level.NONE, f"{subject}'s code", why, "code_not_examined"))
    patterns = [pattern for compiler in known().compiler for pattern in compiler.installed]
    files = {file for folder in host.site_packages for pattern in patterns for file in folder.glob(pattern)}
    for file in sorted(file for file in files if run_time.role(file.as_posix())):
        one = run_time.read(file, file.as_posix(), gpus)
        support = f", which does not support {listed(one.unsupported)}" if one.unsupported else ""
        found = f"{file.name}{support}: {one.used_by}"
        findings.append(Finding(one.level, f"{one.role} {one.release}".strip(), found, one.remedy))
    return tuple(findings)


def _code(subject: str, folder: Path, gpus: Sequence[Arch], cache: Path | None) -> list[Finding]:
    try:
        report = scan.examine(folder, gpus=gpus, cache=cache)
    except BinaryError as error:
        return [Finding(Level.NONE, subject, error.message, error.help)]
    found = [
        Finding(one.level, subject, f"{one.gpu}: {joined(one.verdict, one.because, by=': ')}", one.todo)
        for one in report.answers
    ]
    return found + [Finding(Level.RED, subject, f"{one.name}: {one.because}", one.help) for one in report.unread]


def examine_libraries(host: Host, torch: Torch | None) -> tuple[Finding, ...]:
    """Return a finding for each package whose libraries need the CUDA runtime of another major release.

    It is by the names that its libraries are linked to (``libcudart.so.12``), which they state at their end.
    """
    if torch is None or not torch.cuda:
        return ()
    own, findings = torch.cuda.partition(".")[0], []
    for package in known().package:
        folder = host.package(package.code) if package.code else None
        needed = {found.decode() for file in (folder.rglob("*.so") if folder else ()) for found in _cudart(file)}
        others = sorted(needed - {own})
        if others and own not in needed:
            why = f"it needs libcudart.so.{listed(others)}, and PyTorch was built with CUDA {torch.cuda}"
            findings.append(remedies.finding(Level.RED, package.name, why, "cudart", cuda=torch.cuda, own=own))
    return tuple(findings)


def _cudart(file: Path) -> list[bytes]:
    """Return the major releases of the CUDA runtime that a library names; OSError and damage count as none."""
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return re.findall(rb"libcudart\.so\.(\d+)\0", content)
    except (OSError, ValueError):
        return []


def list_settings() -> dict[str, Build | None]:
    """Return the environment variables that name architectures, with the build of the target that reads each."""
    builds = [target.build for target in load().targets.values() if target.build]
    return {TORCH_LIST: None} | {build.setting: build for build in builds}


def examine_lists(host: Host) -> tuple[Finding, ...]:
    """Architecture lists in the environment: one for SM12x without a suffix compiles no FP4 instruction."""
    findings = []
    for name, build in list_settings().items():
        given = host.environ.get(name)
        value = (given or "").strip()
        if build and build.form and given is not None and not re.fullmatch(build.form, given):
            why = f"{given!r}: {build.otherwise}"
            cause = "list_form" if build.kind == "jit" else "list_not_archs"
            findings.append(remedies.finding(Level.RED, name, why, cause, setting=name))
            continue
        if not value:
            continue
        setting = settings.of_option(value)
        archs, strange = setting.code, setting.unknown
        installed = host.distribution("torch")
        release_ = Version(installed.version) if installed and is_version(installed.version) else None
        if name == TORCH_LIST and (refused := refused_by_pytorch(archs, release_, cmake=True)):
            why = f"{value}: PyTorch {release_ or ''} does not know {', '.join(refused)}"
            archs_instead = ";".join(dict.fromkeys(arch.torch.replace("f", "a") for arch in archs))
            findings.append(remedies.finding(Level.RED, name, why, "list_for_torch", setting=name, list=archs_instead))
            continue
        bare = [arch for arch in archs if arch.major == 12 and not arch.suffix]
        if strange:
            why = f"{value}: {strange} is not an architecture"
            findings.append(remedies.finding(Level.YELLOW, name, why, "list_not_archs", setting=name))
        elif bare:
            family = refused_by_pytorch([Arch(12, 0, "f")], release_, cmake=True)
            fixed = "a" if family or len({arch.minor for arch in archs if arch.major == 12}) == 1 else "f"
            why = f"{value}: {', '.join(a.torch for a in bare)} has no suffix a or f, and therefore no FP4 instructions"
            written = ", ".join(arch.torch + fixed for arch in bare)
            findings.append(remedies.finding(Level.YELLOW, name, why, "list_without_suffix", archs=written))
        else:
            findings.append(Finding(Level.GREEN, name, value))
    return tuple(findings)
