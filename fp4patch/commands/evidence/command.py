"""Options of ``evidence``."""

from pathlib import Path

import click

from fp4patch.commands.options import CUDA_ROOT, FILE, FOLDER, JOBS, PLACE, json_option, variant_option
from fp4patch.console import emit, waiting
from fp4patch.core.errors import EXIT_REFUSED


@click.command()
@click.argument("trees", metavar="[TREE...]", nargs=-1, type=PLACE)
@variant_option(required=False)
@click.option("--output", "-o", type=FOLDER, metavar="DIR", help="Directory for the files.")
@click.option("--arch", metavar="LIST", help="Targets. Default: those of the variant, without those of a family (f).")
@CUDA_ROOT
@JOBS
@click.option(
    "--check",
    "checked",
    type=FILE,
    metavar="FILE",
    help="Report what the JSON file of a GPU supports, and write nothing.",
)
@json_option("fp4patch.commands.evidence.result:Evidence", "fp4patch.commands.evidence.result:Checked")
def evidence(
    trees: tuple[Path, ...],
    variant: str | None,
    output: Path | None,
    arch: str | None,
    cuda_root: Path | None,
    jobs: int | None,
    checked: Path | None,
    as_json: bool,
) -> None:
    """Write a variant's proofs, with a program for a GPU.

    Evidence verifies each patched TREE and executes its machine code. Then it writes the listings, the counts, the
    versions and a program: its owner's GPU runs every conversion without CUDA toolkit and Python, for all inputs, but
    with four of 256 random bytes for each float32 that is rounded stochastically.
    """
    from fp4patch.catalog.manifest import load
    from fp4patch.commands.evidence import run as verb
    from fp4patch.commands.evidence import text
    from fp4patch.console import progress_bar
    from fp4patch.proof.verify import VerifyRequest

    if checked:
        if trees or variant or output or arch:
            raise click.UsageError("--check reads one file: it takes no TREE, --variant, --output or --arch")
        found = verb.check(checked)
        emit(found) if as_json else click.echo(text.checked(found))
        if found.verdict.failed:
            raise click.exceptions.Exit(EXIT_REFUSED)
        return
    if not (trees and variant and output):
        raise click.UsageError("name a TREE, --variant and --output, or a file with --check")
    archs = arch or verb.default_archs(load().variant(variant))
    options = VerifyRequest(variant=variant, archs=archs, cuda_root=cuda_root, jobs=jobs, execute=True)
    with progress_bar("steps") as tick:
        done = verb.evidence(trees, output, options, on_wait=waiting, on_progress=tick)
    emit(done) if as_json else click.echo(text.summary(done))
