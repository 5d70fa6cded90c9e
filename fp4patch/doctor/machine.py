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
from fp4patch.doctor import compilers, engines, gpus, jit_caches, packages, room
from fp4patch.doctor.result import MachineReport, Section
from fp4patch.doctor.surroundings import Surroundings
from fp4patch.images.engine import data_root
from fp4patch.proof.toolchain import version_of


def examine(s: Surroundings, asked: Sequence[Arch] = (), *, cache: Path | None = None) -> MachineReport:
    """Return all that is found. ``asked``: the GPUs that matter, and if none is named, those of this machine.

    ``cache`` is a directory for what is found in the compiled code of packages.
    """
    driver = gpus.driver(s)
    matter = tuple(asked) or gpus.sm12x(driver)
    torch = packages.torch(s)
    sections = (
        Section("compilers", compilers.examine(s, matter)),
        Section(
            "packages",
            (
                *packages.examine_torch(torch, matter, _nvcc_of_builds(s)),
                *packages.examine_triton(s, matter),
                *packages.examine_targets(s),
                *packages.examine_others(s, matter, cache),
            )
            or _no_packages(s),
        ),
        Section("caches of compiled kernels", jit_caches.examine(s, matter)),
        Section("environment", packages.examine_lists(s)),
        Section("GPUs", gpus.examine(driver, torch.cuda if torch else "")),
        Section("for a build", (*engines.examine(s), *room.examine(s, data_root(s.environ) or Path.cwd()))),
    )
    name = f"{_system(s)}, Python {s.version} ({s.python})"
    return MachineReport(name, tuple(section for section in sections if section.findings))


def _system(s: Surroundings) -> str:
    """Return the distribution, on a DGX Spark its DGX OS too, and the architecture; never the serial number."""
    text = ""
    for name in ("etc/dgx-release", "etc/os-release"):
        with suppress(OSError):
            text += (s.root / name).read_text(encoding="utf-8", errors="replace")
    stated = dict(re.findall(r"^(\w+)=[\"']?(.*?)[\"']?$", text, re.MULTILINE))
    dgx = joined(
        stated.get("DGX_PRETTY_NAME", ""), stated.get("DGX_OTA_VERSION") or stated.get("DGX_SWBUILD_VERSION", "")
    )
    return joined(dgx, stated.get("PRETTY_NAME", ""), f"{platform.system()} {platform.machine()}", by=", ")


def _no_packages(s: Surroundings) -> tuple[Finding, ...]:
    missing = f"none of {', '.join(packages.looked_for())} is in {s.python}"
    return (remedies.finding(Level.NONE, "packages", missing, "no_packages"),)


def _nvcc_of_builds(s: Surroundings) -> str:
    """Return the version of the nvcc that PyTorch's build extension takes."""
    home = s.environ.get("CUDA_HOME") or s.environ.get("CUDA_PATH")
    on_path = shutil.which("nvcc", path=s.path)
    program = Path(home) / "bin/nvcc" if home else Path(on_path) if on_path else s.root / "usr/local/cuda/bin/nvcc"
    try:
        return version_of(program) if program.is_file() else ""
    except ToolchainError:
        return ""
