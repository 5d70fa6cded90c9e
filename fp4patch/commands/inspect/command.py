"""Options of ``inspect``."""

import click

from fp4patch.commands.options import NAME, json_option
from fp4patch.console import emit, show
from fp4patch.core.errors import EXIT_REFUSED


@click.command()
@click.argument("image", type=NAME)
@click.option("--receipt", is_flag=True, help="Print only the digest of the receipts.")
@json_option("fp4patch.images.image:Inspection")
def inspect(image: str, receipt: bool, as_json: bool) -> None:
    """Check the labels and the proof of an IMAGE.

    Inspect reads them without running the image, and compares them with each other. IMAGE is the name of an image in
    the container engine, or a directory that `fp4patch build --output` wrote.
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
