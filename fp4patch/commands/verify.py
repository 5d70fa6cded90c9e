"""Options of ``verify``."""

from pathlib import Path

import click

from fp4patch.commands.options import FILE, JOBS, TREES, TRUST_TREE, arch_names, schema_option, variant_option
from fp4patch.console import as_json, show, write
from fp4patch.core.errors import EXIT_REFUSED


@click.command(epilog="Example: fp4patch verify --report page.html vllm")
@TREES
@variant_option(required=False)
@click.option(
    "--arch",
    "archs",
    metavar="LIST",
    shell_complete=arch_names,
    help="Targets, for example sm_120a,sm_121a. Default: those of the variant.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the JSON document to this file; - is stdout.",
)
@schema_option("fp4patch.proof.result:VerifyReport", "fp4patch.proof.result:VerifyReports")
@click.option(
    "--report", "report_file", type=FILE, metavar="FILE.html", help="Write a page with both listings of each probe."
)
@click.option(
    "--torch-include",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="PyTorch's headers, for vLLM's own source files.",
)
@JOBS
@click.option(
    "--execute/--no-execute",
    default=True,
    show_default=True,
    help="Execute the machine code on the host, for all inputs.",
)
@click.option("--all", "every_probe", is_flag=True, help="Also compile the slow probes: a whole NVFP4 GEMM (minutes).")
@click.option("--layers", is_flag=True, help="Also execute whole layers, with vLLM's own host code (minutes).")
@TRUST_TREE
@click.option("--strict", is_flag=True, help="Fail if no check judges a changed line of these targets.")
@click.option("--details", is_flag=True, help="Print all rows, executions and probes that did not run.")
def verify(
    trees: tuple[Path, ...],
    variant: str | None,
    archs: str | None,
    json_file: Path | None,
    report_file: Path | None,
    torch_include: Path | None,
    jobs: int | None,
    execute: bool,
    every_probe: bool,
    layers: bool,
    strict: bool,
    details: bool,
) -> None:
    """Compile the probes of a patched TREE and check the code.

    Verify compiles each probe from the patched and from the pristine source, disassembles both, and checks the rules of
    the variant, by default of the one that is applied. The toolkit is CUDA_HOME, else the wheels of `pip install
    'fp4patch[cuda]'`, else the nvcc on PATH, else /usr/local/cuda.
    """
    from fp4patch.commands.verify_text import VerifyText
    from fp4patch.console import progress_bar
    from fp4patch.proof.result import whole
    from fp4patch.proof.verify import VerifyRequest, verify_trees

    request = VerifyRequest(
        variant=variant,
        archs=archs,
        torch_include=torch_include,
        jobs=jobs,
        execute=execute,
        every_probe=every_probe,
        layers=layers,
        strict=strict,
    )
    with progress_bar() as tick:
        reports = verify_trees(trees, request, on_progress=tick)
    document = whole(reports)
    to_stdout = str(json_file) == "-"
    for report in () if to_stdout else reports:  # before any file is written: an error in writing must not hide it
        show(VerifyText(report, details))
    if json_file:
        written = as_json(document) + "\n"
        click.echo(written, nl=False) if to_stdout else write(json_file, written)
    if report_file:
        from fp4patch.commands.verify_page import page

        write(report_file, page(reports))
        click.echo(f"report: {report_file}", err=True)
    if document.verdict.failed:
        raise click.exceptions.Exit(EXIT_REFUSED)
