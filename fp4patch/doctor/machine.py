"""This machine: what compiles, what runs, and what would get in a patch's way."""

import platform
import re
from collections.abc import Sequence
from contextlib import suppress

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.core.wording import joined
from fp4patch.doctor import compilers, gpus, known_defects, memory, packages
from fp4patch.doctor.gpus import ask_driver
from fp4patch.doctor.host import Host
from fp4patch.doctor.result import FindingsReport


def examine(host: Host, asked: Sequence[Arch] = ()) -> FindingsReport:
    """Return all that is found. ``asked``: the GPUs that matter, and if none is named, those of this machine."""
    driver = ask_driver(host.libcuda)
    matter = tuple(asked) or gpus.sm12x(driver)
    torch, nvcc = packages.torch(host), compilers.nvcc_of_builds(host)
    of_packages: tuple[Finding, ...] = (
        *packages.examine_torch(torch, matter, nvcc),
        *packages.examine_packages(host, matter, torch),
        *packages.examine_compilers(host, matter),
        *known_defects.examine(host, matter, nvcc),
    )
    none = f"{host.python} has no package that doctor knows"
    findings = (
        *compilers.examine(host, matter),
        *(of_packages or [remedies.finding(Level.NONE, "packages", none, "no_packages")]),
        *packages.examine_lists(host),
        *gpus.examine(driver, torch.cuda if torch else ""),
        *memory.examine(host, matter),
    )
    return FindingsReport(f"{_system(host)}, Python {host.python}", findings)


def _system(host: Host) -> str:
    """Return the distribution, on a DGX Spark its DGX OS too, and the architecture; never the serial number."""
    text = ""
    for name in ("etc/dgx-release", "etc/os-release"):
        with suppress(OSError):
            text += (host.root / name).read_text(encoding="utf-8", errors="replace")
    stated = dict(re.findall(r"^(\w+)=[\"']?(.*?)[\"']?$", text, re.MULTILINE))
    dgx = joined(stated.get("DGX_PRETTY_NAME", ""), stated.get("DGX_SWBUILD_VERSION", ""))
    return joined(dgx, stated.get("PRETTY_NAME", ""), f"{platform.system()} {platform.machine()}", by=", ")
