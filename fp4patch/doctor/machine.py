"""This machine: what compiles, what runs, and the memory for a vLLM build and for a server on unified memory."""

import platform
import re
from collections.abc import Sequence

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.process import processors
from fp4patch.core.wording import counted
from fp4patch.doctor import compilers, gpus, known_defects, packages
from fp4patch.doctor.host import Host
from fp4patch.doctor.result import FindingsReport

GIB = 1 << 30
JOB_MEMORY = 8
"""Memory in GiB that one compilation of vLLM's largest files can take
(https://github.com/vllm-project/vllm/pull/12477)."""
_SYSTEM = 12
"""GiB that the system and the host side of a server take beside a model; an estimate."""


def examine(host: Host, asked: Sequence[Arch] = (), compiler: Version | None = None) -> FindingsReport:
    """Return all that is found. ``asked``: the GPUs that matter, and if none is named, those of this machine;
    ``compiler``: the CUDA release of a build, if it is known.
    """
    driver = gpus.ask_driver(host.libcuda)
    matter = tuple(asked) or gpus.sm12x(driver)
    torch, nvcc = packages.torch(host), compilers.nvcc_of_builds(host)
    cuda = (torch and torch.cuda) or ""
    of_packages: tuple[Finding, ...] = (
        *packages.examine_torch(torch, matter, nvcc),
        *packages.examine_packages(host, matter, cuda, driver),
        *packages.examine_compilers(host, matter),
        *known_defects.examine(host, matter, nvcc),
    )
    none = f"{host.python} has no package that doctor knows"
    findings = (
        *compilers.examine(host, matter),
        *(of_packages or [remedies.finding(Level.NONE, "packages", none, "no_packages")]),
        *packages.examine_lists(host, matter, compiler),
        *gpus.examine(driver, cuda, loaded=(host.root / "proc/driver/nvidia/version").is_file()),
        *examine_memory(host, matter),
    )
    own = () if asked else gpus.answers(driver) or gpus.first_line(driver, findings)
    return FindingsReport(f"{platform.platform()}, Python {host.python}", findings, own)


def usable_memory(host: Host) -> int | None:
    """Bytes that this machine, or this container, may use; None if it does not state it."""
    have = _meminfo(host, "MemTotal")
    limit = host.root / "sys/fs/cgroup/memory.max"
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    return min(have, int(allowed)) if have is not None and allowed.isdigit() else have


def _meminfo(host: Host, name: str) -> int | None:
    try:
        told = re.search(rf"^{name}:\s+(\d+) kB", (host.root / "proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(told[1]) * 1024 if told else None


def examine_memory(host: Host, gpus: Sequence[Arch] = ()) -> tuple[Finding, ...]:
    """Return whether there is memory for the jobs of a build, and what to leave where a GPU shares it (GB10)."""
    have = usable_memory(host)
    if have is None:
        return ()
    free = _meminfo(host, "MemAvailable") or have
    wanted = host.environ.get("MAX_JOBS", "")
    jobs = int(wanted) if wanted.isdigit() and int(wanted) else processors()
    fit = min(have, free) // (JOB_MEMORY * GIB)
    what = f"{have / GIB:.0f} GiB, of which {free / GIB:.0f} GiB are available, {counted(processors(), 'core')}"
    about = f"{what}: enough for a vLLM build of {counted(jobs, 'job')} at a time"
    of_build = Finding(Level.GREEN, "memory", about)
    if jobs > fit:
        set_by = f"MAX_JOBS is {wanted}" if wanted else f"a vLLM build starts {counted(jobs, 'job')}"
        about = f"{what}: {set_by}, and each may take {JOB_MEMORY} GiB"
        of_build = remedies.finding(Level.YELLOW, "memory", about, "many_jobs", jobs=max(1, fit))
    if GB10 not in gpus:
        return (of_build,)
    # What a server takes of it, the system does not have, and swap makes it freeze.
    share = int(max(0.1, (free - _SYSTEM * GIB) / have) * 100) / 100
    what = f"sm_121 shares {have / GIB:.0f} GiB with the system; {free / GIB:.0f} GiB are available"
    about = f"{what}: a server may take --gpu-memory-utilization {share:.2f}"
    if free >= 3 * have // 4:
        return of_build, Finding(Level.GREEN, "memory for serving", about)
    limit = max(1, free // GIB - _SYSTEM)
    return of_build, remedies.finding(Level.YELLOW, "memory for serving", about, "serving_memory", limit=limit)
