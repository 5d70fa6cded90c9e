"""The container engine, by programs that answer as docker 28 and podman 5 do."""

from __future__ import annotations

from pathlib import Path

from surroundings_on_disk import machine, program

from fp4patch.commands.doctor import engines
from fp4patch.inspect.findings import Level

CLIENT = '"Client":{"Version":"28.2.2","ApiVersion":"1.50"}'


def docker(tmp_path: Path, server: str, complaint: str = "", buildx: str = "") -> None:
    status = 1 if complaint else 0
    answer = f"echo '{{{CLIENT},\"Server\":{server}}}'; echo '{complaint}' >&2; exit {status}"
    asked = f"echo '{buildx}'" if buildx else "echo 'docker: unknown command: docker buildx' >&2; exit 1"
    program(tmp_path / "tools/docker", f'if [ "$1" = buildx ]; then {asked}; else {answer}; fi')


def test_no_engine_is_yellow_since_only_images_need_one(tmp_path: Path) -> None:
    (finding,) = engines.examine(machine(tmp_path))
    assert finding.level is Level.YELLOW
    assert "only images need one" in finding.found


def test_docker_with_daemon_and_buildx_is_green(tmp_path: Path) -> None:
    here = machine(tmp_path)
    docker(tmp_path, '{"Version":"28.2.2"}', buildx="github.com/docker/buildx v0.24.0 d0e5e86")
    daemon, buildx = engines.examine(here)
    assert (daemon.level, daemon.found) == (Level.GREEN, "docker 28.2.2, daemon 28.2.2")
    assert (buildx.level, buildx.found) == (Level.GREEN, "v0.24.0")


def test_a_client_without_daemon_or_buildx_is_yellow(tmp_path: Path) -> None:
    here = machine(tmp_path)
    docker(tmp_path, "null", complaint="Cannot connect to the Docker daemon")
    daemon, buildx = engines.examine(here)
    assert (daemon.level, buildx.level) == (Level.YELLOW, Level.YELLOW)
    assert daemon.found.startswith("docker 28.2.2, but no daemon")
    assert "{" not in daemon.found


def test_podman_is_told_apart(tmp_path: Path) -> None:
    here = machine(tmp_path)
    program(tmp_path / "tools/podman", "echo podman version 5.4.2")
    (finding,) = engines.examine(here)
    assert finding.found.startswith("podman version 5.4.2, no docker")


def test_the_disk_is_measured_where_the_engine_keeps_images(tmp_path: Path) -> None:
    here = machine(tmp_path)
    assert engines.data_root(here) is None
    program(tmp_path / "tools/docker", f"echo '{tmp_path}'")
    assert engines.data_root(here) == tmp_path
    assert engines.data_root(machine(tmp_path, DOCKER_HOST="tcp://builder:2375")) is None
    program(tmp_path / "tools/docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert engines.data_root(here) is None
