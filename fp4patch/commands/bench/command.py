"""Options of ``bench``."""

from pathlib import Path

import click

from fp4patch.commands.common import CUDA_ROOT, EXIT_REFUSED, FILE, FOLDER, JSON, PLACE, emit, show, waiting, write


@click.command()
@click.argument("trees", metavar="[TREE...]", nargs=-1, type=PLACE)
@click.option("--from", "measured", type=FILE, help="Show the results in this file.")
@click.option(
    "--build-only", type=FOLDER, metavar="DIR", help="Write the program and a script that runs it, for another machine."
)
@click.option("--gpu-arch", metavar="ARCH", help="With --build-only: architecture of the GPU, such as sm_121.")
@click.option("--chart", type=FILE, metavar="FILE.svg", help="Write a bar chart to this file.")
@CUDA_ROOT
@JSON
def bench(
    trees: tuple[Path, ...],
    measured: Path | None,
    build_only: Path | None,
    gpu_arch: str | None,
    chart: Path | None,
    cuda_root: Path | None,
    as_json: bool,
) -> None:
    """Measure the conversion to E2M1 in software on a GPU.

    Bench checks the output of every encoder for all 2^32 inputs. Then it measures the encoders, and each TREE before
    and after its patches. For a GPU in another machine, use --build-only, run the script there, and use --from here.
    """
    from fp4patch.commands.bench import run as verb
    from fp4patch.commands.bench import text as report

    if (build_only is None) != (gpu_arch is None):
        raise click.UsageError("--build-only and --gpu-arch go together")
    if measured and (trees or build_only):
        raise click.UsageError("--from shows what was measured; it takes no TREE and builds nothing")
    if build_only and gpu_arch:
        if chart or as_json:
            raise click.UsageError("--build-only measures nothing: --chart and --json go with --from")
        built = verb.build(trees, build_only, gpu_arch, cuda_root=cuda_root, on_wait=waiting)
        for note in built.notes:
            click.echo(note, err=True)
        click.echo(f"run {built.folder / verb.RUNNER} on a machine with a GPU of {built.arch}")
        return
    found = verb.read(measured) if measured else verb.bench(trees, cuda_root=cuda_root, on_wait=waiting)
    emit(found) if as_json else show(report.table(found))
    if chart:
        write(chart, report.chart(found))
        click.echo(f"chart: {chart}", err=True)
    if found.verdict.failed:
        raise click.exceptions.Exit(EXIT_REFUSED)
