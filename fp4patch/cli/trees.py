"""The commands that fetch and change trees, and that list the available patches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fp4patch.cli.common import EXIT_REFUSED, JSON, TREES, emit, show, stderr, telling, variant_option, waiting
from fp4patch.errors import ManifestError

if TYPE_CHECKING:
    from fp4patch.model.apply import Applied


@click.command("list")
@click.argument("what", type=click.Choice(["variants", "patches", "targets"]), required=False)
@click.option("--matrix", is_flag=True, help="With patches: what each comes to on each upstream release, as recorded.")
@JSON
def list_(what: str | None, matrix: bool, as_json: bool) -> None:
    """List variants, patches and targets."""
    from fp4patch.catalog.manifest import load
    from fp4patch.report import catalog as report

    catalog = load()
    if matrix:
        if what != "patches":
            raise click.UsageError("--matrix goes with `list patches`")
        try:
            recorded = json.loads((catalog.root / report.MATRIX).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ManifestError(f"{report.MATRIX}: {error}", help="`python tools/watch.py` writes it") from error
        emit(recorded) if as_json else show(report.matrix_table(recorded))
        return
    document = report.list_document(catalog, what)
    emit(document) if as_json else show(report.list_table(catalog, what))


@click.command("show")
@click.argument("name")
@JSON
def show_name(name: str, as_json: bool) -> None:
    """Describe one variant, patch or target.

    Prints why it exists, where that is written, and what it applies to.
    """
    from fp4patch.catalog.manifest import load
    from fp4patch.report import catalog as report

    document = report.show_document(load(), name)
    emit(document) if as_json else show(report.show_text(document))


@click.command()
@click.argument("release", metavar="TARGET==VERSION")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--whole", is_flag=True, help="Fetch by git where the archive holds only a part of the release.")
@click.option(
    "--git",
    "git_url",
    metavar="URL[#REF]",
    help="Clone from this repository instead: a URL or a path. REF is a tag, branch or commit.",
)
@JSON
def fetch(release: str, directory: Path, git_url: str | None, whole: bool, as_json: bool) -> None:
    """Fetch the pristine tree of a release into DIRECTORY.

    It comes from a pinned, SHA-256-checked archive of the package index that pip is configured for where one holds it,
    else by git from the upstream repository.
    """
    from fp4patch.report import catalog as report
    from fp4patch.report import progress
    from fp4patch.verbs import fetch as verb

    shown = progress.download(stderr())
    fetched = verb.fetch(release, directory, git_url, shown, show_progress=sys.stderr.isatty(), whole=whole)
    emit(report.fetch_document(fetched)) if as_json else show(report.fetch_text(fetched))


@click.command()
@TREES
@variant_option(required=False)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--check", is_flag=True, help="Like --dry-run; exit 1 if anything would change.")
@click.option(
    "--diff", is_flag=True, help="Also print the changes as a unified diff. Combine with --dry-run to only look."
)
@click.option("--why", is_flag=True, help="Also say why edits that have nothing to do have nothing to do.")
@click.option("--target-version", metavar="V", help="The upstream version, where the tree says none or a wrong one.")
@JSON
def apply(
    trees: tuple[Path, ...],
    variant: str | None,
    dry_run: bool,
    check: bool,
    diff: bool,
    why: bool,
    target_version: str | None,
    as_json: bool,
) -> None:
    """Apply a variant's patches to all TREEs, or to none.

    Without --variant, the variant that is applied already is brought up to date.
    """
    from fp4patch.report import apply as report
    from fp4patch.verbs import apply as verb

    applied = verb.apply(trees, variant, write=not (dry_run or check), said_version=target_version, on_wait=waiting)
    with telling(_what_became(applied)):
        emit(report.document(applied, diff=diff)) if as_json else show(report.text(applied, diff=diff, why=why))
    if applied.problems and not as_json:
        show(report.refusal(applied), err=True)
    if applied.refused or (check and applied.changed):
        raise click.exceptions.Exit(EXIT_REFUSED)


@click.command()
@TREES
@JSON
def status(trees: tuple[Path, ...], as_json: bool) -> None:
    """Report the state of each file and patch of a TREE.

    States: pristine, applied, outdated, upstreamed, not-needed, drifted, foreign.
    """
    from fp4patch.report import status as report
    from fp4patch.verbs import status as verb

    found = verb.status(trees, on_wait=waiting)
    emit(report.document(found)) if as_json else show(report.text(found))


@click.command()
@TREES
@JSON
def revert(trees: tuple[Path, ...], as_json: bool) -> None:
    """Give all TREEs their pristine bytes back, or none.

    No trace of fp4patch is left.
    """
    from fp4patch.report import apply as report
    from fp4patch.verbs import apply as verb

    reverted = verb.revert(trees, on_wait=waiting)
    with telling(_what_became(reverted)):
        emit(report.document(reverted, diff=False)) if as_json else show(report.text(reverted, diff=False))
    if reverted.problems and not as_json:
        show(report.refusal(reverted), err=True)
    if reverted.refused:
        raise click.exceptions.Exit(EXIT_REFUSED)


def _what_became(applied: Applied) -> str:
    if applied.written and applied.changed:
        return f"the {applied.verb} itself was done, and `fp4patch status` says what the trees are"
    return "no tree was changed"
