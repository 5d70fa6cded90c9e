"""This machine: what compiles, what runs, and what would get in a patch's way; one section a kind."""

import platform
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ToolchainError
from fp4patch.core.wording import joined
from fp4patch.doctor import compilers, gpus, known_defects, memory, packages
from fp4patch.doctor.host import Host
from fp4patch.doctor.result import MachineReport, MachineSection
from fp4patch.proof.toolchain import version_of


def examine(host: Host, asked: Sequence[Arch] = (), *, cache: Path | None = None) -> MachineReport:
    """Return all that is found. ``asked``: the GPUs that matter, and if none is named, those of this machine.

    ``cache`` is a directory for what is found in the compiled code of packages.
    """
    driver = gpus.driver(host)
    matter = tuple(asked) or gpus.sm12x(driver)
    torch, nvcc = packages.torch(host), _nvcc_of_builds(host)
    sections = (
        MachineSection("compilers", compilers.examine(host, matter)),
        MachineSection(
            "packages",
            (
                *packages.examine_torch(torch, matter, nvcc),
                *packages.examine_triton(host, matter),
                *packages.examine_targets(host),
                *packages.examine_others(host, matter, cache),
                *packages.examine_libraries(host, torch),
                *known_defects.examine(host, matter, nvcc),
            )
            or _no_packages(host),
        ),
        MachineSection("environment", packages.examine_lists(host)),
        MachineSection("GPUs", gpus.examine(driver, torch.cuda if torch else "")),
        MachineSection("memory", memory.examine(host, matter)),
    )
    name = f"{_system(host)}, Python {host.version} ({host.python})"
    return MachineReport(name, tuple(section for section in sections if section.findings))


def _system(host: Host) -> str:
    """Return the distribution, on a DGX Spark its DGX OS too, and the architecture; never the serial number."""
    text = ""
    for name in ("etc/dgx-release", "etc/os-release"):
        with suppress(OSError):
            text += (host.root / name).read_text(encoding="utf-8", errors="replace")
    stated = dict(re.findall(r"^(\w+)=[\"']?(.*?)[\"']?$", text, re.MULTILINE))
    dgx = joined(
        stated.get("DGX_PRETTY_NAME", ""), stated.get("DGX_OTA_VERSION") or stated.get("DGX_SWBUILD_VERSION", "")
    )
    return joined(dgx, stated.get("PRETTY_NAME", ""), f"{platform.system()} {platform.machine()}", by=", ")


def _no_packages(host: Host) -> tuple[Finding, ...]:
    missing = f"none of {', '.join(packages.looked_for())} is in {host.python}"
    return (remedies.finding(Level.NONE, "packages", missing, "no_packages"),)


def _nvcc_of_builds(host: Host) -> str:
    """Return the version of the nvcc that PyTorch's build extension takes."""
    home = host.environ.get("CUDA_HOME") or host.environ.get("CUDA_PATH")
    on_path = shutil.which("nvcc", path=host.path)
    program = Path(home) / "bin/nvcc" if home else Path(on_path) if on_path else host.root / "usr/local/cuda/bin/nvcc"
    try:
        return version_of(program) if program.is_file() else ""
    except ToolchainError:
        return ""
