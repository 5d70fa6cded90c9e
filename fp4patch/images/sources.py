"""Where vLLM and CUTLASS of an image come from: the variant's pins, or what the user names instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from fp4patch.errors import UsageError
from fp4patch.model.image import Source
from fp4patch.sources import git

if TYPE_CHECKING:
    from fp4patch.model.target import Target


def source(target: Target, pinned: str, said: str | None, *, whole: bool = False) -> Source:
    """The pinned release, or what ``said`` names: a release, a folder, ``URL#ref``, or a git reference of upstream.

    A folder or a git reference becomes a build context of its own; UsageError if a folder is no such tree. ``whole``:
    vLLM is compiled, which takes more of the tree than its headers.
    """
    if said is None:
        return release(target, pinned, whole=whole)
    if said.startswith((".", "/", "~")) or Path(said).is_dir():
        return _folder(target, Path(said).expanduser(), whole=whole)
    if re.match(r"[a-z+]+://|git@", said):
        url, _, ref = said.partition("#")
        return Source(context=said, pin={"git": url, "ref": ref or "HEAD"})
    version = said.removeprefix("v")
    if re.match(r"\d+\.\d", version) and _is_version(version):
        return release(target, version, whole=whole)
    return Source(context=f"{target.git}#{said}", pin={"git": target.git, "ref": said})


def release(target: Target, version: str, *, whole: bool = False) -> Source:
    """A release, with the hash that pins it where there is one; UsageError if no whole one is to be had."""
    archive = target.archive(version)
    pin = {"version": version}
    if archive and archive.partial and whole:
        if (commit := target.commits.get(version)) is None:
            raise UsageError(
                f"vLLM cannot be compiled with {target.title} {version}: {archive.filename} lacks {target.whole[1]}, "
                "and no commit is pinned",
                help=f"name a clone that has it, or URL#REF: --{target.name}",
            )
        pin |= {"git": target.git, "ref": target.tag.format(version=version), "commit": commit}
        return Source(version=version, pin=pin, whole=True)
    if archive:
        pin |= {"archive": archive.filename, "sha256": archive.sha256}
    else:
        pin |= {"git": target.git, "ref": target.tag.format(version=version)}
        if commit := target.commits.get(version):
            pin["commit"] = commit
    return Source(version=version, pin=pin)


def _folder(target: Target, folder: Path, *, whole: bool) -> Source:
    missing = [mark for mark in target.marks if not (folder / mark).is_file()]
    if missing:
        raise UsageError(
            f"{folder} is not a tree of {target.title}: it has no {missing[0]}",
            help=f"name the top folder of one, a release, or a git reference of {target.git}",
        )
    if lacks := [path for path in target.whole if whole and not (folder / path).exists()]:
        raise UsageError(
            f"vLLM cannot be compiled with {folder}: it has {target.title}'s headers, and lacks {', '.join(lacks)}",
            help=f"name a clone of {target.git}; --target proof needs the headers alone",
        )
    pin = {"local": folder.resolve().name}  # the path says nothing elsewhere
    if (folder / ".git").exists():
        pin["commit"] = git.head(folder)
        pin["changed"] = "yes" if git.changed(folder) else "no"
    return Source(context=str(folder.resolve()), pin=pin)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
