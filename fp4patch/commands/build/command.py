"""Options of ``build``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from fp4patch.commands.common import JSON, emit, show, variant_option

STAGES = ("toolkit", "sources", "proof", "kernels", "part", "wheel", "runtime")


class _Build(click.Command):
    """The command ``build``, whose errors explain where an option of buildx goes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} Options of `docker buildx build` go behind `--`."
            raise click.UsageError(message, ctx) from None


@click.command(cls=_Build)
@variant_option(required=False)
@click.option("--arch", "archs", metavar="ARCH", multiple=True, help="12.1a (GB10), 12.0a (RTX PRO); may be repeated.")
@click.option("--allow-bare", is_flag=True, help="Build for a target without a suffix, which has no FP4 instructions.")
@click.option(
    "--target", type=click.Choice(STAGES), help="Stop at this stage. Default: runtime, or wheel with --output."
)
@click.option("--part", metavar="K/N", default="", help="With --target part: this part of vLLM's object files.")
@click.option("--vllm", metavar="SOURCE", help="Instead of the pin: a release, a folder, URL#REF, or a git reference.")
@click.option("--cutlass", metavar="SOURCE", help="The same for CUTLASS.")
@click.option("--torch", metavar="VERSION", help="PyTorch, where another vLLM than the pinned one needs another.")
@click.option("--base-image", metavar="IMAGE", help="What compiles. With nvcc in it, or g++ and Python alone.")
@click.option("--runtime-image", metavar="IMAGE", help="What the built vLLM runs in.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write files, no image: the wheel with its proof, or with --target proof the proof.",
)
@click.option(
    "--sccache", is_flag=True, help="Share compilations by sccache, with the SCCACHE_... of this environment."
)
@click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Compilations at a time. Default: by the memory there.")
@click.option(
    "--context",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the build context there and keep it. Default: a temporary folder.",
)
@click.option(
    "--no-preflight", "preflight", is_flag=True, flag_value=False, default=True, help="Skip the checks of room."
)
@click.option("--dry-run", is_flag=True, help="Print the commands and what they would send, and build nothing.")
@click.option("--print-bake", is_flag=True, help="Print docker-bake.hcl for all variants, and build nothing.")
@click.argument("buildx", nargs=-1, type=click.UNPROCESSED, metavar="[-- BUILDX_OPTIONS]")
@JSON
def build(
    variant: str | None,
    buildx: tuple[str, ...],
    output: Path | None,
    dry_run: bool,
    print_bake: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Build a patched vLLM as an image that carries its proof.

    The engine is checked first; then `docker buildx build` runs, and its exit status is returned. Options of buildx
    go behind `--`: `fp4patch build --arch 12.1a -- --push --tag NAME --builder farm`. Without `--push` the image goes
    into the engine's store.
    """
    from fp4patch.commands.build import run as verb
    from fp4patch.commands.build import text as report

    if print_bake:
        click.echo(verb.print_bake(), nl=False)
        return
    asked = verb.Options(variant=variant, **verb.handed_on(buildx, output), **options)
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
        from fp4patch.commands import document, terminal

        if as_json:
            emit(document.failure(failed))
        show(terminal.error(failed), err=True)
        raise click.exceptions.Exit(failed.status) from None
    emit(built) if as_json else show(report.built_text(built))
