"""The commands for images: build one with the installed container engine, and inspect one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from fp4patch.cli.common import EXIT_REFUSED, JSON, emit, show, variant_option

STAGES = ("toolkit", "sources", "proof", "kernels", "part", "wheel", "runtime")


@click.command()
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
@click.option("--load", "into", flag_value="load", default="load", help="Into the engine's own store (default).")
@click.option("--push", "into", flag_value="push", help="To the registry that --tag names.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write files, no image: the wheel with its proof, or with --target proof the proof.",
)
@click.option("--tag", "-t", "tags", multiple=True, metavar="NAME", help="Name of the image; may be repeated.")
@click.option("--platform", "platforms", metavar="LIST", help="For example linux/arm64. Default: the engine's own.")
@click.option("--builder", metavar="NAME", default="", help="Any builder of `docker buildx ls`: remote, several nodes.")
@click.option("--secret", "secrets", multiple=True, metavar="id=...,src=...", help="ca: certificates; pip: pip.conf.")
@click.option(
    "--network", metavar="MODE", default="", help="For the build's commands; `host` for an engine without one."
)
@click.option("--build-context", "build_contexts", multiple=True, metavar="NAME=SOURCE", help="Handed to buildx.")
@click.option(
    "--cache-from", multiple=True, metavar="CACHE", help="Layer cache to read, for example type=registry,ref=..."
)
@click.option("--cache-to", multiple=True, metavar="CACHE", help="Layer cache to write.")
@click.option(
    "--sccache", is_flag=True, help="Share compilations by sccache, with the SCCACHE_... of this environment."
)
@click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Compilations at a time. Default: by the memory there.")
@click.option(
    "--provenance", metavar="MODE", default="", help="Handed to buildx: an attestation, for example mode=max."
)
@click.option("--sbom", metavar="MODE", default="", help="Handed to buildx. A CycloneDX SBOM is in the image anyway.")
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
@JSON
def build(
    variant: str | None,
    into: str,
    output: Path | None,
    platforms: str | None,
    dry_run: bool,
    print_bake: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Build a patched vLLM as an image that carries its proof.

    The engine is asked first whether it can; then `docker buildx build` runs, and its exit status is ours.
    """
    from fp4patch.report import image as report
    from fp4patch.verbs import build as verb

    if print_bake:
        click.echo(verb.print_bake(), nl=False)
        return
    if output and into == "push":
        raise click.UsageError("--output writes files; --push takes an image")
    if into == "push" and not options["tags"]:
        raise click.UsageError("--push needs a name: --tag REGISTRY/NAME:TAG")
    asked = verb.Options(
        variant=variant,
        outcome=verb.outcome(into, output),
        output=output,
        platforms=tuple(part for part in (platforms or "").split(",") if part),
        **options,
    )
    if dry_run:
        planned = verb.dry_run(asked)
        emit(report.dry_run_document(planned)) if as_json else click.echo(report.dry_run_script(planned), nl=False)
        return
    try:
        built = verb.build(
            asked,
            progress="auto" if sys.stderr.isatty() else "plain",
            on_note=lambda note: click.echo(f"note: {note}", err=True),
        )
    except verb.BuildFailedError as failed:
        from fp4patch.report import document, terminal

        if as_json:
            emit(document.error_document(failed))
        show(terminal.error(failed), err=True)
        raise click.exceptions.Exit(failed.status) from None
    emit(report.built_document(built)) if as_json else show(report.built_text(built))


@click.command()
@click.argument("image")
@click.option("--receipt", is_flag=True, help="Print the digest of the receipts alone.")
@JSON
def inspect(image: str, receipt: bool, as_json: bool) -> None:
    """Check the labels and the proof of an IMAGE.

    They are read without running the image, and compared with each other.
    IMAGE is one of the engine's, or a folder that `fp4patch build --output` wrote.
    """
    from fp4patch.report import image as report
    from fp4patch.verbs import inspect as verb

    found = verb.inspect(image)
    if receipt:
        click.echo(found.receipt)
    elif as_json:
        emit(report.inspection_document(found))
    else:
        show(report.inspection_text(found))
    if found.verdict.failed:
        raise click.exceptions.Exit(EXIT_REFUSED)
