"""The command ``fp4patch features``: FP4 instructions that a compiler supports, before anything is built with it."""

from pathlib import Path

import click

from fp4patch.commands.common import FOLDER, emit, json_option, show, stderr


@click.command()
@click.option(
    "--toolkit",
    "releases",
    metavar="RELEASE",
    multiple=True,
    help="Fetch the ptxas of this CUDA release: 12.9, 13.0.88, or all. Repeatable.",
)
@click.option(
    "--cuda-root",
    "cuda_roots",
    type=FOLDER,
    multiple=True,
    help="CUDA toolkit on this machine. Repeatable. Default: that of `fp4patch verify`.",
)
@click.option(
    "--target",
    "targets",
    metavar="LIST",
    help="For example sm_120a,sm_121a. Default: all that ptxas supports, from sm_90 on.",
)
@click.option(
    "--feature", "patterns", metavar="TEXT", multiple=True, help="Only features whose name contains TEXT. Repeatable."
)
@click.option(
    "--ptx-version",
    "isa",
    metavar="VERSION",
    help="PTX version of the probes. Default: the newest that ptxas supports.",
)
@click.option("--jobs", "-j", metavar="N", type=click.IntRange(1, 64), help="Targets at a time. Default: one per core.")
@click.option("--details", is_flag=True, help="Print PTX, machine code and the messages of ptxas in full.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables instead of text.")
@json_option("fp4patch.catalog.feature:FeatureReport")
def features(
    releases: tuple[str, ...],
    cuda_roots: tuple[Path, ...],
    targets: str | None,
    patterns: tuple[str, ...],
    isa: str | None,
    jobs: int | None,
    details: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Show the FP4 instructions that ptxas supports, per target.

    Each instruction is refused, in hardware, or emulated. Features assembles it with operands from memory and searches
    the machine code for it. A GPU is not needed.
    """
    from fp4patch.commands import progress
    from fp4patch.commands.features import run as verb
    from fp4patch.commands.features import text as report

    if sum((details, as_markdown, as_json)) > 1:
        raise click.UsageError("--details, --markdown and --json exclude each other")
    console = stderr()
    with progress.shown(console, progress.BYTES) as tick:
        assemblers = verb.assemblers(releases, cuda_roots, on_download=tick)
    with progress.shown(console, progress.STEPS) as tick:
        found = verb.probe(assemblers, targets=targets, patterns=patterns, isa=isa, jobs=jobs, on_progress=tick)
    if as_json:
        emit(found)
    elif as_markdown:
        click.echo(report.markdown(found), nl=False)
    else:
        show(report.details(found) if details else report.table(found))
