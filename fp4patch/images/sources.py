"""Sources of vLLM and CUTLASS for an image: the variant's pins, or the ones that the user names."""

import re
from pathlib import Path

from fp4patch.catalog.target import Target
from fp4patch.core.errors import UsageError
from fp4patch.core.release import is_version
from fp4patch.images.image import Source
from fp4patch.sources import git


def source(target: Target, pinned: str, said: str | None, *, whole: bool = False) -> Source:
    """Return the pinned release, or the source that ``said`` names.

    ``said`` is a release, a directory, ``URL#ref``, or a git reference of upstream. A directory or a git reference
    becomes a build context of its own; UsageError is raised if a directory is no such tree. ``whole``: vLLM is
    compiled, which needs more of the tree than its headers.
    """
    if said is None:
        return release(target, pinned, whole=whole)
    if said.startswith((".", "/", "~")) or Path(said).is_dir():
        return _folder(target, Path(said).expanduser(), whole=whole)
    if re.match(r"[a-z+]+://|git@", said):
        url, _, ref = said.partition("#")
        return Source(context=said, pin={"git": url, "ref": ref or "HEAD"})
    version = said.removeprefix("v")
    if re.match(r"\d+\.\d", version) and is_version(version):
        return release(target, version, whole=whole)
    return Source(context=f"{target.git}#{said}", pin={"git": target.git, "ref": said})


def release(target: Target, version: str, *, whole: bool = False) -> Source:
    """Return a release, with its pinned hash if there is one; raise UsageError if no complete one is available."""
    archive = target.archive(version)
    pin = {"version": version}
    if archive and archive.partial and whole:
        if (commit := target.commits.get(version)) is None:
            raise UsageError(
                f"vLLM cannot be compiled with {target.title} {version}: {archive.filename}"
                f" does not contain {target.whole[1]}, "
                "and no commit is pinned",
                help=f"name a clone that has it, or URL#REF: --{target.name}",
            )
        pin |= {"git": target.git, "ref": target.tag_of(version), "commit": commit}
        return Source(version=version, pin=pin, whole=True, gcc=target.gcc_of(version))
    if archive:
        pin |= {"archive": archive.filename, "sha256": archive.sha256}
    else:
        pin |= {"git": target.git, "ref": target.tag_of(version)}
        if commit := target.commits.get(version):
            pin["commit"] = commit
    return Source(version=version, pin=pin, gcc=target.gcc_of(version))


def _folder(target: Target, folder: Path, *, whole: bool) -> Source:
    missing = [mark for mark in target.marks if not (folder / mark).is_file()]
    if missing:
        raise UsageError(
            f"{folder} is not a tree of {target.title}: it has no {missing[0]}",
            help=f"name the top directory of one, a release, or a git reference of {target.git}",
        )
    if lacks := [path for path in target.whole if whole and not (folder / path).exists()]:
        raise UsageError(
            f"vLLM cannot be compiled with {folder}: it has {target.title}'s"
            f" headers, and does not have {', '.join(lacks)}",
            help=f"name a clone of {target.git}; --target proof needs the headers alone",
        )
    pin = {"local": folder.resolve().name}  # the path means nothing on another machine
    if (folder / ".git").exists():
        pin["commit"] = git.head(folder)
        pin["changed"] = "yes" if git.changed(folder) else "no"
    return Source(context=str(folder.resolve()), pin=pin)
