"""``fp4patch fetch``: a pristine tree of a release."""

from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.sources.fetch import Fetched
from fp4patch.sources.fetch import fetch as fetch_tree


def fetch(
    release: str,
    directory: Path,
    git_url: str | None,
    progress: OnProgress,
    *,
    show_progress: bool,
    whole: bool = False,
) -> Fetched:
    """Fetch ``cutlass==4.2.1`` into a directory; a leading ``v`` of the version is taken off."""
    name, separator, version = release.partition("==")
    if not (name and separator and version):
        raise UsageError(f"{release!r} is not TARGET==VERSION", help="for example cutlass==4.2.1")
    target = load().target(name.strip())
    return fetch_tree(
        target,
        version.strip().removeprefix("v"),
        directory,
        git_url=git_url,
        whole=whole,
        progress=progress,
        show_progress=show_progress,
    )
