"""``fp4patch build``: the whole patched vLLM as an image that carries its proof, by the engine that is there."""

import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import fp4patch
from fp4patch.catalog.manifest import Catalog, data_root, load
from fp4patch.catalog.variant import Pins, TorchPin
from fp4patch.core.errors import ImageError, UsageError
from fp4patch.images import architectures, command, context, engine, provenance, sources
from fp4patch.images.image import PRODUCT, BuildRequest, BuildSettings, Built, DryRun, Engine, Outcome, Source, Stage

OnNote = Callable[[str], None]

handed_on = command.handed_on

DRY_CONTEXT = "fp4patch-context"
"""Directory in a dry run's command if the user names none."""

RECOMMENDED = "next3"
WHY = "which uses the hardware conversion wherever the target has it, and the shortest exact encoder elsewhere"
"""The variant of a build that names none, and the reason."""

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""An image's architecture, and the machine in the names of wheels."""


class BuildFailedError(ImageError):
    """The engine's build ended with another status than 0; ours is the same."""

    def __init__(self, stage: Stage, status: int) -> None:
        super().__init__(
            f"the build of stage {stage} failed (docker buildx ended with status {status})",
            help="its last lines name the step; the stages before it are in the builder's cache",
        )
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Options(BuildSettings):
    """The command line's options, as the user gave them."""

    variant: str | None = None
    """None: the recommended one, ``RECOMMENDED``."""
    archs: tuple[str, ...]
    allow_bare: bool = False
    target: str | None = None
    trees: Mapping[str, str] = field(default_factory=dict)
    """Source that the user names for a tree, by the target's name: a release, a directory, ``URL#REF``."""
    torch: str | None = None
    base_image: str | None = None
    runtime_image: str | None = None
    context: Path | None = None
    preflight: bool = True


@dataclass(frozen=True)
class Planned:
    """A build that is decided, and not yet begun."""

    request: BuildRequest
    torch: TorchPin
    cuda: str
    patches: tuple[str, ...]
    """``cutlass/e2m1-guard 1``."""
    root: Path
    """Root directory of the catalog."""


# --- deciding --------------------------------------------------------------------------------------------------------


def plan(options: Options) -> Planned:
    """Everything filled in from the variant's pins, and checked as far as no engine is needed for it."""
    catalog = load(data_root())
    variant = catalog.variant(options.variant or RECOMMENDED)
    if variant.image is None:
        raise UsageError(f"variant {variant.name} pins nothing to build an image from", help="it has no table [image]")
    pins = variant.image
    patches = tuple(patch for target in sorted(pins.trees) for patch in catalog.patches_of(variant, target))
    archs = architectures.check(options.archs, variant, patches, allow_bare=options.allow_bare)
    if options.variant is None:
        archs = replace(archs, notes=(f"without --variant the build takes {RECOMMENDED}, {WHY}", *archs.notes))
    stage = _stage(options)
    trees = {
        name: sources.source(catalog.target(name), version, options.trees.get(name), whole=stage.compiles)
        for name, version in pins.trees.items()
    }
    torch = _torch(pins, trees[PRODUCT], options.torch)
    request = BuildRequest(
        variant=variant.name,
        archs=archs,
        trees=trees,
        torch=torch.version,
        base_image=options.base_image or pins.base,
        runtime_image=options.runtime_image or pins.runtime,
        target=stage,
        **{each.name: getattr(options, each.name) for each in fields(BuildSettings)},
    )
    if request.sccache and not command.sccache_environment(os.environ):
        raise UsageError(
            "--sccache has no setting to pass on: no SCCACHE_… variable is set",
            help="set its storage, for example SCCACHE_BUCKET and AWS_…, or SCCACHE_REDIS_ENDPOINT",
        )
    return Planned(request, torch, pins.cuda, tuple(f"{p.id} {p.version}" for p in patches), catalog.root)


def _stage(options: Options) -> Stage:
    """Return the one that was named; else the runtime image, or for files the wheel with its proof."""
    files = options.outcome is Outcome.OUTPUT
    if bool(options.part) != (options.target == Stage.PART):
        raise UsageError("--part K/N and --target part belong together")
    if options.part and not re.fullmatch(r"([1-9]\d?)/([1-9]\d?)", options.part):
        raise UsageError(f"{options.part!r} is no part", help="for example --part 2/3")
    if options.part and int(options.part.split("/")[0]) > int(options.part.split("/")[1]):
        raise UsageError(f"there is no part {options.part}", help="parts are numbered from 1")
    if options.target is None:
        return Stage.WHEEL_EXPORT if files else Stage.RUNTIME
    stage = Stage(options.target)
    exports = {Stage.PROOF: Stage.PROOF_EXPORT, Stage.PART: Stage.PART_EXPORT, Stage.WHEEL: Stage.WHEEL_EXPORT}
    return exports.get(stage, stage) if files else stage


def _torch(pins: Pins, vllm: Source, said: str | None) -> TorchPin:
    """Return the pinned PyTorch; for another vLLM the one that the user names, or that a local tree requires."""
    if said:
        return pins.torch if said == pins.torch.version else TorchPin(version=said)
    if vllm.version == pins.trees[PRODUCT]:
        return pins.torch
    wanted = _torch_of(Path(vllm.context)) if vllm.context and Path(vllm.context).is_dir() else ""
    if wanted and wanted == pins.torch.version.partition("+")[0]:
        return pins.torch
    if wanted:
        return TorchPin(version=wanted)
    raise UsageError(
        f"another vLLM than the pinned {pins.trees[PRODUCT]} may need another PyTorch than {pins.torch.version}",
        help="name it with --torch V; its requirements state it",
    )


def _torch_of(tree: Path) -> str:
    """Return the PyTorch that a vLLM tree's build requires; empty if it does not pin one."""
    found = re.search(r'"torch\s*==\s*([^"\s;]+)', (tree / "pyproject.toml").read_text(encoding="utf-8"))
    return found[1] if found else ""


# --- looking only ----------------------------------------------------------------------------------------------------


def dry_run(options: Options) -> DryRun:
    """Return the command and the context's files. Only a context that was named is written."""
    planned = plan(options)
    request = _labelled(planned)
    folder = options.context or Path(DRY_CONTEXT)
    files = context.files(request, planned.torch, planned.cuda, planned.root, _machines(request, None))
    if options.context:
        _claim(folder)
        context.write(folder, files)
    words = command.compose(request, folder, progress="auto")
    return DryRun(
        command=tuple(words),
        shell=command.shell(words),
        context=str(folder),
        written=options.context is not None,
        files={name: len(data) for name, data in files.items()},
        notes=request.archs.notes,
    )


# --- building --------------------------------------------------------------------------------------------------------


def build(options: Options, *, progress: str, on_note: OnNote) -> Built:
    """Build it. ImageError if the engine cannot, BuildFailedError with the engine's status if it did not.

    ``progress`` is buildx's word: ``auto`` on a terminal, else ``plain``. An interrupt stops the engine's build and
    leaves no context behind.
    """
    clock = _Clock()
    planned = plan(options)
    request = planned.request
    for note in request.archs.notes:
        on_note(note)
    there = _preflight(request, thorough=options.preflight)
    notes = (*engine.notes(there, request), *engine.estimate(there, request))
    for note in notes:
        on_note(note)
    clock.lap("preflight")
    with _folder(options.context) as folder, tempfile.TemporaryDirectory(prefix="fp4patch-") as work:
        files = context.files(request, planned.torch, planned.cuda, planned.root, _machines(request, there))
        context.write(folder, files)
        clock.lap("context")
        labelled = _labelled(planned)
        metadata, iid = Path(work) / "metadata.json", Path(work) / "iid"
        names_an_image = request.outcome is not Outcome.OUTPUT
        words = command.compose(
            labelled, folder, progress=progress, metadata=metadata, iid=iid if names_an_image else ""
        )
        _run(words, labelled)
        clock.lap("build")
        said = json.loads(metadata.read_text(encoding="utf-8")) if metadata.is_file() else {}
        return Built(
            command=tuple(words),
            image=iid.read_text(encoding="utf-8").strip() if iid.is_file() else "",
            digest=str(said.get("containerimage.digest", "")),
            tags=request.tags,
            labels=labelled.labels,
            output=str(request.output or ""),
            seconds=clock.laps,
            notes=(*request.archs.notes, *notes),
        )


def _preflight(request: BuildRequest, *, thorough: bool) -> Engine:
    there = engine.look(request.builder, needs_engine=request.outcome is Outcome.LOAD)
    if not thorough:
        return there
    if problems := engine.check(there, request, base=engine.architecture_of(request.base_image, there)):
        raise ImageError("this engine cannot build it", problems=problems, help="--no-preflight tries all the same")
    return there


def _labelled(planned: Planned) -> BuildRequest:
    """Return the request with its labels; none where files are written, which have no place for them."""
    request = planned.request
    if request.outcome is Outcome.OUTPUT:
        return request
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    found = provenance.labels(
        request,
        planned.patches,
        planned.cuda,
        created=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        revision=provenance.revision(Path(fp4patch.__file__).resolve().parent),
    )
    return replace(request, labels=found)


def _machines(request: BuildRequest, there: Engine | None) -> tuple[str, ...]:
    """Return ``x86_64``, ``aarch64``: what the image's wheels must be for."""
    named = [text.split("/")[1] for text in request.platforms if "/" in text]
    own = there.architecture if there else ""
    return tuple(MACHINES.get(name, name) for name in named or ([own] if own else [platform.machine()]))


# --- running ---------------------------------------------------------------------------------------------------------


def _run(words: Sequence[str], request: BuildRequest) -> None:
    """The engine's command, its output on our stderr; stopped with us."""
    environ = engine.environment()
    if request.sccache:
        environ[command.SCCACHE_SECRET] = command.sccache_environment(os.environ)
    process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=2)
    try:
        status = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)  # buildx then cancels the build in the engine
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    if status:
        raise BuildFailedError(request.target, status)


@contextmanager
def _folder(said: Path | None) -> Iterator[Path]:
    """The context's directory: the one that was named, which stays, or one that goes."""
    if said is not None:
        _claim(said)
        yield said
        return
    with tempfile.TemporaryDirectory(prefix="fp4patch-context-") as name:
        yield Path(name)


def _claim(folder: Path) -> None:
    """Make the directory, or take over one that held a context before; UsageError if it holds something else."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a directory", help="name another with --context")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / "pins.json").is_file():
        raise UsageError(f"{folder} is not empty, and no build context of ours", help="name another with --context")
    for stale in folder.glob("fp4patch-*.whl"):
        stale.unlink()


class _Clock:
    """Wall time of each step."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.laps[name] = round(now - self._since, 3)
        self._since = now


# --- bake ------------------------------------------------------------------------------------------------------------


def print_bake() -> str:
    """Return ``docker-bake.hcl``: every variant that pins an image, for each set of architectures."""
    from fp4patch.commands.build import bake  # noqa: PLC0415 - nothing else needs it

    catalog: Catalog = load()
    return bake.text(
        [v for v in catalog.variants.values() if v.image], {name: catalog.target(name) for name in ("vllm", "cutlass")}
    )
