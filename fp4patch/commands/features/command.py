"""The command ``fp4patch features``: FP4 instructions that a compiler supports, before anything is built with it."""

from __future__ import annotations

from pathlib import Path

import click

from fp4patch.commands.common import JSON, emit, show, stderr


@click.command()
@click.option(
    "--toolkit",
    "releases",
    metavar="RELEASE",
    multiple=True,
    help="Fetch this toolkit's ptxas from the package index: 12.9, 13.0.88, or all. Repeatable, side by side.",
)
@click.option(
    "--cuda-root",
    "cuda_roots",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    help="A toolkit on this machine. Repeatable. Default: the one that `fp4patch verify` would take.",
)
@click.option("--target", metavar="LIST", help="For example sm_120a,sm_121a. Default: all from sm_90 that it knows.")
@click.option(
    "--feature", "patterns", metavar="TEXT", multiple=True, help="Only features with this in their name. Repeatable."
)
@click.option("--ptx-version", metavar="VERSION", help="Write the probes in this PTX. Default: the newest it takes.")
@click.option("--jobs", "-j", type=click.IntRange(1, 64), help="Targets at a time. Default: one for each core.")
@click.option("--details", is_flag=True, help="PTX and machine code in full, and the assembler's own words.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables instead of text.")
@JSON
def features(
    releases: tuple[str, ...],
    cuda_roots: tuple[Path, ...],
    target: str | None,
    patterns: tuple[str, ...],
    ptx_version: str | None,
    jobs: int | None,
    details: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Show what ptxas makes of each FP4 instruction.

    Target by target: refused, in hardware, or emulated.
    Each instruction is assembled with operands from memory and looked up in the machine code; no GPU is needed.
    """
    from fp4patch.commands import progress
    from fp4patch.commands.features import run as verb
    from fp4patch.commands.features import text as report

    if sum((details, as_markdown, as_json)) > 1:
        raise click.UsageError("--details, --markdown and --json exclude each other")
    console = stderr()
    assemblers = verb.assemblers(releases, cuda_roots, on_download=progress.download(console))
    with progress.probes(console) as tick:
        found = verb.probe(assemblers, targets=target, patterns=patterns, isa=ptx_version, jobs=jobs, on_progress=tick)
    if as_json:
        emit(report.document(found))
    elif as_markdown:
        click.echo(report.markdown(found), nl=False)
    else:
        show(report.details(found) if details else report.table(found))
