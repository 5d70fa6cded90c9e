"""The command for a configured build: the object files that a patch affects, and their GPUs."""

from pathlib import Path

import click

from fp4patch.commands.common import TREES, emit, json_option, show, waiting


@click.command()
@TREES
@click.option(
    "--build",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    metavar="DIR",
    help="Build directory, configured by CMake with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON.",
)
@click.option(
    "--for", "gpus", metavar="GPUS", help="Exit 1 if a conversion would not run on these GPUs, for example sm_121."
)
@click.option("--includes", is_flag=True, help="Exit 1 if a file that a source includes in quotes is missing.")
@click.option("--names", is_flag=True, help="Print only names, one per line, for ninja.")
@json_option("fp4patch.commands.objects.result:Objects")
def objects(trees: tuple[Path, ...], build: Path, gpus: str | None, includes: bool, names: bool, as_json: bool) -> None:
    """List the object files of a build that a patch affects.

    The build must be configured. Object files that only contain a conversion to E2M1 of a TREE are listed too.
    This command compiles them first: `fp4patch objects --build DIR --names TREE | xargs ninja -C DIR`.
    """
    from fp4patch.commands.objects import run as verb
    from fp4patch.commands.objects import text as report
    from fp4patch.commands.objects.result import Objects
    from fp4patch.core.arch import requested

    if names and as_json:
        raise click.UsageError("--names and --json exclude each other")
    asked = requested(gpus, "for example --for sm_121") if gpus else ()
    found = verb.objects(build, trees, asked, on_wait=waiting)
    if includes:
        verb.check_includes(build)
    if asked:
        verb.check(found, asked)
    if names:
        for one in found:
            click.echo(one.name)
    elif as_json:
        emit(Objects(found))
    else:
        show(report.table(found))
