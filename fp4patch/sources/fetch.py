"""Fetching of a pristine tree of a target's release: from its pinned archive if there is one, else by git.

The directory appears whole or not at all: everything is made beside it and renamed at the end.
"""

from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.target import Target
from fp4patch.core.document import Report
from fp4patch.core.errors import SourceError, UsageError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.release import is_version
from fp4patch.core.store import scratch
from fp4patch.core.wording import suggested
from fp4patch.sources import git
from fp4patch.sources.archive import extract
from fp4patch.sources.index import download


@dataclass(frozen=True)
class Fetched(Report):
    """A fetched tree: its directory and its source."""

    directory: Path
    """Directory of the tree."""
    target: str
    version: str
    source: str
    """Origin: ``flashinfer_python-0.6.0-py3-none-any.whl`` or the git URL with its tag."""
    sha256: str
    """Pinned SHA-256 of the archive; empty for git."""
    holds: str = ""
    """Exact contents, if they are not the tagged tree itself."""
    partial: bool = False
    """True if the tree lacks files of the release that a build of another project may take."""
    git_error: str = ""
    """The reason why git did not bring all of the release; empty if it was not asked."""


def fetch(
    target: Target,
    version: str,
    to: Path,
    *,
    progress: OnProgress,
    git_url: str | None = None,
    whole: bool = False,
) -> Fetched:
    """Put the release ``version`` of ``target`` into the directory ``to``, which must not exist or be empty.

    ``git_url`` requests git even if an archive is pinned; after a ``#`` it names a tag, branch or commit. With
    ``whole`` git comes before an archive that holds only a part. ``progress`` receives the progress of a download, and
    the name of what git clones. SourceError leaves ``to`` unchanged.
    """
    releases = [archive.version for archive in target.archives] or ["1.0"]
    if not is_version(version):
        raise UsageError(f"{version!r} is not a version", help=f"for example {target.name}=={releases[-1]}")
    url, _, ref = (git_url or target.git).partition("#")
    tag = ref or target.tag_of(version)
    archive = None if git_url else target.archive(version)
    if not tag and not archive:
        help_text = suggested(version, releases, f"the releases are {', '.join(releases)}")
        raise UsageError(f"there is no {target.name} {version}", help=help_text)
    git_error = ""
    try:
        if to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir()))):
            raise UsageError(
                f"{to} exists and is not an empty directory", help="name a directory that does not exist yet"
            )
        with scratch(to.parent, f".{to.name}-") as work:
            tree = work / "git"
            if not archive or (archive.partial and whole):
                progress(Step(0, None, f"git clone {url}"))
                try:
                    _clone(target, url, tag, tree, None if git_url else target.commits.get(version))
                    archive = None
                except SourceError as error:
                    if not archive:
                        known = git_url or version in target.commits
                        advice = error.help if known else suggested(version, releases, error.help)
                        raise SourceError(error.message, help=advice) from error
                    git_error = error.message
            if archive:
                tree = work / "archive"
                extract(download(archive, progress), archive.subtree, tree)
                _must_be(target, tree)
            tree.rename(to)  # also over an empty directory
    except OSError as error:
        raise SourceError(
            f"cannot put the tree into {to}: {error.filename or to}: {error.strerror or error}",
            help="free space, or choose another directory",
        ) from error
    if not archive:
        return Fetched(to, target.name, version, f"{url} {tag}", "")
    kept = (archive.filename, archive.sha256, archive.holds, archive.partial)
    return Fetched(to, target.name, version, *kept, git_error)


def _clone(target: Target, url: str, tag: str, tree: Path, pinned: str | None) -> None:
    git.clone(url, tag, tree, [*target.include, *(place for part in target.contains for place in part.at)])
    if pinned and (got := git.head(tree)) != pinned:
        raise SourceError(
            f"{tag} of {url} is not the commit that was pinned: {got}, expected {pinned}",
            help="the tag was moved; report it, or name the repository yourself: --git URL",
        )
    _must_be(target, tree)


def _must_be(target: Target, tree: Path) -> None:
    if missing := target.missing(tree):
        raise SourceError(
            f"what was fetched is not {target.title}: it has no {missing[0]}", help="is this the right URL?"
        )
