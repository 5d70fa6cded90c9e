"""Files of a series of patches, in the forms that git, quilt, Conan and Nix take."""

import json
import textwrap
from email.header import Header
from email.utils import formatdate

from fp4patch.commands.export.result import Change, Exported, Format
from fp4patch.tree.unified_diff import unified

WIDTH = 72


def files(exported: Exported, name: str, author: str, when: int) -> dict[str, str]:
    """Return each file's text by its path, in the format of that name.

    ``when`` is the date of mails, in seconds since 1970.
    """
    form = Format(name)
    ending = "diff" if form is Format.DIFF else "patch"
    below = "patches/" if form is Format.CONAN else ""
    names = [f"{below}{number:04}-{change.patch.name}.{ending}" for number, change in enumerate(exported.changes, 1)]
    found = {
        name: _text(exported, change, form, author, when, number)
        for number, (name, change) in enumerate(zip(names, exported.changes, strict=True), 1)
    }
    if form is Format.QUILT:
        found["series"] = "".join(f"{name} -p1\n" for name in names)
    elif form is Format.NIX:
        found["patches.nix"] = "[\n" + "".join(f"  ./{name}\n" for name in names) + "]\n"
    elif form is Format.CONAN:
        entries = "".join(_conan(name, change) for name, change in zip(names, exported.changes, strict=True))
        found["conandata.yml"] = f'patches:\n  "{exported.version}":\n{entries}'
    return found


def _text(exported: Exported, change: Change, form: Format, author: str, when: int, number: int) -> str:
    diff = "".join(
        f"diff --git a/{path} b/{path}\n{unified(path, before, after)}"
        for path, (before, after) in sorted(change.files.items())
    )
    if form is Format.DIFF:
        return diff
    message = _message(exported, change)
    if form is Format.GIT_AM:
        subject = f"[PATCH {number}/{len(exported.changes)}] {change.patch.title}"
        return (
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n"
            f"From: {author}\n"
            f"Date: {formatdate(when)}\n"
            f"Subject: {Header(subject, 'us-ascii' if subject.isascii() else 'utf-8', maxlinelen=WIDTH).encode()}\n"
            "MIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=UTF-8\n"
            "Content-Transfer-Encoding: 8bit\n"
            f"\n{message}---\n\n{diff}-- \nfp4patch\n\n"
        )
    # The header fields of Debian's DEP-3, which quilt leaves alone.
    description = "".join(f" {line}\n" if line else " .\n" for line in message.splitlines())
    return f"Description: {change.patch.title}\n{description}Author: {author}\nOrigin: {change.patch.link}\n\n{diff}"


def _message(exported: Exported, change: Change) -> str:
    """Return the reason, the link and the evidence, set in lines of at most 72 characters."""
    reason = textwrap.fill(" ".join(change.patch.reason.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
    parts = [reason, change.patch.link]
    if exported.evidence:
        parts.append("\n".join(exported.evidence))
    command = f"fp4patch verify --variant {exported.variant} TREE"
    parts.append(f"To compile, compare and execute it again (all patches of the series):\n  {command}")
    return "\n\n".join(parts) + "\n"


def _conan(name: str, change: Change) -> str:
    fields = {
        "patch_file": name,
        "patch_description": change.patch.title,
        "patch_type": "portability",
        "patch_source": change.patch.link,
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items()]
    return "    - " + "      ".join(lines)


def summary(exported: Exported) -> str:
    """Return lines about the exported patches, and about those that the series leaves out."""
    what = f"{exported.variant} for {exported.target} {exported.version}: {len(exported.changes)} patches"
    lines = [what] + [f"  {change.patch.id}: {', '.join(sorted(change.files))}" for change in exported.changes]
    lines += [f"  {patch}: nothing to do in this release" for patch in exported.unchanged]
    return "\n".join(lines)
