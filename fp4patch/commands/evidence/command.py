"""The command ``evidence``: proofs for others, a program for a GPU, and the reading of its results."""

from pathlib import Path

import click

from fp4patch.commands.options import FILE, FOLDER, PLACE, arch_names, json_option, variant_option
from fp4patch.console import emit, progress_bar
from fp4patch.core.errors import EXIT_REFUSED
from fp4patch.core.wording import counted


@click.command(epilog="Example: fp4patch evidence --variant next3 -o evidence cutlass")
@click.argument("trees", metavar="[TREE...]", nargs=-1, type=PLACE)
@variant_option(required=False)
@click.option("--output", "-o", type=FOLDER, metavar="DIR", help="Directory for the files.")
@click.option(
    "--arch",
    default="",
    metavar="LIST",
    shell_complete=arch_names,
    help="Targets. Default: those of the variant, without those of a family (f).",
)
@click.option(
    "--check",
    "result",
    type=FILE,
    metavar="FILE",
    help="Report what the JSON file of a GPU supports, and write nothing.",
)
@json_option("fp4patch.commands.evidence.run:Evidence", "fp4patch.commands.evidence.gpu_file:Checked")
def evidence(
    trees: tuple[Path, ...], variant: str | None, output: Path | None, arch: str, result: Path | None, as_json: bool
) -> None:
    """Write a variant's proofs, with a program for a GPU.

    Evidence verifies each patched TREE and executes its machine code. Then it writes the report and a program: its
    owner's GPU runs every conversion without CUDA toolkit and Python, for all inputs, but with four of 256 random bytes
    for each float32 that is rounded stochastically. CUDA_HOME names the toolkit.
    """
    from fp4patch.commands.evidence import gpu_file, run

    if result:
        if trees or variant or output or arch:
            raise click.UsageError("--check reads one file: it takes no TREE, --variant, --output or --arch")
        checked = gpu_file.check(result)
        emit(checked) if as_json else click.echo("\n".join(gpu_file.lines(checked)))
        if checked.verdict.failed:
            raise click.exceptions.Exit(EXIT_REFUSED)
        return
    if not (trees and variant and output):
        raise click.UsageError("name a TREE, --variant and --output, or a file with --check")
    with progress_bar() as tick:
        done = run.evidence(trees, output, variant, arch, tick)
    if as_json:
        emit(done)
        return
    click.echo(f"{done.kit.title}: {counted(len(done.files), 'file')} in {done.folder}")
    for name, count in done.kit.conversions.items():
        click.echo(f"  {name}: {counted(count, 'conversion')} in the program")
    for machine, why in done.no_program.items():
        click.echo(f"  no program for {machine}: {why}")
