"""The NVIDIA driver and the GPUs of this machine, by the driver's library."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Axis, Finding, Level, Observation
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import has
from fp4patch.core.wording import shortened

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_FIRST_WITH_FP4 = 10
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@dataclass(frozen=True)
class Gpu:
    """A CUDA GPU of this machine."""

    name: str
    arch: Arch
    """Without a suffix: what its bare target is, where every encoder is software."""


@dataclass(frozen=True)
class Driver:
    """Driver of the GPUs."""

    cuda: str
    """The newest CUDA release that it serves."""
    gpus: tuple[Gpu, ...]
    problem: str = ""
    """Error of the driver."""


def ask_driver(library: str = "libcuda.so.1") -> Driver | None:
    """Return the driver's CUDA release, and each GPU's name and capability; None where there is no driver."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return None
    number, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    release = f"{number.value // 1000}.{number.value % 1000 // 10}"
    failed = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if failed and failed != _NO_DEVICE:
        return Driver(release, (), f"cuInit failed with {failed}")
    gpus = []
    for at in range(count.value):
        name = ctypes.create_string_buffer(256)
        major, minor = ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGetName(name, len(name), at)
        cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, at)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, at)
        gpus.append(Gpu(name.value.decode(errors="replace"), Arch(major.value, minor.value)))
    return Driver(release, tuple(gpus))


def sm12x(driver: Driver | None) -> tuple[Arch, ...]:
    """Return the machine's GPUs of SM12x."""
    return tuple(sorted({gpu.arch for gpu in driver.gpus if gpu.arch.major == 12})) if driver else ()


def answers(driver: Driver | None) -> tuple[Answer, ...]:
    """Return the answer *no* for each kind of GPU of a machine whose GPUs are all from before SM100."""
    found = {gpu.arch: gpu.name for gpu in driver.gpus} if driver else {}
    if any(arch.major >= _FIRST_WITH_FP4 for arch in found):
        return ()
    todo = remedies.of("machine_without_fp4")
    return tuple(
        Answer.of(
            arch,
            Observation(Axis.CONVERTS, Level.RED, "the GPU has no FP4 instructions", (f"{name} is {arch}",), todo),
        )
        for arch, name in sorted(found.items())
    )


def first_line(driver: Driver | None, findings: Sequence[Finding]) -> tuple[Answer, ...]:
    """Return the answer for each kind of GPU with FP4 instructions: what its driver takes, and what fails here.

    ``findings``: all that was found about this machine, for its GPUs.
    """
    if driver is None:
        return ()
    having = {gpu.arch: gpu.name for gpu in driver.gpus if gpu.arch.major >= _FIRST_WITH_FP4}
    failing = tuple(dict.fromkeys(one.subject for one in findings if one.level is Level.RED))
    answered = []
    for arch, name in sorted(having.items()):
        is_gpu = (f"{name} is {arch}",)
        found = Observation(Axis.CONVERTS, Level.GREEN, "it has FP4 instructions, and nothing found here fails", is_gpu)
        if not has(Version(driver.cuda), replace(arch, suffix="a")):
            why = f"the driver serves CUDA {driver.cuda}, which has no {arch}a"
            found = Observation(
                Axis.TOOLS, Level.RED, "the driver is too old", (why, *is_gpu), remedies.of("driver_too_old")
            )
        elif failing:
            why = f"it has FP4 instructions, and something here fails: {shortened(failing)}"
            found = Observation(Axis.TOOLS, Level.NONE, why, is_gpu, "follow the first arrow below")
        answered.append(Answer.of(arch, found))
    return tuple(answered)


def examine(driver: Driver | None, torch_cuda: str, *, loaded: bool = False) -> tuple[Finding, ...]:
    """Return the driver and each GPU. ``torch_cuda``: the CUDA release that PyTorch was built with, or nothing;
    ``loaded``: the kernel has a driver."""
    if driver is None and loaded:
        about = "the kernel has NVIDIA's driver, and there is no libcuda.so.1: no program of CUDA starts here"
        return (remedies.finding(Level.RED, "driver", about, "no_libcuda"),)
    if driver is None:
        return (Finding(Level.GREEN, "driver", "there is no libcuda; compiling and verifying need no GPU"),)
    if driver.problem:
        return (remedies.finding(Level.RED, "driver", driver.problem, "driver_fails"),)
    about = f"supports CUDA up to {driver.cuda}"
    findings = [Finding(Level.GREEN, "driver", about)]
    if torch_cuda and Version(driver.cuda).major < Version(torch_cuda).major:
        about = f"{about}, but PyTorch was built with CUDA {torch_cuda}"
        findings = [remedies.finding(Level.RED, "driver", about, "driver_too_old")]
    findings += told(driver)
    if not driver.gpus:
        findings.append(remedies.finding(Level.YELLOW, "GPU", "the driver finds no GPU", "no_gpu"))
    return tuple(findings)


def told(driver: Driver) -> Iterator[Finding]:
    """Yield each GPU with what its FP4 code must be compiled for."""
    for gpu in driver.gpus:
        note = "fp4patch patches code for SM12x; verify and build need no GPU"
        if gpu.arch.major == 12:
            note = f"FP4 code must be compiled for {gpu.arch}a or sm_120f"
        yield Finding(Level.GREEN, gpu.name, f"{gpu.arch}: {note}")
