"""The container engine before a build: whether it is there, and what it lacks.

The ``docker`` command answers all queries, since it also runs the build; the ``docker`` package does not support
BuildKit. What buildx itself refuses at once is left to buildx.
"""

import json
from collections.abc import Sequence
from typing import Any

from fp4patch.core import process
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Problem
from fp4patch.images.image import BuildRequest


def own_platforms(builder: str, *, needs_engine: bool) -> tuple[str, ...]:
    """Return the own platform of each node of the builder, ``linux/arm64``, as far as it is known.

    ImageError if there is none to build with. ``needs_engine`` is true if the result goes into an engine's own store: a
    builder on another machine needs no engine for other results.
    """
    if _docker("buildx", "version").status:
        raise ImageError(
            "there is no docker command with a buildx plugin, and the classic builder cannot build this",
            help="install both: docker.io docker-buildx (Debian, Ubuntu), docker-ce docker-buildx-plugin (Docker)",
        )
    rows = [json.loads(line) for line in _docker("buildx", "ls", "--format", "{{json .}}").out.splitlines()]
    chosen: dict[str, Any] = next(
        (row for row in rows if (row["Name"] == builder if builder else row.get("Current"))), {}
    )
    if (needs_engine or chosen.get("Driver") == "docker") and (asked := _docker("info", "--format", "{{.ID}}")).status:
        raise ImageError(
            f"no docker engine responds: {next(iter(asked.err.splitlines()), 'no message')}",
            help="start it (systemctl start docker), add the user to the group docker, or name another: DOCKER_HOST",
        )
    # An asterisk marks a platform that the user configured: linux/arm64*.
    named = (node.get("Platforms") for node in chosen.get("Nodes") or ())
    return tuple(str(names[0]).rstrip("*") for names in named if names)


def host() -> str:
    """Return the address of the engine in use (``unix:///…``), by DOCKER_HOST or its context; empty if none."""
    return _docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").out.strip()


def _docker(*words: str) -> process.Done:
    try:
        return process.run(["docker", *words])
    except OSError as error:
        return process.Done(127, "", f"docker {error.strerror}")


def check(own: Sequence[str], request: BuildRequest) -> list[Problem]:
    """Return the platforms for which vLLM would be compiled by emulation, on nodes of these ``own`` platforms."""
    if not (own and request.target.compiles):
        return []  # a builder that has not been started reports no nodes
    return [
        Problem(
            f"a node whose own platform is {platform}",
            f"{', '.join(own)}, and to compile vLLM by emulation would take days",
            help=f"`docker buildx create --append --name NAME --platform {platform} HOST`, then `-- --builder NAME`",
        )
        for platform in request.buildx.platforms
        if not any(_same_machine(platform, node) for node in own)
    ]


def notes(own: Sequence[str], request: BuildRequest) -> list[str]:
    """Return what the user should know before hours of building: that the image is for another machine."""
    platforms = request.buildx.platforms or own[:1]
    only_gb10 = {(gpu.major, gpu.minor) for gpu in request.archs.gpus} == {(12, 1)}
    if not (only_gb10 and platforms) or any(_same_machine(name, "linux/arm64") for name in platforms):
        return []
    return [
        f"GB10 machines are arm64, and this builds for {', '.join(platforms)}: "
        "build there, or with `-- --platform linux/arm64` and a builder that has an arm64 node"
    ]


def _same_machine(platform: str, other: str) -> bool:
    """Return whether two platforms have the same architecture: ``linux/amd64/v3`` code runs on ``linux/amd64``."""
    return platform.split("/")[:2] == other.split("/")[:2]
