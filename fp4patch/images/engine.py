"""Checks of the container engine before a build: its presence, its features, and its free memory and disk.

The ``docker`` command answers all queries, since it also runs the build; the ``docker`` package does not support
BuildKit.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.core import process
from fp4patch.core.errors import ImageError
from fp4patch.core.problem import Problem
from fp4patch.images.image import JOB_MEMORY, BuildRequest, Engine, Node, Outcome, Stage

GIB = 1 << 30
OLDEST_BUILDX = Version("0.13")

CORE_MINUTES, LONGEST_STEP, OTHER_MINUTES = 394, 17.7, 5
"""Measured times of compiling vLLM for one architecture, in minutes: core time, longest step, the rest
(docs/image.md)."""


# --- asking ----------------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Return the environment for docker commands, with BuildKit required.

    Without it, a client without buildx would silently use the classic builder.
    """
    return os.environ | {"DOCKER_BUILDKIT": "1"}


def look(builder: str, *, needs_engine: bool) -> Engine:
    """Return the engine and the builder; raise ImageError with one sentence if there is none to build with.

    ``needs_engine`` is true if the result goes into an engine's own store. A builder on another machine needs no engine
    for other results.
    """
    if shutil.which("docker") is None:
        raise ImageError(
            "there is no docker command on PATH",
            help="install Docker Engine with its buildx plugin (Debian, Ubuntu: docker.io docker-buildx)",
        )
    version = buildx()
    chosen = _builder(builder)
    nodes = tuple(
        # An asterisk marks a platform that the user configured: linux/arm64*.
        Node(
            n.get("Name", ""), n.get("Status", "") == "running", tuple(p.rstrip("*") for p in n.get("Platforms") or ())
        )
        for n in chosen.get("Nodes") or ()
    )
    driver = str(chosen.get("Driver", ""))
    itself = driver == "docker"
    _, server, complaint = versions()
    if not server and (needs_engine or itself):
        raise ImageError(_unreachable(complaint), help=remedy(complaint))
    info = _info() if server else {}
    root = str(info.get("DockerRootDir", ""))
    return Engine(
        version=str(server.get("Version", "")),
        buildx=version,
        driver=driver,
        nodes=nodes,
        architecture=str(server.get("Arch", "")),
        memory=int(info["MemTotal"]) if itself and info.get("MemTotal") else None,
        disk=_free(root) if itself else None,
        root=root,
        attests=any("io.containerd.snapshotter" in str(pair) for pair in info.get("DriverStatus") or ()),
    )


def host() -> str:
    """Return the address of the engine in use (``unix:///…``), by DOCKER_HOST or its context; empty if none."""
    return _docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").out.strip()


def versions() -> tuple[str, dict[str, Any], str]:
    """Return the version of the client, the values of its engine, and the complaint of the client if none answers."""
    done = _docker("version", "--format", "{{json .}}")
    try:
        told = json.loads(done.out.splitlines()[0])
    except (ValueError, IndexError):
        told = {}
    client, server = told.get("Client") or {}, told.get("Server") or {}
    return str(client.get("Version", "")), server, "" if server else (done.err or done.out).strip()


def buildx() -> str:
    """Return the version of buildx; raise ImageError if there is none that can build."""
    done = _docker("buildx", "version")
    found = re.match(r"github\.com/docker/buildx v?(\d+\.\d+(?:\.\d+)?)", done.out)
    if done.status or not found:
        raise ImageError(
            "the docker command has no buildx plugin, and the classic builder cannot build this",
            help="install it: docker-buildx-plugin (Docker's packages), docker-buildx (Debian, Ubuntu)",
        )
    if Version(found[1]) < OLDEST_BUILDX:
        raise ImageError(f"buildx {found[1]} is too old", help=f"install {OLDEST_BUILDX} or later")
    return found[1]


def _unreachable(said: str) -> str:
    if "permission denied" in said:
        return "this user may not speak to the docker engine"
    where = re.search(r"(?:unix|tcp|ssh|https?)://\S+?(?=[\s.,]*(?:\s|$))", said)
    return f"no docker engine responds{f' at {where[0]}' if where else ''}"


def remedy(said: str) -> str:
    """Return the recommended action for an engine that does not answer."""
    if "permission denied" in said:
        return "add the user to the group docker, or use a rootless engine"
    if shutil.which("docker") is None:
        return "install it (https://docs.docker.com/engine/install), or name another machine's: DOCKER_HOST"
    return "start it (systemctl start docker), or name another: DOCKER_HOST, `docker context use`"


def _builder(name: str) -> dict[str, Any]:
    """Return the named builder, or the one in use, as ``docker buildx ls`` lists it."""
    run = _docker("buildx", "ls", "--format", "{{json .}}")
    rows = [json.loads(line) for line in run.out.splitlines() if line.startswith("{")]
    by_name = {row["Name"]: row for row in rows}
    if name and name not in by_name:
        raise ImageError(
            f"there is no builder {name!r}", help=f"`docker buildx ls` lists {', '.join(by_name) or 'none'}"
        )
    chosen = by_name[name] if name else next((row for row in rows if row.get("Current")), None)
    if chosen is None:
        raise ImageError("buildx has no builder", help="`docker buildx create --use` makes one")
    if said := chosen.get("Err"):
        raise ImageError(_unreachable(said), help=remedy(said))
    if name and chosen["Driver"] == "docker" and name != _docker("context", "show").out.strip():
        raise ImageError(
            f"{name} is the engine of another docker context, which buildx takes by its context and not as a builder",
            help=f"set DOCKER_CONTEXT={name}, or make a builder of it: docker buildx create --name NAME {name}",
        )
    return dict(chosen)


def _free(root: str) -> int | None:
    """Return the free bytes at the engine's directory or its nearest readable parent; None on another machine."""
    if not root or not host().startswith("unix://"):
        return None
    path = Path(root)
    for folder in (path, *path.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def _docker(*words: str) -> process.Done:
    try:
        return process.run(["docker", *words], environ=environment())
    except OSError as error:
        return process.Done(127, "", f"docker {error.strerror}")


def _info() -> dict[str, Any]:
    done = _docker("info", "--format", "{{json .}}")
    try:
        return dict(json.loads(done.out))
    except ValueError:
        said = done.err.strip().splitlines()[-1:]
        raise ImageError(f"`docker info` failed: {said}", help="is the engine healthy?") from None


# --- judging ---------------------------------------------------------------------------------------------------------


def check(engine: Engine, request: BuildRequest, *, base: str = "") -> list[Problem]:
    """Return all reasons why the engine cannot run this build. The function reads and runs nothing.

    ``base`` is the architecture of the base image (``amd64``) if the engine has it already, else empty.
    """
    wanted = _wanted(engine, request)
    return [
        *_nodes(engine, request, wanted),
        *_room(engine, request),
        *_store(engine, request),
        *_base(wanted, base, request.base_image),
    ]


def notes(engine: Engine, request: BuildRequest) -> list[str]:
    """Return notes for the user about an image that can be built."""
    wanted = _wanted(engine, request)
    gb10 = [gpu for gpu in request.archs.gpus if (gpu.major, gpu.minor) == (12, 1)]
    if gb10 == list(request.archs.gpus) and gb10 and wanted and not any(p.startswith("linux/arm64") for p in wanted):
        return [
            f"GB10 machines are arm64, and this builds for {', '.join(wanted)}: "
            "build there, or with `-- --platform linux/arm64` and a builder that has an arm64 node"
        ]
    return []


def estimate(engine: Engine, request: BuildRequest) -> list[str]:
    """Return an estimate of the time of a vLLM build on this engine, from docs/image.md; empty for other stages."""
    cores = request.jobs or (os.cpu_count() if engine.driver == "docker" and host().startswith("unix://") else None)
    if not request.target.compiles_vllm or not cores:
        return []
    if engine.memory and not request.jobs:
        cores = max(1, min(cores, engine.memory // (4 * GIB)))
    minutes = max(CORE_MINUTES / cores, LONGEST_STEP) + OTHER_MINUTES
    return [f"about {minutes:.0f} minutes with {cores} compilations at a time, where nothing is in the compiler cache"]


def _wanted(engine: Engine, request: BuildRequest) -> tuple[str, ...]:
    """Return the platforms that were named, else the engine's own; empty where that is not known."""
    return request.platforms or ((f"linux/{engine.architecture}",) if engine.architecture else ())


def _nodes(engine: Engine, request: BuildRequest, wanted: tuple[str, ...]) -> list[Problem]:
    known = [node for node in engine.nodes if node.platforms]
    if not known:
        return []  # a builder that has not been started reports no nodes
    native = [node.native for node in known]
    found = []
    for platform in wanted:
        if any(_same_machine(platform, own) for own in native):
            continue
        emulated = any(_same_machine(platform, other) for node in known for other in node.platforms)
        if emulated and not request.target.compiles_vllm and request.target is not Stage.KERNELS:
            continue
        found.append(
            Problem(
                f"a node whose own platform is {platform}",
                f"{', '.join(native)}" + (", which only emulates it: vLLM's build would take days" if emulated else ""),
                help=f"`docker buildx create --append --name NAME --platform {platform} HOST`, then "
                "`-- --builder NAME`",
            )
        )
    return found


def _same_machine(one: str, other: str) -> bool:
    """Return whether two platforms have the same architecture: ``linux/amd64/v3`` code runs on ``linux/amd64``."""
    return one.split("/")[:2] == other.split("/")[:2]


def _room(engine: Engine, request: BuildRequest) -> list[Problem]:
    disk = None if engine.disk is None else little_disk(request.target, engine.disk, engine.root)
    compiles = request.target.compiles_vllm and engine.memory is not None
    memory = little_memory(engine.memory or 0) if compiles else None
    return [problem for problem in (disk, memory) if problem]


def little_disk(stage: Stage, free: int, where: str) -> Problem | None:
    """Return why a stage cannot be built on a disk with so many free bytes; None if it can."""
    if free >= stage.disk * GIB:
        return None
    return Problem(
        f"{stage.disk} GiB free for stage {stage}",
        f"{free / GIB:.0f} GiB at {where}",
        help="`docker system df` shows what takes room, `docker builder prune` frees the cache; "
        "or move the engine's data-root",
    )


def little_memory(memory: int) -> Problem | None:
    """Return why vLLM cannot be compiled in so many bytes of memory; None if it can."""
    if memory >= JOB_MEMORY * GIB:
        return None
    return Problem(
        f"{JOB_MEMORY} GiB of memory for one compilation of vLLM's largest files",
        f"{memory / GIB:.1f} GiB",
        help="hand the build to a larger machine: `-- --builder NAME`",
    )


def _store(engine: Engine, request: BuildRequest) -> list[Problem]:
    """Return problems of the image store with several platforms, attestations, and a layer cache."""
    into_plain_store = request.outcome is Outcome.LOAD and not engine.attests
    attestations = {"--provenance": request.provenance, "--sbom": request.sbom}
    asked = [option for option, said in attestations.items() if said not in ("", "false", "mode=none")]
    cannot = into_plain_store or (request.outcome is Outcome.PUSH and engine.driver == "docker" and not engine.attests)
    exported = [cache for cache in request.cache_to if "type=inline" not in cache]
    classic, store = "the engine's classic one", "turn on the engine's containerd image store"
    lacking = [
        (
            into_plain_store and len(request.platforms) > 1,
            "holds several platforms",
            f"{classic}, which holds one",
            "`-- --push` to a registry, or turn on the engine's containerd image store",
        ),
        (
            asked and request.outcome is not Outcome.OUTPUT and cannot,
            f"holds attestations ({', '.join(asked)})",
            classic,
            f"{store}, or `-- --push` by a builder of another driver. "
            "The proof and a CycloneDX SBOM are in the image in any case",
        ),
        (
            exported and engine.driver == "docker" and not engine.attests,
            f"can export its layer cache (--cache-to {', '.join(exported[:1])})",
            classic,
            f"{store}, or build by a builder of another driver",
        ),
    ]
    return [Problem(f"an image store that {what}", found, help=help_) for wrong, what, found, help_ in lacking if wrong]


def _base(wanted: tuple[str, ...], architecture: str, image: str) -> list[Problem]:
    if not architecture or len(wanted) != 1 or _same_machine(wanted[0], f"linux/{architecture}"):
        return []
    return [
        Problem(
            f"a base image for {wanted[0]}",
            f"{image} in the engine's store is for linux/{architecture}",
            help=f"`docker pull --platform {wanted[0]} {image}`, or name another: --base-image",
        )
    ]


def architecture_of(image: str, engine: Engine) -> str:
    """Return the architecture of an image in the engine; empty if it has no such image, or builds elsewhere."""
    if engine.driver != "docker":
        return ""
    run = _docker("image", "inspect", "--format", "{{.Architecture}}", image)
    return run.out.strip() if run.status == 0 else ""
