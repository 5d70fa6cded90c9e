"""A patched tree that has no receipt: what it would say.

Git ignores a receipt, so that a patched tree that was committed has none where it is cloned, nor has one that was made
by ``git am`` of what ``export`` writes. The first kind has a line in each file, with the hash of the pristine bytes:
git's history has these, or the archive of the release in the cache. Of the second kind are the commits whose message
names the variant: the file before them is pristine, with what others changed since.

Nothing of this is believed: a file counts as patched if the variant makes of its pristine bytes what is there. A file
of which that is not true is left to ``origin.py``, as one of a receipt.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.catalog.source_files import source_files
from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.store import cache_dir, scratch
from fp4patch.core.wording import counted
from fp4patch.sources.archive import read_files
from fp4patch.sources.checkout import Checkout
from fp4patch.tree.files import read, sha256
from fp4patch.tree.receipt import Receipt, ReceiptFile
from fp4patch.tree.stamp import TAIL, find_stamp, with_line_ends_of

# Example:   fp4patch verify --variant next3 TREE
_MESSAGE = re.compile(r"^  fp4patch verify --variant ([\w.-]+) TREE$", re.MULTILINE)
Written = Callable[["Recovered"], Mapping[str, bytes | None]]
"""What the variant makes of the files of a tree with that receipt."""


@dataclass(frozen=True)
class Recovered:
    """A receipt that is not on the disk, and what it refers to."""

    receipt: Receipt
    blobs: Mapping[str, bytes]
    """The pristine bytes, by their hash."""
    note: str
    """Who knows them, in words."""
    commits: tuple[str, ...] = ()
    """The commits of an export, the newest first. Then the files have upstream's names."""


def recovered(tree: Identified, may_change: Callable[[str], bool], written: Written) -> Recovered | None:
    """Return what the receipt of a tree would say; None if it is not patched, or that cannot be told."""
    found = _by_lines(tree, may_change) or _by_commits(tree, may_change, written)
    if found is None:
        return None
    made = written(found)
    files = {
        path: replace(file, written_sha256=sha256(made.get(path)) or file.written_sha256)
        for path, file in found.receipt.files.items()
    }
    is_there = any(sha256(_current(tree, path)) == file.written_sha256 for path, file in files.items())
    return replace(found, receipt=replace(found.receipt, files=files)) if is_there else None


def _recovered(
    tree: Identified, variant: str, pristine: Mapping[str, bytes], patches: Mapping[str, tuple[str, ...]], note: str
) -> Recovered:
    """Return the receipt of some files. What was written is what is there, as long as nobody knows better."""
    files = {
        path: ReceiptFile(sha256(data), sha256(_current(tree, path)), patches.get(path, ()))
        for path, data in sorted(pristine.items())
    }
    names = tuple(dict.fromkeys(name for path in files for name in patches.get(path, ())))
    receipt = Receipt(__version__, tree.target.name, str(tree.version or ""), variant, names, files)
    return Recovered(receipt, {sha256(data): data for data in pristine.values()}, note)


def _current(tree: Identified, path: str) -> bytes | None:
    """Return what is there; None if it cannot be read."""
    try:
        return read(tree.root, path)
    except Refused:
        return None


def _variant(tree: Identified, name: str) -> bool:
    variants = load().variants
    return name in variants and tree.target.name in variants[name].targets


# --- files with a line of fp4patch -----------------------------------------------------------------------------------


def _by_lines(tree: Identified, may_change: Callable[[str], bool]) -> Recovered | None:
    stamps = dict(_stamps(tree, may_change))
    variants = {stamp["variant"].decode() for stamp in stamps.values()}
    patches = {path: tuple(stamp["patches"].decode("utf-8", "replace").split(", ")) for path, stamp in stamps.items()}
    known = load().patches
    if len(variants) != 1 or any(name.partition(" ")[0] not in known for names in patches.values() for name in names):
        return None  # several variants, or a diff of somebody, of which nothing is kept
    (variant,) = variants
    pristine = dict(_pristine(tree, {path: stamp["pristine"].decode() for path, stamp in stamps.items()}))
    if not _variant(tree, variant) or pristine.keys() != stamps.keys():
        return None
    note = f"it has no receipt: {counted(len(stamps), 'file')} of {variant} by the line at the end of each"
    return _recovered(tree, variant, pristine, patches, f"{note}, whose pristine bytes are at hand")


def _stamps(tree: Identified, may_change: Callable[[str], bool]) -> Iterator[tuple[str, re.Match[bytes]]]:
    """Yield the files that end with the line, of those that a patch may change."""
    apart = (tree.root / place for part in tree.target.contains for place in part.at)
    for path in filter(may_change, source_files(tree.root, apart)[0]):
        try:
            with open(f"{tree.root}/{path}", "rb", buffering=0) as file:  # noqa: PTH123 - a Path takes long
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                stamp = find_stamp(file.read(TAIL))
        except OSError:
            continue
        if stamp:
            yield path, stamp


def _pristine(tree: Identified, hashes: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield each file's bytes of a hash, from git's history, else from the archive of the release in the cache."""
    missing = {}
    for path, digest in hashes.items():
        file = tree.root / path
        checkout = Checkout.around(file)
        texts = (text for _, text in checkout.history(file)) if checkout else iter(())
        current = _current(tree, path)
        versions = (version for text in texts for version in (text, with_line_ends_of(text, current)))
        if (found := next((version for version in versions if sha256(version) == digest), None)) is not None:
            yield path, found
        else:
            missing[path] = digest
    from fp4patch.sources.index import place  # noqa: PLC0415 - it loads what downloads

    archive = tree.target.archive(str(tree.version or ""))
    if missing and archive and place(archive).is_file():
        try:
            files = read_files(place(archive), archive.subtree, missing)
        except (Fp4PatchError, OSError):
            return
        yield from ((path, data) for path, data in files.items() if sha256(data) == missing[path])


# --- commits of an export --------------------------------------------------------------------------------------------


def _by_commits(tree: Identified, may_change: Callable[[str], bool], written: Written) -> Recovered | None:
    checkout = Checkout.around(tree.root / "any")
    messages = checkout.messages("^  fp4patch verify --variant ") if checkout else {}
    named = {commit: _MESSAGE.search(message) for commit, message in messages.items()}
    variants = {found[1] for found in named.values() if found}
    if checkout is None or len(variants) != 1 or not _variant(tree, *variants):
        return None
    (variant,), commits = variants, tuple(commit for commit, found in named.items() if found)
    base = f"{commits[-1]}^"
    changed = {path for commit in commits for path in checkout.changed(commit, tree.root) if may_change(path)}
    before = {path: text for path in changed if (text := checkout.read(base, tree.root / path)) is not None}
    note = f"{variant} is in {counted(len(commits), 'commit')} of `fp4patch export`, {commits[-1]} to {commits[0]}"
    first = replace(_recovered(tree, variant, before, {}, note), commits=commits)
    made = written(first)
    pristine = {path: _without(checkout, text, made.get(path), _current(tree, path)) for path, text in before.items()}
    return replace(_recovered(tree, variant, pristine, {}, note), commits=commits)


def _without(checkout: Checkout, before: bytes, made: bytes | None, current: bytes | None) -> bytes:
    """Return a file without the changes of an export, and with those of others; if they cannot be told apart, as it was
    before all of them."""
    if made is None or current is None or made == current:
        return before
    with scratch(cache_dir(), "merge-") as folder:
        for name, text in (("made", made), ("current", current), ("before", before)):
            Path(folder, name).write_bytes(text)
        return checkout.merged(folder / "made", folder / "current", folder / "before") or before
