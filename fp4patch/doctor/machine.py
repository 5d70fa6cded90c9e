"""This machine: what compiles, what runs, and what would get in a patch's way."""

import platform
from collections.abc import Sequence

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.doctor import compilers, gpus, known_defects, memory, packages
from fp4patch.doctor.gpus import ask_driver
from fp4patch.doctor.host import Host
from fp4patch.doctor.result import FindingsReport


def examine(host: Host, asked: Sequence[Arch] = ()) -> FindingsReport:
    """Return all that is found. ``asked``: the GPUs that matter, and if none is named, those of this machine."""
    driver = ask_driver(host.libcuda)
    matter = tuple(asked) or gpus.sm12x(driver)
    torch, nvcc = packages.torch(host), compilers.nvcc_of_builds(host)
    cuda = (torch and torch.cuda) or ""
    of_packages: tuple[Finding, ...] = (
        *packages.examine_torch(torch, matter, nvcc),
        *packages.examine_packages(host, matter, cuda),
        *packages.examine_compilers(host, matter),
        *known_defects.examine(host, matter, nvcc),
    )
    none = f"{host.python} has no package that doctor knows"
    findings = (
        *compilers.examine(host, matter),
        *(of_packages or [remedies.finding(Level.NONE, "packages", none, "no_packages")]),
        *packages.examine_lists(host),
        *gpus.examine(driver, cuda),
        *memory.examine(host, matter),
    )
    return FindingsReport(f"{platform.platform()}, Python {host.python}", findings)
