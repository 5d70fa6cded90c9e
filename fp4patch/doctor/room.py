"""Memory and disk of this machine, compared with the needs of a vLLM build."""

import re
import shutil
from pathlib import Path

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.process import processors
from fp4patch.core.wording import counted
from fp4patch.doctor.surroundings import Surroundings
from fp4patch.images.engine import GIB, little_disk, little_memory
from fp4patch.images.image import JOB_MEMORY, Stage


def memory(s: Surroundings) -> int | None:
    """Bytes that this machine, or this container, may use; None if it does not state it."""
    have = _meminfo(s, "MemTotal")
    limit = s.root / "sys/fs/cgroup/memory.max"
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    return min(have, int(allowed)) if have is not None and allowed.isdigit() else have


def _meminfo(s: Surroundings, name: str) -> int | None:
    try:
        told = re.search(rf"^{name}:\s+(\d+) kB", (s.root / "proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(told[1]) * 1024 if told else None


def examine(s: Surroundings, where: Path) -> tuple[Finding, ...]:
    """Memory for each of the jobs that a build would run at a time, and disk at ``where``."""
    return (*_memory(s), _disk(s, where))


def _memory(s: Surroundings) -> tuple[Finding, ...]:
    have = memory(s)
    if have is None:
        return ()
    wanted = s.environ.get("MAX_JOBS", "")
    jobs = int(wanted) if wanted.isdigit() and int(wanted) else processors()
    fit = max(1, have // (JOB_MEMORY * GIB))
    free = _meminfo(s, "MemAvailable")
    what = f"{have / GIB:.0f} GiB, {counted(processors(), 'core')}"
    if little_memory(have):
        about = f"{what}: too little for one job of a vLLM build ({JOB_MEMORY} GiB)"
        return (remedies.finding(Level.YELLOW, "memory", about, "little_memory"),)
    if jobs > fit:
        set_by = f"MAX_JOBS is {wanted}" if wanted else f"a vLLM build starts {counted(jobs, 'job')}"
        about = f"{what}: {set_by}, and each may take {JOB_MEMORY} GiB"
        return (remedies.finding(Level.YELLOW, "memory", about, "many_jobs", jobs=fit),)
    if free is not None and free < jobs * JOB_MEMORY * GIB:
        about = f"{what}: only {free / GIB:.0f} GiB are available now, and each job may take {JOB_MEMORY} GiB"
        fit = max(1, free // (JOB_MEMORY * GIB))
        return (remedies.finding(Level.YELLOW, "memory", about, "memory_in_use", jobs=fit),)
    return (Finding(Level.GREEN, "memory", f"{what}: enough for a vLLM build of {counted(jobs, 'job')} at a time"),)


def _disk(s: Surroundings, where: Path) -> Finding:
    free, needed = shutil.disk_usage(where).free, Stage.RUNTIME.disk
    what = f"{free / GIB:.0f} GiB free at {where}"
    if little := little_disk(Stage.RUNTIME, free, str(where)):
        about = f"{what}: an image of vLLM and its build need {needed} GiB"
        if shutil.which("docker", path=s.path):
            return Finding(Level.YELLOW, "disk", about, little.help)
        return remedies.finding(Level.YELLOW, "disk", about, "little_disk")
    return Finding(Level.GREEN, "disk", f"{what}: enough for an image of vLLM and its build ({needed} GiB)")
