"""Sources of vLLM and CUTLASS for an image: the variant's pins, or the ones that the user names."""

from pathlib import Path

from fp4patch.catalog.target import Target
from fp4patch.core.errors import UsageError
from fp4patch.core.release import is_version
from fp4patch.images.image import Source


def source(target: Target, named: str, *, whole: bool) -> Source:
    """Return the source of that name: a release, or a directory, which becomes a build context of its own.

    ``whole``: vLLM is compiled, which needs more of the tree than its headers. UsageError: it is no such tree.
    """
    folder, version = Path(named).expanduser(), named.removeprefix("v")
    if folder.is_dir():
        return _folder(target, folder, whole=whole)
    if not is_version(version):
        raise UsageError(f"{named} is neither a directory nor a release", help="clone it, and name the directory")
    return _release(target, version, whole=whole)


def _release(target: Target, version: str, *, whole: bool) -> Source:
    """Return a release, with its pinned hash if there is one; raise UsageError if no complete one is available."""
    archive, commit = target.archive(version), target.commits.get(version)
    by_git = {"git": target.git, "ref": target.tag_of(version)} | ({"commit": commit} if commit else {})
    in_part = bool(archive and archive.partial and whole)
    if archive and in_part and not commit:
        raise UsageError(
            f"vLLM cannot be compiled with {target.title} {version}: {archive.filename}"
            f" does not contain {target.whole[1]}, and no commit is pinned",
            help=f"clone it, and name the directory: --{target.name}",
        )
    pin = by_git if in_part or not archive else {"archive": archive.filename, "sha256": archive.sha256}
    return Source(version, pin={"version": version} | pin, whole=in_part, gcc=target.gcc_of(version))


def _folder(target: Target, folder: Path, *, whole: bool) -> Source:
    missing = [mark for mark in target.marks if not (folder / mark).is_file()]
    if missing:
        raise UsageError(
            f"{folder} is not a tree of {target.title}: it has no {missing[0]}",
            help="name the top directory of one, or a release",
        )
    if lacks := [path for path in target.whole if whole and not (folder / path).exists()]:
        raise UsageError(
            f"vLLM cannot be compiled with {folder}: it has {target.title}'s"
            f" headers, and does not have {', '.join(lacks)}",
            help=f"name a clone of {target.git}; --target proof needs the headers alone",
        )
    # The path means nothing on another machine.
    return Source(folder=str(folder.resolve()), pin={"local": folder.resolve().name})
