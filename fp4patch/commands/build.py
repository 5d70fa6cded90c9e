"""The command ``build``: the whole patched vLLM as an image that carries its proof, by the engine that is there."""

import logging
import platform
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.text import Text

from fp4patch.commands.options import FOLDER, WITH, json_option, torch_archs, variant_option
from fp4patch.console import emit, show, write
from fp4patch.core.errors import ImageError, UsageError
from fp4patch.images import command, context, engine, provenance
from fp4patch.images.image import BuildRequest, Built, DryRun, Stage
from fp4patch.images.plan import plan

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""An image's architecture, and the machine in the names of wheels."""


@click.command(epilog="Example: fp4patch build --arch 12.1a -- --tag vllm:fp4")
@variant_option(required=False)
@WITH
@click.option(
    "--arch",
    "archs",
    metavar="ARCH",
    multiple=True,
    shell_complete=torch_archs,
    help="12.1a (GB10) or 12.0a (RTX PRO). Repeatable.",
)
@click.option(
    "--target",
    type=click.Choice([stage.value for stage in Stage]),
    metavar="STAGE",
    help="Stop at this stage: toolkit, sources, proof, kernels, part, wheel or runtime. Default: runtime, or wheel with"
    " --output.",
)
@click.option("--vllm", metavar="SOURCE", help="Use this release or directory instead of the pin.")
@click.option("--cutlass", metavar="SOURCE", help="Use this CUTLASS instead of the pin.")
@click.option(
    "--output",
    type=FOLDER,
    metavar="DIR",
    help="Write the wheel with its proof there, and no image. With --target proof, only the proof.",
)
@click.option(
    "--context",
    type=FOLDER,
    metavar="DIR",
    help="Write the build context there and keep it. Default: a temporary directory.",
)
@click.option("--dry-run", is_flag=True, help="Print the command and the build context, and build nothing.")
@click.argument("buildx", nargs=-1, type=click.UNPROCESSED, metavar="[-- BUILDX_OPTIONS]")
@json_option("fp4patch.images.image:Built", "fp4patch.images.image:DryRun")
def build(
    variant: str | None,
    outside: tuple[Path, ...],
    archs: tuple[str, ...],
    target: str | None,
    vllm: str | None,
    cutlass: str | None,
    output: Path | None,
    context: Path | None,
    dry_run: bool,
    buildx: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build a patched vLLM as an image that carries its proof.

    Build checks the engine, and then runs `docker buildx build` and returns its exit status. Options of buildx follow
    after `--`: `fp4patch build --arch 12.1a -- --push --tag NAME --build-arg MAX_JOBS=8`. Without `--push`, the image
    is written to the engine's store.
    """
    trees = {name: named for name, named in (("vllm", vllm), ("cutlass", cutlass)) if named}
    request = plan(variant, archs, target, trees=trees, output=output, outside=outside, buildx=buildx)
    if dry_run:
        planned = plan_only(request, context)
        emit(planned) if as_json else click.echo(_script(planned), nl=False)
        return
    built = build_image(request, context)
    emit(built) if as_json else show(_built(built))


def _script(planned: DryRun) -> str:
    """Return a script for a POSIX shell: the context's files and the notes as comments, then the command."""
    how = "" if planned.written else f"; --context {planned.context} writes it"
    lines = [f"# build context {planned.context}{how}"]
    lines += [f"#   {name}  {size:,} bytes" for name, size in planned.files.items()]
    lines += [f"# note: {note}" for note in planned.notes]
    return "\n".join([*lines, shlex.join(planned.command)]) + "\n"


def _built(built: Built) -> Text:
    """Return the result of a build, and the command that checks it."""
    name = built.output or (built.tags[0] if built.tags else built.image)
    what = f"wrote {name}" if built.output else f"built {name} ({built.image})"
    return Text(f"{what} in {built.seconds:.0f} s\n  `fp4patch doctor {name}` checks its proof")


def plan_only(request: BuildRequest, folder: Path | None) -> DryRun:
    """Return the command and the context's files. Only a context that was named is written."""
    files = context.files(request, _machines(request, ()))
    if folder:
        _write(folder, files)
    place = folder or Path("fp4patch-context")
    words = command.compose(request, place, provenance.labels(request))
    return DryRun(
        command=tuple(words),
        context=str(place),
        written=folder is not None,
        files={name: len(data) for name, data in files.items()},
        notes=(*request.archs.notes, *engine.notes((), request)),
    )


def build_image(request: BuildRequest, folder: Path | None) -> Built:
    """Build it. ImageError if the engine cannot, or did not: then with the status of buildx.

    An interrupt stops the engine's build and leaves no context behind.
    """
    begun = time.monotonic()
    nodes = engine.nodes(request.buildx.builder, needs_engine=not (request.output or request.buildx.push))
    if problems := engine.check(nodes, request):
        raise ImageError("this engine cannot build it", problems=problems)
    for note in (*request.archs.notes, *engine.notes(nodes, request)):
        logging.getLogger(__name__).warning("note: %s", note)
    labels = provenance.labels(request)
    with tempfile.TemporaryDirectory(prefix="fp4patch-") as work:
        place = folder or Path(work) / "context"
        _write(place, context.files(request, _machines(request, nodes)))
        iid = Path(work) / "iid"
        words = command.compose(request, place, labels, iid=iid)
        _run(words, request.target)
        return Built(
            image=iid.read_text(encoding="utf-8").strip() if iid.is_file() else "",
            tags=request.buildx.tags,
            labels=labels,
            output=str(request.output or ""),
            seconds=round(time.monotonic() - begun, 3),
        )


def _machines(request: BuildRequest, nodes: Sequence[engine.Node]) -> tuple[str, ...]:
    """Return ``x86_64``, ``aarch64``: what the image's wheels must be for."""
    platforms = request.buildx.platforms or [node.own for node in nodes[:1]]
    named = [MACHINES.get(name, name) for _, name, *_ in (text.split("/") for text in platforms if "/" in text)]
    return tuple(named) or (platform.machine(),)


def _run(words: Sequence[str], stage: Stage) -> None:
    """Run the engine's command, its output on our stderr; it is stopped with us."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=2)
    try:
        status = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)  # buildx then cancels the build in the engine
        process.wait()
        raise
    if status:
        failure = ImageError(
            f"the build of stage {stage} failed (docker buildx ended with status {status})",
            help="its last lines name the step; the stages before it are in the builder's cache",
        )
        failure.exit_code = status
        raise failure


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the build context; UsageError if the directory has something in it."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", help="name another directory with --context")
    for name, data in files.items():
        write(folder / name, data, advice="free space, or name another directory: --context")
