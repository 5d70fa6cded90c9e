"""Memory: the figures of the machine, and those of a container's limit, compared with the jobs of a build."""

from pathlib import Path

import pytest
from host_on_disk import machine

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor.machine import examine_memory, usable_memory


def meminfo(tmp_path: Path, gib: int, limit: str = "", *, free: int | None = None) -> None:
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/meminfo").write_text(f"MemTotal:       {gib << 20} kB\nMemFree:  1 kB\n")
    if free is not None:
        with (tmp_path / "root/proc/meminfo").open("a") as file:
            file.write(f"MemAvailable:  {free << 20} kB\n")
    if limit:
        (tmp_path / "root/sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "root/sys/fs/cgroup/memory.max").write_text(f"{limit}\n")


@pytest.mark.parametrize(("limit", "usable"), [(str(16 << 30), 16), ("max", 119)])
def test_a_containers_limit_counts(tmp_path: Path, limit: str, usable: int) -> None:
    meminfo(tmp_path, 119, limit)
    assert usable_memory(machine(tmp_path)) == usable << 30


@pytest.mark.parametrize(
    ("gib", "free", "jobs", "remedy"),
    [
        (119, None, "20", "export MAX_JOBS=14"),
        (119, None, "8", ""),
        (119, 20, "8", "export MAX_JOBS=2"),  # a served model holds the rest
        (119, 20, "2", ""),
        (4, None, "1", "export MAX_JOBS=1"),
    ],
)
def test_more_jobs_than_memory_serves_are_noticed(
    tmp_path: Path, gib: int, free: int | None, jobs: str, remedy: str
) -> None:
    meminfo(tmp_path, gib, free=free)
    (finding,) = examine_memory(machine(tmp_path, MAX_JOBS=jobs))
    assert finding.level is (Level.YELLOW if remedy else Level.GREEN)
    assert finding.remedy.endswith(remedy)


@pytest.mark.parametrize(("free", "level", "share"), [(110, Level.GREEN, "0.82"), (40, Level.YELLOW, "0.23")])
def test_memory_that_the_gpu_shares_is_told_for_serving(tmp_path: Path, free: int, level: Level, share: str) -> None:
    meminfo(tmp_path, 119, free=free)
    (_, finding) = examine_memory(machine(tmp_path, MAX_JOBS="1"), [GB10])
    assert (finding.level, finding.subject) == (level, "memory for serving")
    assert finding.found.endswith(f"--gpu-memory-utilization {share}")
    assert ("MemoryMax=28G" in finding.remedy) == (level is Level.YELLOW)
    assert len(examine_memory(machine(tmp_path, MAX_JOBS="1"), [Arch(12, 0)])) == 1  # a card has its own
