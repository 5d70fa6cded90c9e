"""Composition of the ``docker buildx build`` command line: a pure function, so that ``--dry-run`` is exact."""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fp4patch.core.errors import UsageError
from fp4patch.images.image import BuildRequest, Outcome

SCCACHE_SECRET = "FP4PATCH_SCCACHE_ENV"  # noqa: S105 - the name of a variable
"""The environment variable that carries sccache's settings into the build, as a secret."""

SCCACHE_PREFIXES = ("SCCACHE_", "AWS_", "ACTIONS_RESULTS_", "ACTIONS_RUNTIME_", "ACTIONS_CACHE_", "GOOGLE_", "ALIYUN_")

SCCACHE_HERE = ("SCCACHE_CONF", "SCCACHE_DIR", "SCCACHE_ERROR_LOG", "SCCACHE_SERVER_UDS")
"""Settings that are paths of this machine and mean nothing in the build, where the directory is a cache mount."""


class _Options(argparse.ArgumentParser):
    """The options of ``docker buildx build`` that decide what is checked first, or that fp4patch sets itself."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        for name in ("--builder", "--provenance", "--sbom"):
            self.add_argument(name, default="")
        self.add_argument(
            "--platform", dest="platforms", action="extend", type=lambda said: said.split(","), default=[]
        )
        self.add_argument("--tag", "-t", dest="tags", action="append", default=[])
        self.add_argument("--cache-to", action="append", default=[])
        for outcome in (Outcome.LOAD, Outcome.PUSH):
            self.add_argument(f"--{outcome}", dest="outcome", action="store_const", const=outcome)
        for name in ("--file", "-f", "--target", "--output", "-o", "--iidfile", "--metadata-file"):
            self.add_argument(name, dest="set_here", action=_Refused)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"docker buildx build: {message}")


class _Refused(argparse.Action):
    """An option that fp4patch sets itself."""

    def __call__(self, _parser: object, _namespace: object, _values: object, option: str | None = None) -> NoReturn:
        raise UsageError(
            f"fp4patch sets {option} of docker buildx itself",
            help="`--target STAGE` and `--output DIR` in front of `--` are fp4patch's own",
        )


def handed_on(words: Sequence[str], output: Path | None) -> dict[str, Any]:
    """Return the fields of BuildSettings that the words behind ``--`` and the directory ``output`` decide.

    Raises UsageError for what cannot be handed on.
    """
    known, rest = _Options().parse_known_args(words)
    if rest and not rest[0].startswith("-"):
        raise UsageError(f"{rest[0]!r} is no option of docker buildx", help="fp4patch makes the build context itself")
    if output and known.outcome is Outcome.PUSH:
        raise UsageError("--output writes files; --push takes an image")
    if known.outcome is Outcome.PUSH and not known.tags:
        raise UsageError("--push needs a name: --tag REGISTRY/NAME:TAG")
    return {
        "outcome": Outcome.OUTPUT if output else known.outcome or Outcome.LOAD,
        "output": output,
        "platforms": tuple(known.platforms),
        "tags": tuple(known.tags),
        "cache_to": tuple(known.cache_to),
        "builder": known.builder,
        "provenance": known.provenance,
        "sbom": known.sbom,
        "buildx": tuple(rest),
    }


def compose(
    request: BuildRequest, context: Path | str, *, progress: str, metadata: Path | str = "", iid: Path | str = ""
) -> list[str]:
    """Return the words of the command. ``metadata`` and ``iid`` are the files that buildx writes; left out if empty."""
    command = ["docker", "buildx", "build"]
    if request.builder:
        command += ["--builder", request.builder]
    command += ["--file", f"{context}/Dockerfile", "--target", request.target.value]
    if request.platforms:
        command += ["--platform", ",".join(request.platforms)]
    for name, value in arguments(request).items():
        command += ["--build-arg", f"{name}={value}"]
    for name, source in request.trees.items():
        if source.context:
            command += ["--build-context", f"{name}-tree={source.context}"]
    command += request.buildx
    for option, values in (
        ("--secret", (f"id=sccache_env,env={SCCACHE_SECRET}",) if request.sccache else ()),
        ("--cache-to", request.cache_to),
        ("--label", [f"{name}={value}" for name, value in request.labels.items()]),
        ("--tag", request.tags),
        ("--provenance", (request.provenance,) if request.provenance else ()),
        ("--sbom", (request.sbom,) if request.sbom else ()),
        ("--metadata-file", (str(metadata),) if metadata else ()),
        ("--iidfile", (str(iid),) if iid else ()),
    ):
        for value in values:
            command += [option, value]
    command += ["--progress", progress]
    if request.outcome is Outcome.OUTPUT:
        command += ["--output", f"type=local,dest={request.output}"]
    else:
        command.append(f"--{request.outcome.value}")
    return [*command, str(context)]


def arguments(request: BuildRequest) -> dict[str, str]:
    """Return the Dockerfile's build arguments."""
    found = {
        "BASE_IMAGE": request.base_image,
        "RUNTIME_IMAGE": request.runtime_image,
        "VARIANT": request.variant,
        **{f"{name.upper()}_VERSION": source.version for name, source in request.trees.items()},
        "GCC_VERSION": str(max(source.gcc for source in request.trees.values())),
        "TORCH_VERSION": request.torch,
        "FP4_ARCH": ",".join(str(arch) for arch in request.archs.judged),
        "FP4_FOR": ",".join(str(gpu) for gpu in request.archs.gpus),
        "TORCH_CUDA_ARCH_LIST": ";".join(arch.torch for arch in request.archs.asked),
    }
    if request.jobs:
        found["MAX_JOBS"] = str(request.jobs)
    found |= {f"{name.upper()}_FROM": "git" for name, source in request.trees.items() if source.whole}
    if request.part:
        found["PART"] = request.part
    if request.sccache:
        found["COMPILER_CACHE"] = "sccache"
    return found


def sccache_environment(environ: Mapping[str, str]) -> str:
    """Return the settings of sccache and of its storage, as ``export`` lines for a shell; empty if there are none."""
    chosen = {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(SCCACHE_PREFIXES) and name not in SCCACHE_HERE
    }
    if not any(name.startswith("SCCACHE_") for name in chosen):
        return ""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in chosen.items())


def shell(command: Sequence[str]) -> str:
    """Return the command in a readable form: one option per line, quoted for a POSIX shell."""
    chosen = f"grep -E ' ({'|'.join(SCCACHE_PREFIXES)})' | grep -vE ' ({'|'.join(SCCACHE_HERE)})='"
    settings = f'{SCCACHE_SECRET}="$(export -p | {chosen})" '
    start = settings if f"id=sccache_env,env={SCCACHE_SECRET}" in command else ""
    lines = [start + " ".join(command[:3])]
    for word in command[3:-1]:
        if word.startswith("--"):
            lines.append(f"  {shlex.quote(word)}")
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n".join([*lines, f"  {shlex.quote(command[-1])}"])
