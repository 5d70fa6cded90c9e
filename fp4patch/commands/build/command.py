"""Options of ``build``."""

import sys
from pathlib import Path
from typing import Any

import click

from fp4patch.commands.options import FOLDER, json_option, variant_option
from fp4patch.console import emit, show

STAGES = ("toolkit", "sources", "proof", "kernels", "part", "wheel", "runtime")


class _Build(click.Command):
    """The command ``build``, whose errors explain where an option of buildx goes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} Options of `docker buildx build` follow after `--`."
            raise click.UsageError(message, ctx) from None


@click.command(cls=_Build)
@variant_option(required=False)
@click.option("--arch", "archs", metavar="ARCH", multiple=True, help="12.1a (GB10) or 12.0a (RTX PRO). Repeatable.")
@click.option("--allow-bare", is_flag=True, help="Build for a target without a suffix, which has no FP4 instructions.")
@click.option(
    "--target", type=click.Choice(STAGES), help="Stop at this stage. Default: runtime, or wheel with --output."
)
@click.option("--part", metavar="K/N", default="", help="With --target part: part K of N of the object files.")
@click.option(
    "--vllm", metavar="SOURCE", help="Use this release, directory, URL#REF or git reference instead of the pin."
)
@click.option("--cutlass", metavar="SOURCE", help="Use this CUTLASS instead of the pin.")
@click.option("--torch", metavar="VERSION", help="PyTorch release for a vLLM other than the pinned one.")
@click.option("--base-image", metavar="IMAGE", help="Image that compiles; it has nvcc, or g++ and Python.")
@click.option("--runtime-image", metavar="IMAGE", help="Image that the built vLLM runs in.")
@click.option(
    "--output",
    type=FOLDER,
    metavar="DIR",
    help="Write the wheel with its proof there, and no image. With --target proof, only the proof.",
)
@click.option("--sccache", is_flag=True, help="Cache compilations by sccache, with the SCCACHE_* variables.")
@click.option(
    "--jobs", "-j", metavar="N", type=click.IntRange(1, 512), help="Compilations at a time. Default: by the memory."
)
@click.option(
    "--context",
    type=FOLDER,
    metavar="DIR",
    help="Write the build context there and keep it. Default: a temporary directory.",
)
@click.option(
    "--no-preflight",
    "preflight",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Skip the checks of disk space and memory.",
)
@click.option("--dry-run", is_flag=True, help="Print the command and the build context, and build nothing.")
@click.option("--print-bake", is_flag=True, help="Print docker-bake.hcl for all variants, and build nothing.")
@click.argument("buildx", nargs=-1, type=click.UNPROCESSED, metavar="[-- BUILDX_OPTIONS]")
@json_option("fp4patch.images.image:Built", "fp4patch.images.image:DryRun")
def build(
    variant: str | None,
    buildx: tuple[str, ...],
    output: Path | None,
    vllm: str | None,
    cutlass: str | None,
    dry_run: bool,
    print_bake: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Build a patched vLLM as an image that carries its proof.

    Build checks the engine, and then runs `docker buildx build` and returns its exit status. Options of buildx follow
    after `--`: `fp4patch build --arch 12.1a -- --push --tag NAME --builder farm`. Without `--push`, the image is
    written to the engine's store.
    """
    from fp4patch.commands.build import run as verb
    from fp4patch.commands.build import text as report

    if print_bake:
        click.echo(verb.print_bake(), nl=False)
        return
    trees = {name: said for name, said in (("vllm", vllm), ("cutlass", cutlass)) if said}
    asked = verb.Options(variant=variant, trees=trees, **verb.handed_on(buildx, output), **options)
    if dry_run:
        planned = verb.dry_run(asked)
        emit(planned) if as_json else click.echo(report.dry_run_script(planned), nl=False)
        return
    try:
        built = verb.build(
            asked,
            progress="auto" if sys.stderr.isatty() else "plain",
            on_note=lambda note: click.echo(f"note: {note}", err=True),
        )
    except verb.BuildFailedError as failed:
        from fp4patch import console

        if as_json:
            emit(console.failure(failed))
        show(console.error(failed), err=True)
        raise click.exceptions.Exit(failed.status) from None
    emit(built) if as_json else show(report.built_text(built))
