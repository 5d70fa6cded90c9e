"""The NVIDIA driver and the GPUs of this machine, by nvidia-smi, and by libcuda where there is no nvidia-smi."""

import re
import shutil

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor.host import Host, said
from fp4patch.proof.gpu import Driver, Gpu, ask_driver

QUERY = "--query-gpu=name,compute_cap,driver_version,memory.total"


def driver(host: Host) -> Driver | None:
    """None where no driver is installed."""
    program = shutil.which("nvidia-smi", path=host.path)
    library = ask_driver(host.libcuda)
    if program is None:
        return library
    status, output = said([program, QUERY, "--format=csv,noheader"], host.environ)
    if status:
        return Driver("", library.cuda if library else "", library.gpus if library else (), output.splitlines()[-1])
    gpus, version = [], ""
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and re.fullmatch(r"\d+\.\d", fields[1]):
            name, capability, version, memory = fields
            gpus.append(Gpu(name, Arch.parse(capability), memory if memory[:1].isdigit() else ""))
    return Driver(version, library.cuda if library else _cuda_of_smi(program, host), tuple(gpus))


def _cuda_of_smi(program: str, host: Host) -> str:
    found = re.search(r"CUDA Version:\s*(\d+\.\d+)", said([program], host.environ)[1])
    return found[1] if found else ""


def sm12x(found: Driver | None) -> tuple[Arch, ...]:
    """Return the machine's GPUs of SM12x."""
    archs = {gpu.arch for gpu in found.gpus if gpu.arch.major == 12} if found else set()
    return tuple(sorted(archs))


def examine(found: Driver | None, torch_cuda: str) -> tuple[Finding, ...]:
    """Return the driver and each GPU. ``torch_cuda``: the CUDA release that PyTorch was built with, or nothing."""
    if found is None:
        return (Finding(Level.GREEN, "driver", "not installed; compiling and verifying need no GPU"),)
    if found.problem:
        return (remedies.finding(Level.RED, "driver", found.problem, "driver_fails"),)
    serves = f", supports CUDA up to {found.cuda}" if found.cuda else ""
    what = f"{found.version or 'installed'}{serves}"
    if torch_cuda and found.cuda and Version(found.cuda).major < Version(torch_cuda).major:
        about = f"{what}, but PyTorch was built with CUDA {torch_cuda}"
        findings = [remedies.finding(Level.RED, "driver", about, "driver_too_old")]
    else:
        findings = [Finding(Level.GREEN, "driver", what)]
    for gpu in found.gpus:
        size = gpu.memory or ("shares the memory of the machine" if gpu.arch == GB10 else "")
        memory = f", {size}" if size else ""
        note = "fp4patch patches code for SM12x; verify and build need no GPU"
        if gpu.arch.major == 12:
            note = f"FP4 code must be compiled for {gpu.arch}a or sm_120f"
        findings.append(Finding(Level.GREEN, gpu.name, f"{gpu.arch}{memory}: {note}"))
    if not found.gpus:
        findings.append(remedies.finding(Level.YELLOW, "GPU", "the driver finds no GPU", "no_gpu"))
    return tuple(findings)
