"""What a build is asked for, with every default filled in, and checked as far as no engine is needed for it.

Architectures are checked before hours of building: a lost suffix, and nothing that could be proven. Sources are the
variant's pins, or those that the user names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.catalog.outside import OutsidePatch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Pins, TorchPin, Variant
from fp4patch.core.arch import GPUS, Arch, requested
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.release import is_version
from fp4patch.core.results import Problem
from fp4patch.images import command
from fp4patch.images.image import PRODUCT, Architectures, BuildRequest, Source, Stage

RECOMMENDED = "next3"
WHY = "which uses the hardware conversion wherever the target has it, and the shortest exact encoder elsewhere"
"""The variant of a build that names none, and the reason."""


def plan(
    variant: str | None,
    archs: Sequence[str],
    target: str | None = None,
    *,
    trees: Mapping[str, str] | None = None,
    output: Path | None = None,
    outside: Sequence[OutsidePatch] = (),
    with_files: Mapping[str, bytes] | None = None,
    buildx: Sequence[str] = (),
) -> BuildRequest:
    """Fill in everything from the variant's pins, and check it as far as no engine is needed for it.

    ``trees`` are the sources that the user names, by the target's name; ``outside`` are patches, of directories that
    ``with_files`` has; ``buildx`` are words for buildx.
    """
    if vague := next((patch.origin.stack for patch in outside if not patch.target), ""):
        raise UsageError(
            f"which tree of the image is the stack {vague} for?", help="say it in stack.toml: target = NAME"
        )
    diffs = tuple(outside)
    catalog = load().including(diffs)
    chosen = catalog.variant(variant or RECOMMENDED)
    if chosen.image is None:
        raise UsageError(f"variant {chosen.name} pins nothing to build an image from", help="it has no table [image]")
    pins = chosen.image
    named = pins.trees | dict(trees or {})
    asked = check(archs, chosen)
    if variant is None:
        asked = replace(asked, notes=(f"without --variant the build takes {RECOMMENDED}, {WHY}", *asked.notes))
    stage = Stage(target) if target else Stage.WHEEL if output else Stage.RUNTIME
    if strays := [patch.id for patch in diffs if patch.target not in pins.trees]:
        raise UsageError(f"{strays[0]} is for none of the trees of the image", help=f"they are {', '.join(pins.trees)}")
    own = {name: source(catalog.target(name), named[name], whole=stage.compiles) for name in pins.trees}
    options = command.buildx_options(buildx, output)
    request = BuildRequest(
        variant=chosen.name,
        patches=tuple(f"{p.id} {p.version}" for name in sorted(own) for p in catalog.patches_of(chosen, name)),
        archs=asked,
        trees=own,
        outside=diffs,
        with_files=dict(with_files or {}),
        torch=_torch(pins, own[PRODUCT], options.arguments.get("TORCH_VERSION")),
        cuda=pins.cuda,
        base_image=options.arguments.get("BASE_IMAGE", pins.base),
        runtime_image=options.arguments.get("RUNTIME_IMAGE", pins.runtime),
        target=stage,
        output=output,
        buildx=options,
    )
    command.arguments(request)  # before anything is asked or written: the user may not set one of ours
    return request


def _torch(pins: Pins, vllm: Source, named: str | None) -> TorchPin:
    """Return the pinned PyTorch; for another vLLM the one that the user names, or that a local tree requires."""
    if vllm.version == pins.trees[PRODUCT] and not named:
        return pins.torch
    required = None
    if vllm.folder:
        pattern, project = r'"torch\s*==\s*([^"\s;]+)', Path(vllm.folder) / "pyproject.toml"
        required = re.search(pattern, project.read_text(encoding="utf-8"))
    wanted = named or (required[1] if required else "")
    if not wanted:
        raise UsageError(
            f"another vLLM than the pinned {pins.trees[PRODUCT]} may need another PyTorch than {pins.torch.version}",
            help="name it: -- --build-arg TORCH_VERSION=V; its requirements state it",
        )
    same = wanted in (pins.torch.version, pins.torch.version.partition("+")[0])
    return pins.torch if same else TorchPin(version=wanted)


def check(asked: Sequence[str], variant: Variant) -> Architectures:
    """Return what the requested architectures mean for a variant; Refused carries every objection."""
    archs = requested(",".join(asked), "for example --arch 12.1a (GB10), --arch 12.0a (RTX PRO)")
    covered = [Arch.parse(text) for text in variant.arch]
    judged = tuple(arch for arch in archs if arch in covered)
    problems = [
        Problem(
            f"a suffix: {arch.torch}a or {arch.torch}f",
            f"{arch.torch}, and for {arch} ptxas refuses the FP4 conversion (cvt.rn.satfinite.e2m1x2) and the FP4 "
            "matrix instructions: conversions become software, FP4 GEMM kernels are left out",
            help=f"--arch {arch.torch}a",
        )
        for arch in archs
        if arch.major >= 10 and not arch.suffix
    ]
    if not judged and not problems:
        expected = f"an architecture that {variant.name} has rules for: {', '.join(arch.torch for arch in covered)}"
        found = f"{', '.join(arch.torch for arch in archs)}, so nothing could be proven"
        problems.append(Problem(expected, found, help="name one of these, alone or beside it"))
    if problems:
        raise Refused("these architectures cannot be built", problems=problems)
    notes = [
        f"{variant.name} has no rules for {arch.torch}: its code is built, and not proven"
        for arch in archs
        if arch not in covered
    ]
    gpus = [gpu for arch in archs for gpu in (arch.gpu, *(GPUS if arch.suffix == "f" else ())) if arch.runs_on(gpu)]
    return Architectures(archs, judged, tuple(dict.fromkeys(gpus)), tuple(notes))


def source(target: Target, named: str, *, whole: bool) -> Source:
    """Return the source of that name: a release, or a directory, which becomes a build context of its own.

    ``whole``: vLLM is compiled, which needs more of the tree than its headers: those of a release then come by git.
    UsageError: it is no such tree.
    """
    folder, version = Path(named).expanduser(), named.removeprefix("v")
    if folder.is_dir():
        return _folder(target, folder, whole=whole)
    if not is_version(version):
        raise UsageError(f"{named} is neither a directory nor a release", help="clone it, and name the directory")
    archive, commit = target.archive(version), target.commits.get(version)
    by_git = {"git": target.git, "ref": target.tag_of(version)} | ({"commit": commit} if commit else {})
    in_part = bool(archive and archive.partial and whole)
    pin = by_git if in_part or not archive else {"archive": archive.filename, "sha256": archive.sha256}
    return Source(version, pin={"version": version} | pin, whole=in_part)


def _folder(target: Target, folder: Path, *, whole: bool) -> Source:
    if missing := target.missing(folder):
        raise UsageError(
            f"{folder} is not a tree of {target.title}: it has no {missing[0]}",
            help="name the top directory of one, or a release",
        )
    if lacks := [path for path in target.whole if whole and not (folder / path).exists()]:
        raise UsageError(
            f"vLLM cannot be compiled with {folder}: it has {target.title}'s"
            f" headers, and does not have {', '.join(lacks)}",
            help=f"name a clone of {target.git}; --target proof needs the headers alone",
        )
    # The path means nothing on another machine.
    return Source(folder=str(folder.resolve()), pin={"local": folder.resolve().name})
