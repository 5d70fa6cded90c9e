"""``fp4patch fetch``: a pristine tree of a release."""

from pathlib import Path
from typing import Any

from fp4patch.catalog.manifest import load
from fp4patch.core.errors import UsageError
from fp4patch.sources.fetch import Fetched
from fp4patch.sources.fetch import fetch as fetch_tree


def fetch(release: str, directory: Path, **how: Any) -> Fetched:
    """Fetch ``cutlass==4.2.1`` into a directory; a leading ``v`` of the version is taken off.

    ``how`` are the options of :func:`fp4patch.sources.fetch.fetch`.
    """
    name, separator, version = release.partition("==")
    if not (name and separator and version):
        raise UsageError(f"{release!r} is not TARGET==VERSION", help="for example cutlass==4.2.1")
    target = load().target(name.strip())
    return fetch_tree(target, version.strip().removeprefix("v"), directory, **how)
