"""The command ``build``: the patched vLLM as an image."""

import shlex
from pathlib import Path

import click
from rich.text import Text

from fp4patch.commands.options import FOLDER, WITH, json_option, torch_archs, variant_option
from fp4patch.console import emit, show
from fp4patch.images.image import Built, DryRun, Stage


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
    from fp4patch.commands import build_run as run  # noqa: PLC0415 - the other commands' help is quick

    trees = {name: named for name, named in (("vllm", vllm), ("cutlass", cutlass)) if named}
    request = run.plan(variant, archs, target, trees=trees, output=output, outside=outside, buildx=buildx)
    if dry_run:
        planned = run.dry_run(request, context)
        emit(planned) if as_json else click.echo(_script(planned), nl=False)
        return
    built = run.build(request, context)
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
