"""Options of ``fetch``."""

import sys
from pathlib import Path
from typing import Any

import click

from fp4patch.commands.common import PLACE, emit, json_option, show, stderr


@click.command()
@click.argument("release", metavar="TARGET==VERSION")
@click.argument("directory", type=PLACE)
@click.option("--whole", is_flag=True, help="Use git if the archive has only a part of the release.")
@click.option(
    "--git",
    "git_url",
    metavar="URL[#REF]",
    help="Clone TARGET==VERSION from this URL or path instead. REF is a tag, branch or commit.",
)
@json_option("fp4patch.sources.fetch:Fetched")
def fetch(release: str, directory: Path, as_json: bool, **how: Any) -> None:
    """Fetch the pristine tree of a release into DIRECTORY.

    The source is a pinned, SHA-256-checked archive of the package index that pip is configured for. If there is none,
    fetch clones the upstream repository by git.
    """
    from fp4patch.commands import progress
    from fp4patch.commands.fetch import run as verb
    from fp4patch.commands.fetch import text as fetch_report

    with progress.shown(stderr(), progress.BYTES) as tick:
        fetched = verb.fetch(release, directory, **how, progress=tick, show_progress=sys.stderr.isatty())
    emit(fetched) if as_json else show(fetch_report.fetch_text(fetched))
