"""``fp4patch fetch``: a pristine tree of a release."""

from pathlib import Path

import click
from rich.text import Text

from fp4patch.catalog.manifest import load
from fp4patch.commands.options import PLACE, json_option, releases
from fp4patch.console import emit, progress_bar, show
from fp4patch.core.errors import UsageError
from fp4patch.sources.fetch import fetch as fetch_tree


@click.command(epilog="Example: fp4patch fetch vllm==0.33.0 vllm")
@click.argument("release", metavar="TARGET==VERSION", shell_complete=releases)
@click.argument("directory", type=PLACE)
@click.option("--archive", is_flag=True, help="Take the index's archive, even if it has a part of the release alone.")
@click.option(
    "--git",
    "git_url",
    metavar="URL[#REF]",
    help="Clone TARGET==VERSION from this URL or path instead. REF is a tag, branch or commit.",
)
@json_option("fp4patch.sources.fetch:Fetched")
def fetch(release: str, directory: Path, archive: bool, git_url: str | None, as_json: bool) -> None:
    """Fetch the pristine tree of a release into DIRECTORY.

    The source is a pinned, SHA-256-checked archive of the package index that pip is configured for. If there is none,
    or it has only a part of the release, as CUTLASS's headers, fetch clones the upstream repository by git.
    """
    name, _, version = release.partition("==")
    if not (name and version):
        raise UsageError(f"{release!r} is not TARGET==VERSION", help="for example cutlass==4.2.1")
    target = load().target(name.strip())
    with progress_bar() as tick:
        wanted = version.strip().removeprefix("v")
        fetched = fetch_tree(target, wanted, directory, progress=tick, git_url=git_url, whole=not archive)
    if as_json:
        emit(fetched)
        return
    proof = f", sha256 {fetched.sha256[:16]}… as pinned" if fetched.sha256 else ""
    lines = [f"{fetched.target} {fetched.version} in {fetched.directory} (from {fetched.source}{proof})"]
    if fetched.holds:
        lines.append(f"  {fetched.holds}")
    if fetched.partial:
        why = f"{fetched.git_error}; " if fetched.git_error else ""
        lines.append(f"  {why}a build of another project may take more of it: name a repository with --git")
    show(Text("\n".join(lines)))
