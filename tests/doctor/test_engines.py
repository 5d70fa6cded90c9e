"""The container engine, by programs that answer as docker 28 and podman 5 do."""

from __future__ import annotations

from pathlib import Path

from surroundings_on_disk import machine, program

from fp4patch.binaries.findings import Level
from fp4patch.doctor import engines
from fp4patch.images.engine import data_root

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


def test_a_buildx_that_is_too_old_for_build_is_yellow(tmp_path: Path) -> None:
    here = machine(tmp_path)
    docker(tmp_path, '{"Version":"28.2.2"}', buildx="github.com/docker/buildx v0.12.1 30feaa1")
    _, buildx = engines.examine(here)
    assert (buildx.level, buildx.found) == (Level.YELLOW, "buildx 0.12.1 is too old; only images need one")


def test_the_disk_is_measured_where_the_engine_keeps_images(tmp_path: Path) -> None:
    here = machine(tmp_path)
    assert data_root(here.environ) is None
    answer = f"""echo '{{"DockerRootDir":"{tmp_path}"}}'"""
    where = "echo ${DOCKER_HOST:-unix:///var/run/docker.sock}"
    program(tmp_path / "tools/docker", f'if [ "$1" = context ]; then {where}; else {answer}; fi')
    assert data_root(here.environ) == tmp_path
    assert data_root(machine(tmp_path, DOCKER_HOST="tcp://builder:2375").environ) is None
    failure = "echo 'Cannot connect to the Docker daemon' >&2; exit 1"
    program(tmp_path / "tools/docker", f'if [ "$1" = context ]; then {where}; else {failure}; fi')
    assert data_root(here.environ) is None
