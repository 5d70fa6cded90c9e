"""The command ``fp4patch explore``: a page that answers what happens on a GPU, and what to do."""

from pathlib import Path

import click

from fp4patch.commands.options import FILE
from fp4patch.console import write


@click.command(epilog="Example: fp4patch explore -o explorer.html")
@click.option("--output", "-o", type=FILE, help="Write the page to this file, without opening it in a browser.")
def explore(output: Path | None) -> None:
    """Open a page with the answers of doctor for every release.

    They are for each CUDA release, arch list and GPU, before and after the recommended variants.

    The page also has the machine code of each FP4 instruction by compiler and target. It is one file that needs no
    network. Its answers come from the records of this fp4patch.
    """
    import webbrowser

    from fp4patch.commands.explore_page import page
    from fp4patch.core.store import cache_dir

    file = output or cache_dir() / "explorer.html"
    write(file, page(), advice="name a file that can be written: fp4patch explore -o FILE")
    click.echo(str(file))
    if not output and not webbrowser.open(file.absolute().as_uri()):
        click.echo("there is no browser here: copy the file to a machine that has one, and open it there", err=True)
