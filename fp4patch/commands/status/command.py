"""Options of ``status``."""

from pathlib import Path

import click

from fp4patch.commands.common import TREES, emit, json_option, show, waiting


@click.command()
@TREES
@json_option("fp4patch.tree.status_report:OneTree", "fp4patch.tree.status_report:SeveralTrees")
def status(trees: tuple[Path, ...], as_json: bool) -> None:
    """Report the state of each file and patch of a TREE.

    The states are pristine, applied, outdated, upstreamed, not-needed, reversed, drifted and foreign.
    """
    from fp4patch.commands.status import text as report
    from fp4patch.tree import status as verb
    from fp4patch.tree.status_report import whole

    found = verb.status(trees, on_wait=waiting)
    emit(whole(found)) if as_json else show(report.text(found))
