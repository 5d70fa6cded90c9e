"""Texts about a machine: those of nvidia-smi, and of PyTorch's and vLLM's ``collect_env``.

They give what the driver gives of this machine, ``Driver``, and the packages that are installed there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import known
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import of_driver
from fp4patch.doctor import gpus, inputs
from fp4patch.doctor.gpus import Driver, Gpu
from fp4patch.doctor.inputs import Release

# Example: NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0
_SMI = re.compile(
    r"NVIDIA-SMI +[\d.]+ .*?(?:Driver|KMD) Version: *([\d.]+)(?:.*?CUDA (?:UMD )?Version: *([\d.]+|N/A))?"
)
# Example: |   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
_ROW = re.compile(r"^\|\s+\d+\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s+\|", re.MULTILINE)
# Example: Driver Version                            : 580.95.05
_LOGGED_DRIVER = re.compile(r"^Driver Version +: (\d[\d.]*)", re.MULTILINE)
# Example: CUDA Version                              : 13.0
_LOGGED_CUDA = re.compile(r"^CUDA Version +: (\d+\.\d+)", re.MULTILINE)
# Example:     Product Name                          : NVIDIA GB10
_LOGGED_NAME = re.compile(r"^ +Product Name +: (\S.*)", re.MULTILINE)
# Example: GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-01234567)
_NAMED = re.compile(r"^(?:GPU models and configuration *: *)?(?:GPU )?\d+: (\S.*?)(?: \(UUID: .*)?$", re.MULTILINE)
# Example: GPU models and configuration: NVIDIA GB10
_ALONE = re.compile(r"^GPU models and configuration *: *(?!GPU \d|\d+: |No CUDA|Could not)(\S.*)$", re.MULTILINE)
# Example: Nvidia driver version: 580.95.05
_DRIVER = re.compile(r"^Nvidia driver version *: *(\d[\d.]*)", re.MULTILINE)
# Example: CUDA used to build PyTorch: 13.0
_TORCH_CUDA = re.compile(r"^CUDA used to build PyTorch *: *(\S+)", re.MULTILINE)
# Example: vLLM Version: 0.11.0
_OWN_VERSION = re.compile(r"^(\w+) Version *: *(\d\S*)", re.MULTILINE)
# Example: [pip3] torch==2.9.0+cu130
_PIP = re.compile(r"^\[(pip3?|conda)\] +([\w.-]+)(?:==| +)(\d\S*)(?: .*)?$", re.MULTILINE)
_FAILED = re.compile(r"^(?:NVIDIA-SMI has failed.*|Failed to initialize NVML.*|No devices were found.*)", re.MULTILINE)
_COLLECTED = re.compile(r"^PyTorch version *:", re.MULTILINE)


@dataclass(frozen=True)
class MachineText:
    """What a text says of a machine."""

    driver: Driver | None
    """None if it states neither a driver nor a GPU."""
    torch_cuda: str = ""
    """CUDA release that PyTorch was built with; empty if it states none."""
    releases: tuple[Release, ...] = ()
    unnamed: tuple[str, ...] = ()
    """GPUs whose architecture their names do not tell."""
    failed: str = ""
    """The line by which nvidia-smi states that it found no driver or no GPU."""


def read(text: str) -> MachineText | None:
    """Return what a text of nvidia-smi or of ``collect_env`` says; None: it is none of these."""
    head, failed = _SMI.search(text), _FAILED.search(text)
    collected = bool(_COLLECTED.search(text) and _TORCH_CUDA.search(text))
    listed = re.match(r"\s*GPU \d+: .* \(UUID: ", text)
    if "==NVSMI LOG==" in text and (number := _LOGGED_DRIVER.search(text)) and not collected:
        stated = _LOGGED_CUDA.search(text)
        return _of(_LOGGED_NAME.findall(text), stated[1] if stated else of_driver(number[1]), has_driver=True)
    if not (head or collected or listed or (failed and len(text) < 2_000)):
        return None
    names = [*_ALONE.findall(text)] if collected else []
    names += [] if head and not collected else _NAMED.findall(text)
    names += _ROW.findall(text) if head and not collected else []
    number = _DRIVER.search(text) if collected else head
    cuda = (
        head[2] if head and not collected and head[2] not in (None, "N/A") else of_driver(number[1] if number else "")
    )
    built = _TORCH_CUDA.search(text) if collected else None
    return replace(
        _of(names, cuda, has_driver=bool(number)),
        torch_cuda=built[1] if built and re.fullmatch(r"\d+\.\d+", built[1]) else "",
        releases=tuple(_releases(text)) if collected else (),
        failed=failed[0].strip() if failed else "",
    )


def _of(names: Sequence[str], cuda: str, *, has_driver: bool) -> MachineText:
    """Return what the names of GPUs and a driver's CUDA release come to."""
    found = {name: arch_of(name) for name in dict.fromkeys(map(str.strip, names))}
    own = tuple(Gpu(name, arch) for name in map(str.strip, names) if (arch := found[name]))
    driver = Driver(cuda, own) if has_driver or own else None
    return MachineText(driver, unnamed=tuple(name for name, arch in found.items() if arch is None))


def arch_of(name: str) -> Arch | None:
    """Return the architecture of a GPU by the name that the driver gives it; None if it is not known.

    nvidia-smi cuts long names: ``NVIDIA GeForce RTX 5090 ...``.
    """
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"^nvidia |^geforce |\bgeforce ", "", name.lower())).strip("-")
    found = [own for own in known().gpu if re.search(rf"(?:^|-){own}(?:-|$)", words)]
    return Arch.parse(known().gpu[max(found, key=len)]) if found else None


def _releases(text: str) -> Iterator[Release]:
    """Yield the packages of ``collect_env``: each once, pip's before conda's."""
    found: dict[str, Release] = {}
    for matched in _PIP.finditer(text):
        line = text.count("\n", 0, matched.start()) + 1
        of_conda = matched[1] == "conda" and not matched[0].endswith("pypi")
        one = inputs.release_of(matched[2], matched[3], line, inputs.CONDA if of_conda else "")
        found.setdefault(one.project, one)
    for matched in _OWN_VERSION.finditer(text):
        line = text.count("\n", 0, matched.start()) + 1
        is_built = ".dev" in matched[2] or "+" in matched[2]
        one = inputs.release_of(matched[1], matched[2], line, inputs.LOCAL if is_built else "")
        found[one.project] = one
    yield from found.values()


def findings(found: MachineText) -> Iterator[Finding]:
    """Yield what is to be said of the driver and the GPUs, as of those of this machine."""
    if found.failed:
        help_text = "on the machine itself, `fp4patch doctor` tells what is missing"
        yield Finding(Level.RED, "driver", found.failed, help_text)
    elif found.driver is None:
        yield Finding(Level.NONE, "driver", "the text names no driver", "name the GPU: --for")
    elif not found.driver.cuda:
        unknown = "the text does not tell for which CUDA release the driver is"
        yield Finding(Level.NONE, "driver", unknown, "nvidia-smi tells it")
        yield from gpus.told(found.driver)
    else:
        every = gpus.examine(replace(found.driver, gpus=tuple(dict.fromkeys(found.driver.gpus))), found.torch_cuda)
        # A GPU that is not known by its name is one.
        yield from (one for one in every if one.cause != "no_gpu" or not found.unnamed)
    for name in found.unnamed:
        yield Finding(Level.NONE, name, "its architecture is not known by this name", "name it: --for sm_120")
