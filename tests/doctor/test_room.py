"""Memory and disk: the figures of the machine, and those of a container's limit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from surroundings_on_disk import machine, program

from fp4patch.binaries.findings import Level
from fp4patch.doctor import room
from fp4patch.images.image import Stage


def meminfo(tmp_path: Path, gib: int, limit: str = "", *, free: int | None = None) -> None:
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/meminfo").write_text(f"MemTotal:       {gib << 20} kB\nMemFree:  1 kB\n")
    if free is not None:
        with (tmp_path / "root/proc/meminfo").open("a") as file:
            file.write(f"MemAvailable:  {free << 20} kB\n")
    if limit:
        (tmp_path / "root/sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "root/sys/fs/cgroup/memory.max").write_text(f"{limit}\n")


def test_the_real_machine_says_how_much_it_has() -> None:
    from fp4patch.doctor.surroundings import Surroundings

    assert room.memory(Surroundings.here())


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    meminfo(tmp_path, 128, str(16 << 30))
    assert room.memory(machine(tmp_path)) == 16 << 30


def test_no_limit_is_the_machines_own(tmp_path: Path) -> None:
    meminfo(tmp_path, 119, "max")
    assert room.memory(machine(tmp_path)) == 119 << 30


def test_more_jobs_than_memory_serves_are_noticed(tmp_path: Path) -> None:
    meminfo(tmp_path, 119)
    finding, _ = room.examine(machine(tmp_path, MAX_JOBS="20"), tmp_path)
    assert finding.level is Level.YELLOW
    assert finding.remedy.endswith("MAX_JOBS=14")


def test_jobs_that_fit_are_green(tmp_path: Path) -> None:
    meminfo(tmp_path, 119)
    finding, _ = room.examine(machine(tmp_path, MAX_JOBS="8"), tmp_path)
    assert finding.level is Level.GREEN


def test_memory_that_a_served_model_holds_is_not_counted(tmp_path: Path) -> None:
    meminfo(tmp_path, 119, free=20)
    finding, _ = room.examine(machine(tmp_path, MAX_JOBS="8"), tmp_path)
    assert finding.level is Level.YELLOW
    assert "only 20 GiB are available now" in finding.found
    assert finding.remedy.endswith("export MAX_JOBS=2")
    finding, _ = room.examine(machine(tmp_path, MAX_JOBS="2"), tmp_path)
    assert finding.level is Level.GREEN


def test_less_memory_than_one_job_takes_is_yellow(tmp_path: Path) -> None:
    meminfo(tmp_path, 4)
    finding, _ = room.examine(machine(tmp_path, MAX_JOBS="1"), tmp_path)
    assert finding.level is Level.YELLOW
    assert "MAX_JOBS" not in finding.remedy


def test_the_disk_is_that_of_the_folder(tmp_path: Path) -> None:
    meminfo(tmp_path, 119)
    *_, disk = room.examine(machine(tmp_path), tmp_path)
    assert str(tmp_path) in disk.found


def test_docker_is_named_only_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo(tmp_path, 119)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=30 << 30))
    *_, disk = room.examine(machine(tmp_path), tmp_path)
    assert disk.level is Level.YELLOW
    assert "docker" not in disk.remedy
    program(tmp_path / "bin/docker", "exit 0")
    *_, disk = room.examine(machine(tmp_path, PATH=str(tmp_path / "bin")), tmp_path)
    assert "docker system df" in disk.remedy


def test_the_page_states_the_space_that_an_image_needs() -> None:
    page = Path(__file__).parents[2].joinpath("docs/doctor.md").read_text()
    assert f"less than {Stage.RUNTIME.disk} GiB of disk" in page
    assert f"enough for an image of vLLM and its build ({Stage.RUNTIME.disk} GiB)" in " ".join(page.split())
