"""The GPUs of this machine, as the CUDA driver's library knows them."""

import ctypes
from dataclasses import dataclass

from fp4patch.core.arch import Arch

LIBRARY = "libcuda.so.1"

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
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


def ask_driver(library: str = LIBRARY) -> Driver | None:
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


def find_gpu() -> Gpu | None:
    """Return the first CUDA GPU; None where there is no driver or no GPU."""
    driver = ask_driver()
    return driver.gpus[0] if driver and driver.gpus else None
