"""Where vLLM and CUTLASS of an image come from: the variant's pins, or what the user names instead."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from fp4patch.errors import UsageError
from fp4patch.model.image import Source

if TYPE_CHECKING:
    from fp4patch.model.target import Target


def source(target: Target, pinned: str, said: str | None) -> Source:
    """The pinned release, or what ``said`` names: a release, a folder, ``URL#ref``, or a git reference of upstream.

    A folder or a git reference becomes a build context of its own; UsageError if a folder is no such tree.
    """
    if said is None:
        return release(target, pinned)
    if said.startswith((".", "/", "~")) or Path(said).is_dir():
        return _folder(target, Path(said).expanduser())
    if re.match(r"[a-z+]+://|git@", said):
        url, _, ref = said.partition("#")
        return Source(context=said, pin={"git": url, "ref": ref or "HEAD"})
    version = said.removeprefix("v")
    if re.match(r"\d+\.\d", version) and _is_version(version):
        return release(target, version)
    return Source(context=f"{target.git}#{said}", pin={"git": target.git, "ref": said})


def release(target: Target, version: str) -> Source:
    """A release, with the hash that pins it where there is one."""
    archive = next((a for a in target.archives if version in a.versions), None)
    pin = {"version": version}
    if archive:
        pin |= {"archive": archive.filename, "sha256": archive.sha256}
    else:
        pin |= {"git": target.git, "ref": target.tag.format(version=version)}
        if commit := target.commits.get(version):
            pin["commit"] = commit
    return Source(version=version, pin=pin)


def _folder(target: Target, folder: Path) -> Source:
    missing = [mark for mark in target.marks if not (folder / mark).is_file()]
    if missing:
        raise UsageError(
            f"{folder} is not a tree of {target.title}: it has no {missing[0]}",
            help=f"name the top folder of one, a release, or a git reference of {target.git}",
        )
    pin = {"local": folder.resolve().name}  # the path says nothing elsewhere
    if (folder / ".git").exists():
        pin["commit"] = git(folder, "rev-parse", "HEAD")
        pin["changed"] = "yes" if git(folder, "status", "--porcelain", "--untracked-files=no") else "no"
    return Source(context=str(folder.resolve()), pin=pin)


def git(folder: Path, *words: str) -> str:
    """What git says in a folder; empty if it fails there, or is not installed."""
    try:
        run = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)  # noqa: S607 - the user's git
    except FileNotFoundError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
