"""The command ``export``: patches as files for upstream and for package managers."""

import os
from pathlib import Path

import click

from fp4patch.commands.options import FILE, FOLDER, PLACE, json_option, variant_option
from fp4patch.console import emit, waiting, write
from fp4patch.core.errors import Fp4PatchError, UsageError

AUTHOR = "fp4patch <fp4patch@localhost>"


@click.command()
@click.argument("tree", metavar="TREE", type=PLACE)
@variant_option(required=True)
@click.option("--patch", "names", multiple=True, metavar="NAME", help="Export only this patch. Repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["git-am", "quilt", "diff", "conan", "nix"]),
    default="git-am",
    help="git-am (default), quilt or diff; conan and nix add the file that they read.",
)
@click.option(
    "--output", "-o", type=FOLDER, metavar="DIR", help="Write the files to this directory. Default: print them."
)
@click.option(
    "--evidence",
    type=FILE,
    metavar="FILE",
    help="JSON of `fp4patch verify` on the same tree; the messages get its counts.",
)
@click.option("--author", default=AUTHOR, metavar="NAME", help="Name and address of the author (git-am, quilt).")
@click.option("--target-version", metavar="V", help="Upstream version, if the tree states none or a wrong one.")
@json_option("fp4patch.commands.export.result:Series")
def export(
    tree: Path,
    variant: str,
    names: tuple[str, ...],
    form: str,
    output: Path | None,
    evidence: Path | None,
    author: str,
    target_version: str | None,
    as_json: bool,
) -> None:
    """Export the patches of a variant as changes for upstream.

    Each patch becomes one change against the pristine TREE, in upstream's names and formatting. The TREE is not
    changed. The same input gives the same bytes: mails have the date of SOURCE_DATE_EPOCH, else a date in 1970.
    """
    from fp4patch.commands.export import run as verb
    from fp4patch.commands.export import text as report

    epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not epoch.isdecimal():
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}, which is not a number of seconds")
    if "\n" in author or "<" not in author:
        raise UsageError(f"{author!r} is not an author", help='for example --author "Ada Lovelace <ada@example.org>"')
    if output and output.is_dir() and any(output.iterdir()):
        raise Fp4PatchError(f"{output} is not empty", help="name another directory with --output")
    exported = verb.export(tree, variant, names, evidence, target_version, waiting)
    files = report.files(exported, form, author, int(epoch))
    if output:
        for name, text in files.items():
            write(output / name, text.encode("utf-8", "surrogateescape"))
    if as_json:
        emit(exported.series(files))
    elif output:
        click.echo(f"{report.summary(exported)}\n  written to {output}")
    else:
        click.echo("".join(files.values()).encode("utf-8", "surrogateescape"), nl=False)
