"""The container engine before a build: whether it is there, and what it lacks.

The ``docker`` command answers all queries, since it also runs the build; the ``docker`` package does not support
BuildKit. What buildx itself refuses at once is left to buildx.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fp4patch.core import process
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Problem
from fp4patch.images.image import BuildRequest

CROSS = ("linux/amd64", "linux/arm64")
"""The platform of a node, and one that it emulates and has compilers for: the stage ``cross`` of the Dockerfile."""


@dataclass(frozen=True)
class Node:
    """One machine of a builder."""

    own: str
    """Platform of its processor: ``linux/arm64``."""
    emulated: tuple[str, ...] = ()
    """Other platforms whose programs it runs."""


def nodes(builder: str, *, needs_engine: bool) -> tuple[Node, ...]:
    """Return the nodes of the builder, as far as their platforms are known.

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
    return tuple(
        Node(own, tuple(more))
        for own, *more in ([str(name).rstrip("*") for name in names or ()] for names in named)
        if own
    )


def host() -> str:
    """Return the address of the engine in use (``unix:///…``), by DOCKER_HOST or its context; empty if none."""
    return _docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").out.strip()


def _docker(*words: str) -> process.Done:
    try:
        return process.run(["docker", *words])
    except OSError as error:
        return process.Done(127, "", f"docker {error.strerror}")


def check(found: Sequence[Node], request: BuildRequest) -> list[Problem]:
    """Return the platforms that no node runs, and those for which vLLM would be compiled by emulated compilers."""
    problems = []
    for platform in request.buildx.platforms if found else ():  # a builder that has not been started reports no nodes
        named = f"`docker buildx create --append --name NAME --platform {platform} HOST`, then `-- --builder NAME`"
        expected, own = f"a node whose own platform is {platform}", ", ".join(node.own for node in found)
        if any(_same_machine(platform, node.own) for node in found):
            continue
        emulating = [node for node in found if any(_same_machine(platform, other) for other in node.emulated)]
        if not emulating:
            register = "for emulation install qemu-user-static on the node (Debian, Ubuntu)"
            problems.append(Problem(expected, f"{own}, which does not emulate it", help=f"{named}; {register}"))
        elif request.target.compiles and not any(_crosses(platform, node) for node in emulating):
            why = "which has no compilers of its own for it, and emulated ones take many times as long"
            problems.append(Problem(expected, f"{own}, {why}", help=named))
    return problems


def notes(found: Sequence[Node], request: BuildRequest) -> list[str]:
    """Return what the user should know before hours of building: an image for another machine, or by other compilers.

    Without a node it is what holds for some.
    """
    platforms = request.buildx.platforms or tuple(node.own for node in found[:1])
    only_gb10 = {(gpu.major, gpu.minor) for gpu in request.archs.gpus} == {(12, 1)}
    said = []
    if only_gb10 and platforms and not any(_same_machine(name, "linux/arm64") for name in platforms):
        said.append(
            f"GB10 machines are arm64, and this builds for {', '.join(platforms)}: "
            "build with `-- --platform linux/arm64`, which a builder without an arm64 node emulates"
        )
    native = any(_same_machine(node.own, CROSS[1]) for node in found)
    if any(_same_machine(name, CROSS[1]) for name in platforms) and not native:
        said.append(
            f"on a node of {CROSS[0]} the compilers for {CROSS[1]} are its own, and all else of the build is emulated"
        )
    return said


def _crosses(platform: str, node: Node) -> bool:
    """Return whether a node has compilers of its own for a platform that it emulates."""
    return _same_machine(node.own, CROSS[0]) and _same_machine(platform, CROSS[1])


def _same_machine(platform: str, other: str) -> bool:
    """Return whether two platforms have the same architecture: ``linux/amd64/v3`` code runs on ``linux/amd64``."""
    return platform.split("/")[:2] == other.split("/")[:2]
