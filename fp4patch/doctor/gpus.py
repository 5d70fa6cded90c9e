"""The NVIDIA driver and the GPUs of this machine, by the driver's library."""

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.proof.gpu import Driver


def sm12x(driver: Driver | None) -> tuple[Arch, ...]:
    """Return the machine's GPUs of SM12x."""
    return tuple(sorted({gpu.arch for gpu in driver.gpus if gpu.arch.major == 12})) if driver else ()


def examine(driver: Driver | None, torch_cuda: str) -> tuple[Finding, ...]:
    """Return the driver and each GPU. ``torch_cuda``: the CUDA release that PyTorch was built with, or nothing."""
    if driver is None:
        return (Finding(Level.GREEN, "driver", "there is no libcuda; compiling and verifying need no GPU"),)
    if driver.problem:
        return (remedies.finding(Level.RED, "driver", driver.problem, "driver_fails"),)
    about = f"supports CUDA up to {driver.cuda}"
    findings = [Finding(Level.GREEN, "driver", about)]
    if torch_cuda and Version(driver.cuda).major < Version(torch_cuda).major:
        about = f"{about}, but PyTorch was built with CUDA {torch_cuda}"
        findings = [remedies.finding(Level.RED, "driver", about, "driver_too_old")]
    for gpu in driver.gpus:
        note = "fp4patch patches code for SM12x; verify and build need no GPU"
        if gpu.arch.major == 12:
            note = f"FP4 code must be compiled for {gpu.arch}a or sm_120f"
        findings.append(Finding(Level.GREEN, gpu.name, f"{gpu.arch}: {note}"))
    if not driver.gpus:
        findings.append(remedies.finding(Level.YELLOW, "GPU", "the driver finds no GPU", "no_gpu"))
    return tuple(findings)
