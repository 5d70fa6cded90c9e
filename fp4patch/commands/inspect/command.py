"""Options of ``inspect``."""

from __future__ import annotations

import click

from fp4patch.commands.common import EXIT_REFUSED, JSON, emit, show


@click.command()
@click.argument("image")
@click.option("--receipt", is_flag=True, help="Print the digest of the receipts alone.")
@JSON
def inspect(image: str, receipt: bool, as_json: bool) -> None:
    """Check the labels and the proof of an IMAGE.

    They are read without running the image, and compared with each other.
    IMAGE is one of the engine's, or a directory that `fp4patch build --output` wrote.
    """
    from fp4patch.commands.inspect import run as verb
    from fp4patch.commands.inspect import text as report

    found = verb.inspect(image)
    if receipt:
        click.echo(found.receipt)
    elif as_json:
        emit(found)
    else:
        show(report.inspection_text(found))
    if found.verdict.failed:
        raise click.exceptions.Exit(EXIT_REFUSED)
