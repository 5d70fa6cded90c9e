"""Composition of the ``docker buildx build`` command line: a pure function, so that ``--dry-run`` is exact."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from fp4patch.core.errors import UsageError
from fp4patch.images.image import BuildRequest, BuildxOptions, Stage

_SET_HERE = ("--file", "--target", "--output", "--iidfile")
_EXPORTS = {Stage.PROOF: "proof-export", Stage.PART: "part-export", Stage.WHEEL: "wheel-export"}
"""Stages that hold nothing but the files of another one."""

GIVEN = ("BASE_IMAGE", "RUNTIME_IMAGE", "TORCH_VERSION")
"""Build arguments that are ours and that the user may set; ``plan`` writes them into the pins and the labels."""


def buildx_options(words: Sequence[str], output: Path | None) -> BuildxOptions:
    """Return what the words behind ``--`` decide here; UsageError for what cannot be handed on."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--builder", default="")
    parser.add_argument("--platform", action="extend", type=lambda names: names.split(","), default=[])
    parser.add_argument("--tag", "-t", action="append", default=[])
    parser.add_argument("--build-arg", action="append", default=[])
    parser.add_argument("--push", action="store_true")
    for name in _SET_HERE:
        parser.add_argument(name, *(f"-{name[2]}",) * (name in ("--file", "--output")), dest="set_here")
    try:
        known, rest = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"docker buildx build: {error}") from None
    if known.set_here is not None:
        raise UsageError(
            f"fp4patch sets {', '.join(_SET_HERE)} of docker buildx itself",
            help="`--target STAGE` and `--output DIR` in front of `--` are fp4patch's own",
        )
    if rest and not rest[0].startswith("-"):
        raise UsageError(f"{rest[0]!r} is no option of docker buildx", help="fp4patch makes the build context itself")
    if output and known.push:
        raise UsageError("--output writes files; --push takes an image")
    given = dict(text.partition("=")[::2] for text in known.build_arg)
    return BuildxOptions(tuple(words), given, tuple(known.platform), tuple(known.tag), known.builder, known.push)


def compose(
    request: BuildRequest,
    context: Path | str,
    labels: Mapping[str, str],
    *,
    iid: Path | None = None,
) -> list[str]:
    """Return the words of the command. ``iid`` is a file that buildx writes."""
    stage = _EXPORTS.get(request.target, request.target) if request.output else request.target
    command = ["docker", "buildx", "build", "--file", f"{context}/Dockerfile", "--target", str(stage)]
    for name, value in arguments(request).items():
        command += ["--build-arg", f"{name}={value}"]
    for name, source in request.trees.items():
        command += ["--build-context", f"{name}-tree={source.folder}"] if source.folder else []
    for name, value in labels.items():
        command += ["--label", f"{name}={value}"]
    command += request.buildx.words
    command += ["--iidfile", str(iid)] if iid and not request.output else []
    if request.output:
        command += ["--output", f"type=local,dest={request.output}"]
    elif not request.buildx.push:
        command.append("--load")
    return [*command, str(context)]


def arguments(request: BuildRequest) -> dict[str, str]:
    """Return the Dockerfile's build arguments that are ours; UsageError if the user sets one that options decide."""
    ours = {
        "BASE_IMAGE": request.base_image,
        "RUNTIME_IMAGE": request.runtime_image,
        "VARIANT": request.variant,
        **{f"{name.upper()}_VERSION": source.version for name, source in request.trees.items()},
        "TORCH_VERSION": request.torch.version,
        "FP4_ARCH": ",".join(str(arch) for arch in request.archs.judged),
        "FP4_FOR": ",".join(str(gpu) for gpu in request.archs.gpus),
        "TORCH_CUDA_ARCH_LIST": ";".join(arch.torch for arch in request.archs.asked),
        **{f"{name.upper()}_FROM": "git" for name, source in request.trees.items() if source.whole},
    }
    if twice := sorted({*ours} & {*request.buildx.arguments} - {*GIVEN}):
        raise UsageError(f"fp4patch sets the build argument {twice[0]} itself", help="by its own options")
    return ours
