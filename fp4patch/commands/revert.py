"""``fp4patch revert``: give trees their pristine bytes back."""

from pathlib import Path

import click

from fp4patch.commands.apply import report
from fp4patch.commands.options import TREES, json_option
from fp4patch.tree import apply as trees_


@click.command(epilog="Example: fp4patch revert vllm")
@TREES
@json_option("fp4patch.tree.apply:Applied")
def revert(trees: tuple[Path, ...], as_json: bool) -> None:
    """Restore the pristine bytes of all TREEs, or of none.

    The receipts are removed too.
    """
    report(trees_.revert(trees), diff=False, as_json=as_json)
