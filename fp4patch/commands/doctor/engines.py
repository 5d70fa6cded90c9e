"""The container engine that ``fp4patch build`` would use: docker with buildx; podman is distinguished."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fp4patch.commands.doctor.surroundings import Surroundings, said
from fp4patch.inspect.findings import Finding, Level

ONLY_BUILD = "only images need one"


def examine(s: Surroundings) -> tuple[Finding, ...]:
    """Client, daemon and buildx."""
    docker = shutil.which("docker", path=s.path)
    if docker is None:
        podman = shutil.which("podman", path=s.path)
        if podman is None:
            remedy = "to build images: https://docs.docker.com/engine/install"
            return (Finding(Level.YELLOW, "container engine", f"none; {ONLY_BUILD}", remedy),)
        version = said([podman, "--version"], s.environ)[1].splitlines()[0]
        remedy = "images are built by docker with buildx"
        return (Finding(Level.YELLOW, "container engine", f"{version}, no docker; {ONLY_BUILD}", remedy),)
    return _daemon(docker, s), _buildx(docker, s)


def data_root(s: Surroundings) -> Path | None:
    """Return the directory where the local engine keeps images, or None where there is no engine or it is elsewhere."""
    docker = shutil.which("docker", path=s.path)
    if docker is None or not s.environ.get("DOCKER_HOST", "unix://").startswith("unix://"):
        return None
    status, output = said([docker, "info", "--format", "{{.DockerRootDir}}"], s.environ)
    root = Path(output)
    return root if not status and root.is_absolute() and root.exists() else None


def _daemon(docker: str, s: Surroundings) -> Finding:
    _, output = said([docker, "version", "--format", "{{json .}}"], s.environ)
    try:
        told = json.loads(output.splitlines()[0])
    except (ValueError, IndexError):
        told = {}
    client = (told.get("Client") or {}).get("Version", "")
    server = (told.get("Server") or {}).get("Version", "")
    if server:
        return Finding(Level.GREEN, "container engine", f"docker {client}, daemon {server}")
    why = f": {output.splitlines()[-1]}" if output and not told else ""
    return Finding(
        Level.YELLOW,
        "container engine",
        f"docker{f' {client}' if client else ''}, but no daemon answers{why}; {ONLY_BUILD}",
        "start it, for example: sudo systemctl start docker",
    )


def _buildx(docker: str, s: Surroundings) -> Finding:
    status, output = said([docker, "buildx", "version"], s.environ)
    if status:
        remedy = "install it, for example: apt install docker-buildx"
        return Finding(Level.YELLOW, "buildx", f"none: docker would use its old builder; {ONLY_BUILD}", remedy)
    return Finding(Level.GREEN, "buildx", " ".join(output.split()[1:2]) or output)
