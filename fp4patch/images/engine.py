"""The container engine before a build: whether it is there, and what it lacks.

The ``docker`` command answers all queries, since it also runs the build; the ``docker`` package does not support
BuildKit. What buildx itself refuses at once is left to buildx.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from fp4patch.core import process
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Problem
from fp4patch.images.image import JOB_MEMORY, BuildRequest, Engine

GIB = 1 << 30

CORE_MINUTES, LONGEST_STEP, OTHER_MINUTES = 394, 17.7, 5
"""Measured times of compiling vLLM for one architecture, in minutes: core time, longest step, the rest
(docs/image.md)."""


def environment() -> dict[str, str]:
    """Return the environment for docker commands, with BuildKit required.

    Without it, a client without buildx would silently use the classic builder.
    """
    return os.environ | {"DOCKER_BUILDKIT": "1"}


def look(builder: str, *, needs_engine: bool) -> Engine:
    """Return the builder that a build would use; ImageError with one sentence if there is none to build with.

    ``needs_engine`` is true if the result goes into an engine's own store. A builder on another machine needs no engine
    for other results.
    """
    if shutil.which("docker") is None:
        raise ImageError(
            "there is no docker command on PATH",
            help="install Docker Engine with its buildx plugin (Debian, Ubuntu: docker.io docker-buildx)",
        )
    if _docker("buildx", "version").status:
        raise ImageError(
            "the docker command has no buildx plugin, and the classic builder cannot build this",
            help="install it: docker-buildx-plugin (Docker's packages), docker-buildx (Debian, Ubuntu)",
        )
    rows = [json.loads(line) for line in _docker("buildx", "ls", "--format", "{{json .}}").out.splitlines()]
    chosen: dict[str, Any] = next(
        (row for row in rows if (row["Name"] == builder if builder else row.get("Current"))), {}
    )
    driver = str(chosen.get("Driver", ""))
    if (needs_engine or driver == "docker") and (asked := _docker("info", "--format", "{{json .}}")).status:
        raise _unreachable(asked.err)
    # An asterisk marks a platform that the user configured: linux/arm64*.
    named = (node.get("Platforms") for node in chosen.get("Nodes") or ())
    platforms = tuple(str(names[0]).rstrip("*") for names in named if names)
    info: dict[str, Any] = json.loads(asked.out) if driver == "docker" else {}
    is_here = host().startswith("unix://")
    return Engine(
        driver,
        platforms,
        memory=info.get("MemTotal"),
        disk=_free(Path(info["DockerRootDir"])) if info and is_here else None,
        cores=info.get("NCPU"),
    )


def host() -> str:
    """Return the address of the engine in use (``unix:///…``), by DOCKER_HOST or its context; empty if none."""
    return _docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").out.strip()


def _unreachable(complaint: str) -> ImageError:
    """Return the error for an engine that does not answer."""
    if "permission denied" in complaint:
        help_ = "add the user to the group docker, or use a rootless engine"
        return ImageError("this user may not speak to the docker engine", help=help_)
    where = re.search(r"(?:unix|tcp|ssh|https?)://\S+?(?=[\s.,]*(?:\s|$))", complaint)
    help_ = "start it (systemctl start docker), or name another: DOCKER_HOST, `docker context use`"
    return ImageError(f"no docker engine responds{f' at {where[0]}' if where else ''}", help=help_)


def _free(root: Path) -> int | None:
    """Return the free bytes at a directory; None if it cannot be asked."""
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return None


def _docker(*words: str) -> process.Done:
    try:
        return process.run(["docker", *words], environ=environment())
    except OSError as error:
        return process.Done(127, "", f"docker {error.strerror}")


def check(engine: Engine, request: BuildRequest) -> list[Problem]:
    """Return the platforms for which vLLM would be compiled by emulation."""
    if not (engine.platforms and request.target.compiles):
        return []  # a builder that has not been started reports no nodes
    return [
        Problem(
            f"a node whose own platform is {platform}",
            f"{', '.join(engine.platforms)}, and to compile vLLM by emulation would take days",
            help=f"`docker buildx create --append --name NAME --platform {platform} HOST`, then `-- --builder NAME`",
        )
        for platform in request.buildx.platforms
        if not any(_same_machine(platform, own) for own in engine.platforms)
    ]


def notes(engine: Engine, request: BuildRequest) -> list[str]:
    """Return what the user should know before hours of building: another machine's code, little room, the time."""
    lines = []
    platforms = request.buildx.platforms or engine.platforms[:1]
    only_gb10 = {(gpu.major, gpu.minor) for gpu in request.archs.gpus} == {(12, 1)}
    if only_gb10 and platforms and not any(_same_machine(name, "linux/arm64") for name in platforms):
        lines.append(
            f"GB10 machines are arm64, and this builds for {', '.join(platforms)}: "
            "build there, or with `-- --platform linux/arm64` and a builder that has an arm64 node"
        )
    if engine.disk is not None and engine.disk < request.target.disk * GIB:
        lines.append(
            f"stage {request.target} takes up to {request.target.disk} GiB, and {engine.disk / GIB:.0f} are free: "
            "`docker system df` shows what takes room, `docker builder prune` frees the cache"
        )
    if not request.target.compiles_vllm:
        return lines
    if engine.memory is not None and engine.memory < JOB_MEMORY * GIB:
        lines.append(
            f"one compilation of vLLM's largest files takes {JOB_MEMORY} GiB of memory, and the engine has "
            f"{engine.memory / GIB:.1f}: build on a larger machine (`-- --builder NAME`)"
        )
    if engine.memory and engine.cores:
        jobs = max(1, min(engine.cores, engine.memory // (4 * GIB)))
        minutes = max(CORE_MINUTES / jobs, LONGEST_STEP) + OTHER_MINUTES
        lines.append(f"about {minutes:.0f} minutes with {jobs} compilations at a time and no compiler cache")
    return lines


def _same_machine(platform: str, other: str) -> bool:
    """Return whether two platforms have the same architecture: ``linux/amd64/v3`` code runs on ``linux/amd64``."""
    return platform.split("/")[:2] == other.split("/")[:2]
