"""The commands that compile: the machine code of a tree, and its speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from fp4patch.cli.common import (
    CUDA_ROOT,
    EXIT_REFUSED,
    JSON,
    TREES,
    emit,
    show,
    stderr,
    variant_option,
    waiting,
    write,
)


@click.command()
@TREES
@variant_option(required=True)
@click.option("--arch", metavar="LIST", help="Architectures, for example sm_120a,sm_121a. Default: the variant's own.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the JSON document there; - is stdout.",
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write the page with the machine code side by side.",
)
@CUDA_ROOT
@click.option(
    "--torch-include",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="PyTorch's include folder, to compile vLLM's own source files. Default: that of an installed PyTorch.",
)
@click.option("--jobs", "-j", type=click.IntRange(1, 64), help="Compilations at a time. Default: one for each core.")
@click.option(
    "--numerics",
    "numerics",
    flag_value="yes",
    default="no",
    help="Also run all 2^32 float inputs through the conversions, on the host and on a CUDA GPU if there is one.",
)
@click.option("--numerics-all", "numerics", flag_value="all", help="The same, with what takes the host some minutes.")
@click.option(
    "--execute/--no-execute",
    default=None,
    help="Run all inputs through the disassembled machine code, on the host. Default: where there is no CUDA GPU.",
)
@click.option("--all", "every_probe", is_flag=True, help="Also what takes minutes: a whole NVFP4 GEMM, for example.")
@click.option("--strict", is_flag=True, help="Fail if a function that the patches touch was not checked.")
def verify(
    trees: tuple[Path, ...],
    variant: str,
    arch: str | None,
    json_file: Path | None,
    report_file: Path | None,
    cuda_root: Path | None,
    torch_include: Path | None,
    jobs: int | None,
    numerics: Literal["no", "yes", "all"],
    execute: bool | None,
    every_probe: bool,
    strict: bool,
) -> None:
    """Compile the probes of a patched TREE and judge the code.

    Each probe is also compiled from the pristine source, and both are disassembled and compared.
    The toolkit is --cuda-root, else CUDA_HOME, else the wheels of `pip install 'fp4patch[cuda]'`, else nvcc on PATH.
    """
    from fp4patch.report import document, html, progress, terminal
    from fp4patch.verbs import verify as verb

    options = verb.Options(
        variant=variant,
        archs=arch,
        cuda_root=cuda_root,
        torch_include=torch_include,
        jobs=jobs,
        numerics=numerics,
        execute=execute,
        every_probe=every_probe,
        strict=strict,
    )
    with progress.probes(stderr()) as tick:
        reports = verb.verify(trees, options, on_wait=waiting, on_progress=tick)
    to_stdout = json_file is not None and str(json_file) == "-"
    for report in (
        () if to_stdout else reports
    ):  # printed before any file is written: an error in writing must not hide it
        show(terminal.verify_table(report))
    if json_file:
        text = json.dumps(document.verify_document(reports), indent=2) + "\n"
        click.echo(text, nl=False) if to_stdout else write(json_file, text)
    if report_file:
        write(report_file, html.page(reports))
        click.echo(f"report: {report_file}", err=True)
    if any(report.verdict.failed for report in reports):
        raise click.exceptions.Exit(EXIT_REFUSED)


@click.command()
@click.argument("trees", metavar="[TREE...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--from", "measured", type=click.Path(path_type=Path, dir_okay=False), help="Show what a program wrote.")
@click.option(
    "--build-only",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the program and a script that runs it there, for another machine.",
)
@click.option("--gpu-arch", metavar="ARCH", help="With --build-only: the GPU's own architecture, for example sm_121.")
@click.option(
    "--chart", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Write a bar chart there."
)
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

    Measures the encoders, and each TREE before and after its patches.
    Every encoder is checked with all 2^32 inputs first. For a GPU elsewhere: --build-only there, --from here.
    """
    from fp4patch.report import bench as report
    from fp4patch.verbs import bench as verb

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
    emit(report.document(found)) if as_json else show(report.table(found))
    if chart:
        write(chart, report.chart(found))
        click.echo(f"chart: {chart}", err=True)
    if found.verdict.failed:
        raise click.exceptions.Exit(EXIT_REFUSED)
