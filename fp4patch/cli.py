"""The command line: parse, call a verb, print what it returned, choose the exit status; nothing else.

Verbs and their libraries are imported when they are called, so that ``fp4patch -h`` is quick.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import click

from fp4patch import __version__
from fp4patch.errors import Fp4PatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

Command = TypeVar("Command", bound="Callable[..., object]")

EXIT_REFUSED, EXIT_BUG, EXIT_INTERRUPTED = 1, 3, 130

TREES = click.argument("trees", metavar="TREE...", nargs=-1, required=True, type=click.Path(path_type=Path))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout instead of text.")


def complete_names(folder: str, pattern: str):  # type: ignore[no-untyped-def]  # click's own callback protocol
    """Shell completion from the names on disk, without reading the files."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        from fp4patch.catalog.manifest import data_root

        names = (path.stem for path in (data_root() / folder).glob(pattern))
        return sorted(name for name in names if name.startswith(incomplete))

    return complete


def variant_option(*, required: bool) -> Callable[[Command], Command]:
    """``--variant NAME``, completed in the shell."""
    return click.option(
        "--variant",
        metavar="NAME",
        required=required,
        shell_complete=complete_names("variants", "*.toml"),
        help="What to build: see `fp4patch list variants`.",
    )


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="fp4patch")
@click.option("--debug", is_flag=True, help="Show a traceback where fp4patch itself fails.")
def cli(debug: bool) -> None:
    """Patch CUTLASS, vLLM and FlashInfer sources for NVFP4 on SM120 and SM121, and prove it in the machine code."""


@cli.command("list")
@click.argument("what", type=click.Choice(["variants", "patches", "targets"]), required=False)
@click.option("--matrix", is_flag=True, help="With patches: what each comes to on each upstream release, as recorded.")
@JSON
def list_(what: str | None, matrix: bool, as_json: bool) -> None:
    """What there is to apply, and to what."""
    from fp4patch.catalog.manifest import load
    from fp4patch.report import catalog as report

    catalog = load()
    if matrix:
        if what != "patches":
            raise click.UsageError("--matrix goes with `list patches`")
        recorded = json.loads((catalog.root / report.MATRIX).read_text(encoding="utf-8"))
        emit(recorded) if as_json else show(report.matrix_table(recorded))
        return
    document = report.list_document(catalog, what)
    emit(document) if as_json else show(report.list_table(catalog, what))


@cli.command("show")
@click.argument("name")
@JSON
def show_name(name: str, as_json: bool) -> None:
    """All about one variant, patch or target: why it exists, where that is written, what it applies to."""
    from fp4patch.catalog.manifest import load
    from fp4patch.report import catalog as report

    document = report.show_document(load(), name)
    emit(document) if as_json else show(report.show_text(document))


@cli.command()
@click.argument("release", metavar="TARGET==VERSION")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--git", "git_url", metavar="URL", help="Clone from this repository instead (an URL or a path).")
@JSON
def fetch(release: str, directory: Path, git_url: str | None, as_json: bool) -> None:
    """Put the pristine tree of a release into DIRECTORY.

    From a pinned, SHA-256-checked archive of the package index that pip is configured for where one holds it, else
    by git from the upstream repository.
    """
    from fp4patch.report import catalog as report
    from fp4patch.report import progress
    from fp4patch.verbs import fetch as verb

    fetched = verb.fetch(release, directory, git_url, progress.download(stderr()), show_progress=sys.stderr.isatty())
    emit(report.fetch_document(fetched)) if as_json else show(report.fetch_text(fetched))


@cli.command()
@TREES
@variant_option(required=False)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--check", is_flag=True, help="Like --dry-run; exit 1 if anything would change.")
@click.option(
    "--diff", is_flag=True, help="Also print the changes as a unified diff. Combine with --dry-run to only look."
)
@click.option("--target-version", metavar="V", help="The upstream version, where the tree says none or a wrong one.")
@JSON
def apply(
    trees: tuple[Path, ...],
    variant: str | None,
    dry_run: bool,
    check: bool,
    diff: bool,
    target_version: str | None,
    as_json: bool,
) -> None:
    """Bring each TREE to the variant's state; all of them, or none.

    Without --variant, the variant that is applied already is brought up to date.
    """
    from fp4patch.report import apply as report
    from fp4patch.verbs import apply as verb

    applied = verb.apply(trees, variant, write=not (dry_run or check), said_version=target_version, on_wait=waiting)
    emit(report.document(applied, diff=diff)) if as_json else show(report.text(applied, diff=diff))
    if applied.problems and not as_json:
        show(report.refusal(applied), err=True)
    if applied.refused or (check and applied.changed):
        raise click.exceptions.Exit(EXIT_REFUSED)


@cli.command()
@TREES
@JSON
def status(trees: tuple[Path, ...], as_json: bool) -> None:
    """The state of each file and patch: pristine, applied, outdated, upstreamed, not-needed, drifted, foreign."""
    from fp4patch.report import status as report
    from fp4patch.verbs import status as verb

    found = verb.status(trees, on_wait=waiting)
    emit(report.document(found)) if as_json else show(report.text(found))


@cli.command()
@TREES
@JSON
def revert(trees: tuple[Path, ...], as_json: bool) -> None:
    """Give each TREE its pristine bytes back, and leave no trace; all of them, or none."""
    from fp4patch.report import apply as report
    from fp4patch.verbs import apply as verb

    reverted = verb.revert(trees, on_wait=waiting)
    emit(report.document(reverted, diff=False)) if as_json else show(report.text(reverted, diff=False))
    if reverted.problems and not as_json:
        show(report.refusal(reverted), err=True)
    if reverted.refused:
        raise click.exceptions.Exit(EXIT_REFUSED)


@cli.command()
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
@click.option("--cuda-root", type=click.Path(path_type=Path, file_okay=False), help="The CUDA toolkit to compile with.")
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
) -> None:
    """Compile probes from the patched TREE and from its pristine source, and judge the machine code.

    The toolkit is --cuda-root, else CUDA_HOME, else the wheels of `pip install 'fp4patch[cuda]'`, else nvcc on PATH.
    """
    from fp4patch.report import document, html, progress, terminal
    from fp4patch.verbs import verify as verb

    with progress.probes(stderr()) as tick:
        reports = verb.verify(
            trees,
            variant,
            archs=arch,
            cuda_root=cuda_root,
            torch_include=torch_include,
            jobs=jobs,
            on_wait=waiting,
            on_progress=tick,
            numerics=numerics,
        )
    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file:
        text = json.dumps(document.verify_document(reports), indent=2) + "\n"
        click.echo(text, nl=False) if to_stdout else write(json_file, text)
    for report in () if to_stdout else reports:
        show(terminal.verify_table(report))
    if report_file:
        write(report_file, html.page(reports))
        click.echo(f"report: {report_file}", err=True)
    if any(report.verdict.failed for report in reports):
        raise click.exceptions.Exit(EXIT_REFUSED)


@cli.command()
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
@click.option("--cuda-root", type=click.Path(path_type=Path, file_okay=False), help="The CUDA toolkit to compile with.")
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
    """Measure float → E2M1 in software on this machine's GPU: the encoders, and each TREE before and after its patches.

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


# --- printing --------------------------------------------------------------------------------------------------------


def emit(document: dict[str, Any]) -> None:
    """A JSON document on stdout."""
    click.echo(json.dumps(document, indent=2))


def show(renderable: RenderableType, *, err: bool = False) -> None:
    """Text for people, as wide as the terminal is."""
    (stderr() if err else _console(sys.stdout)).print(renderable)


def stderr() -> Console:
    """The console for messages."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    from rich.console import Console

    # A pipe has no width: text in it must not be cut.
    width = None if file.isatty() else int(os.environ.get("COLUMNS") or 120)
    return Console(file=file, width=width, highlight=False, soft_wrap=not file.isatty())


def waiting(root: Path) -> None:
    """Said once when another fp4patch holds the tree."""
    click.echo(f"waiting for another fp4patch that works on {root}", err=True)


def write(path: Path, text: str) -> None:
    """A file for the user, or one clear error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Fp4PatchError(f"cannot write {path}: {error.strerror}", help="name another file") from error


# --- leaving ---------------------------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Run the command line and exit with its status; see :mod:`fp4patch.errors` for what each means."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit status for these arguments; every error becomes one message here."""
    try:
        return int(cli.main(arguments, prog_name="fp4patch", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Fp4PatchError as error:
        from fp4patch.report import terminal

        if "--json" in arguments and arguments[0] != "verify":
            from fp4patch.report import document

            emit(document.error_document(error))
        show(terminal.error(error), err=True)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has left; nothing is wrong
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - closed by the exit, which would else fail on flush
        return 0
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        else:
            click.echo(f"fp4patch failed: {type(error).__name__}: {error}", err=True)
            click.echo(
                "this is a bug of ours: please report it with the output of the same command after `fp4patch --debug`",
                err=True,
            )
        return EXIT_BUG
