"""Options of ``apply`` and ``revert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fp4patch.commands.options import TREES, json_option, variant_option
from fp4patch.console import emit, show, telling, waiting
from fp4patch.core.errors import EXIT_REFUSED

if TYPE_CHECKING:
    from fp4patch.commands.apply_run import Applied


@click.command()
@TREES
@variant_option(required=False)
@click.option("--dry-run", is_flag=True, help="Print the changes that apply would make, and make none.")
@click.option("--check", is_flag=True, help="Like --dry-run, and exit 1 if anything would change.")
@click.option("--diff", is_flag=True, help="Also print a unified diff, and why edits have nothing to do.")
@click.option("--target-version", metavar="V", help="Upstream version, if the tree states none or a wrong one.")
@json_option("fp4patch.commands.apply_run:Applied")
def apply(
    trees: tuple[Path, ...],
    variant: str | None,
    dry_run: bool,
    check: bool,
    diff: bool,
    target_version: str | None,
    as_json: bool,
) -> None:
    """Apply a variant's patches to all TREEs, or to none.

    Without --variant, apply updates the variant that the trees already have, and recommends one for pristine trees.
    """
    from fp4patch.commands import apply_run as verb

    applied = verb.apply(trees, variant, write=not (dry_run or check), said_version=target_version, on_wait=waiting)
    _report(applied, diff=diff, as_json=as_json)
    if check and applied.changed:
        raise click.exceptions.Exit(EXIT_REFUSED)


@click.command()
@TREES
@json_option("fp4patch.commands.apply_run:Applied")
def revert(trees: tuple[Path, ...], as_json: bool) -> None:
    """Restore the pristine bytes of all TREEs, or of none.

    The receipts are removed too.
    """
    from fp4patch.commands import apply_run as verb

    _report(verb.revert(trees, on_wait=waiting), diff=False, as_json=as_json)


def _report(applied: Applied, *, diff: bool, as_json: bool) -> None:
    """Print a result, and exit if it is a refusal."""
    from fp4patch.commands import apply_text as report

    done = f"the {applied.verb} itself was done, and `fp4patch status` shows the states of the trees"
    with telling(done if applied.written else "no tree was changed"):
        emit(applied.with_diffs() if diff else applied) if as_json else show(report.text(applied, diff=diff))
    if applied.problems and not as_json:
        show(report.refusal(applied), err=True)
    if applied.refused:
        raise click.exceptions.Exit(EXIT_REFUSED)
