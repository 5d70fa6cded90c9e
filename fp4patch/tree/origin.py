"""Who brought a file that is neither what fp4patch wrote nor the pristine bytes that its receipt keeps.

Before such a file counts as edited, those are asked who can know it: git, for what is committed or staged; the package
that is installed there; the record of surveyed releases. A file that one of them knows is upstream's, and pristine: a
pull, a checkout or an upgrade put it there. Git may also have merged upstream's change into the patched file. Then
upstream's bytes are pristine, if the merge without this change is to the bit what fp4patch wrote.

Nothing of this gives a receipt power: it decides only that bytes of the tree, or of its repository, are the pristine
ones, as the tree's would be without a receipt.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote

from fp4patch.catalog import surveyed
from fp4patch.catalog.identify import Identified
from fp4patch.core.store import cache_dir, scratch
from fp4patch.core.wording import joined
from fp4patch.sources.checkout import Checkout
from fp4patch.sources.installed import Installed, record_hash
from fp4patch.tree.files import STATE_DIR, locate, sha256
from fp4patch.tree.receipt import Receipt, ReceiptFile
from fp4patch.tree.stamp import find_stamp

_CONFLICT = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_AGAIN = "then run this again"
_COMMIT = "git's commit"


@dataclass(frozen=True)
class Origin:
    """Who brought a file, and its pristine bytes; None if upstream has no such file any more."""

    pristine: bytes | None
    by: str = ""
    """Who knows it: ``git's commit``; empty if the file was edited, or nobody knows it."""
    help: str = ""
    """What to do with an edited file."""

    @property
    def known(self) -> bool:
        """True if the file has nothing but upstream's bytes and what fp4patch wrote."""
        return bool(self.by)


class Origins:
    """Tells the origin of files of one tree that has a receipt. ``blob`` returns what is kept under a hash."""

    def __init__(self, tree: Identified, receipt: Receipt, blob: Callable[[str], bytes]) -> None:
        self.tree = tree
        self.receipt = receipt
        self.blob = blob
        layouts = (tree.target.marks, *tree.target.other_marks)
        self.marks = [tree.root / mark for layout in layouts for mark in layout]
        """Files by which the tree is recognised."""

    @cached_property
    def package(self) -> Installed | None:
        """The package that has installed the tree."""
        return Installed.owner(self.tree.root, self.marks)

    @property
    def change_of_release(self) -> str:
        """Statement that the tree states another release than when it was patched; empty if it states the same."""
        then, now = self.receipt.version, str(self.tree.version or "")
        was = joined(self.tree.target.name, then)
        return f"it was patched as {was}, and states {now} now" if then and now and then != now else ""

    def of(self, path: str, current: bytes | None) -> Origin:
        """Return who brought a file: the first one that knows it; else what is known about upstream's.

        ``current`` are the bytes of a file of the receipt: neither those that it names, nor the pristine ones; None if
        there is no file. Refused: the pristine bytes that are kept are needed, and gone.
        """
        file, answers = UnknownFile(self, path, current), []
        for ask in (_git, _package, _survey):
            if answer := ask(file):
                if answer.known:
                    return answer
                answers.append(answer)
        return answers[0] if answers else _nobody(file)


@dataclass(frozen=True)
class UnknownFile:
    """A file of a receipt with other bytes than this says, or without any."""

    asked: Origins
    path: str
    current: bytes | None

    @property
    def recorded(self) -> ReceiptFile:
        """What the receipt says of the file."""
        return self.asked.receipt.files[self.path]

    @cached_property
    def place(self) -> Path:
        """Where the file is."""
        return locate(self.asked.tree.root, self.path)

    @cached_property
    def kept(self) -> bytes:
        """The pristine bytes that the receipt keeps; none of a file that a patch created. Refused: they are gone."""
        return self.asked.blob(self.recorded.pristine_sha256) if self.recorded.pristine_sha256 else b""


# --- git -------------------------------------------------------------------------------------------------------------


def _git(file: UnknownFile) -> Origin | None:
    """What git's commit, its index and, where the patched file was committed, the history have."""
    checkout = Checkout.around(file.place)
    if checkout is None:
        return None
    committed, staged = (checkout.read(commit, file.place) for commit in ("HEAD", ":0"))
    if committed is None and staged is None:
        marks = (mark for mark in file.asked.marks if mark.is_relative_to(checkout.folder))
        gone = file.current is None and any(checkout.read("HEAD", mark) is not None for mark in marks)
        return Origin(None, _COMMIT) if gone else None  # else the tree is not in the repository
    for by, text in ((_COMMIT, committed), ("git's index", staged)):
        if text is not None and _is_upstreams(text) and file.current == _with_line_ends_of(text, file.current):
            return Origin(file.current, by)
    return _merged(checkout, file, committed, staged)


def _merged(checkout: Checkout, file: UnknownFile, committed: bytes | None, staged: bytes | None) -> Origin | None:
    """What git has of a file in which its merge put changes together, or which was edited or deleted."""
    found, pristine = "", None
    for commit, text in _versions(checkout, file, committed, staged):
        for ours in (file.current, committed):
            version = _with_line_ends_of(text, ours or file.kept)
            if ours is not None and find_stamp(ours) and _is_patched(checkout, file, version, ours):
                if ours is file.current:
                    return Origin(version, _COMMIT)
                found, pristine = commit, version
        if pristine is None:
            found, pristine = commit, _with_line_ends_of(text, file.current or file.kept)
    if pristine is None:
        return None
    git, name = f"git -C {quote(str(file.asked.tree.root))}", f"{found} -- {quote(file.path)}".lstrip()
    advice = f"`{git} diff {name}` shows the edit, and `{git} checkout {name}` takes it away; {_AGAIN}"
    return Origin(pristine, _COMMIT if file.current is None else "", advice)


def _versions(
    checkout: Checkout, file: UnknownFile, committed: bytes | None, staged: bytes | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the versions of a file that can be upstream's, each with its commit; the index has none."""
    if committed is None:
        yield from [("", staged)] if staged is not None and _is_upstreams(staged) else []
    elif _is_upstreams(committed):
        yield "HEAD", committed
    else:
        yield from ((commit, text) for commit, text in checkout.history(file.place) if _is_upstreams(text))


def _is_upstreams(text: bytes) -> bool:
    """Tell whether a file can be upstream's: fp4patch did not write it, and no merge left its marks."""
    return not find_stamp(text) and not _CONFLICT.search(text)


def _with_line_ends_of(text: bytes, like: bytes | None) -> bytes:
    """Return a committed text as a checkout with the line ends of ``like`` has it: ``core.autocrlf`` converts all."""
    if like is None or (b"\r\n" in text) == (b"\r\n" in like):
        return text
    unix = text.replace(b"\r\n", b"\n")
    return unix.replace(b"\n", b"\r\n") if b"\r\n" in like else unix


def _is_patched(checkout: Checkout, file: UnknownFile, pristine: bytes, ours: bytes) -> bool:
    """Tell whether a text is what fp4patch wrote, with upstream's change and nothing else merged into it.

    Without this change, which leads from the kept pristine bytes to these ones, it must have the hash of the receipt.
    """
    with scratch(cache_dir(), "merge-") as folder:
        for name, text in (("pristine", pristine), ("ours", ours), ("kept", file.kept)):
            (folder / name).write_bytes(text)
        merged = checkout.merged(folder / "pristine", folder / "ours", folder / "kept")
    return sha256(merged) == file.recorded.written_sha256


# --- packages and releases -------------------------------------------------------------------------------------------


def _package(file: UnknownFile) -> Origin | None:
    """What the package has of the file that is installed there."""
    package = file.asked.package
    has = package.of(file.place) if package else None
    if package is None or (has is None and file.current is not None):
        return None
    if file.current is None and has != record_hash(file.recorded.pristine_sha256):
        return Origin(None, package.release)  # it has no such file any more, or another one, which is gone
    if file.current is not None and _is_upstreams(file.current) and has == record_hash(sha256(file.current)):
        return Origin(file.current, package.release)
    command = f"python -m pip install --force-reinstall --no-deps {quote(package.release)}"
    advice = f"`{command}`, with the environment's Python, brings the package's file back; {_AGAIN}"
    return Origin(file.kept, package.release if file.current is None else "", advice)


def _survey(file: UnknownFile) -> Origin | None:
    """What the surveyed releases have of the file."""
    if file.current is None:
        return None
    digest, target = sha256(file.current)[: surveyed.HASH], file.asked.tree.target
    names = [file.path.removeprefix(folder) for folder in target.telling_in if file.path.startswith(folder)]
    found = [version for version, files in surveyed.releases(target) if digest in map(files.get, names)]
    stated = str(file.asked.tree.version or "")
    return Origin(file.current, f"{target.name} {stated if stated in found else found[-1]}") if found else None


def _nobody(file: UnknownFile) -> Origin:
    """What to do about a file that nobody knows. The receipt's copy is of the release that was patched, and no other.

    What fp4patch wrote and somebody edited ends with its line; a file without it took the place of the whole.
    """
    tree, changed = file.asked.tree, file.asked.change_of_release
    if file.current is None:
        return Origin(None if changed else file.kept, "nobody")
    if not file.recorded.pristine_sha256:
        remove = f"rm {quote(str(tree.root / file.path))}"
        return Origin(None, help=f"a patch created it: `{remove}` takes it away; {_AGAIN}")
    if find_stamp(file.current) and not changed:
        copy, to = tree.root / STATE_DIR / "blobs" / file.recorded.pristine_sha256, tree.root / file.path
        return Origin(file.kept, help=f"`cp {quote(str(copy))} {quote(str(to))}` takes the edit away; {_AGAIN}")
    fetch = f"fp4patch fetch {tree.target.name}=={tree.version or 'VERSION'} DIR"
    advice = (
        f"if another release took the place of the whole tree, delete its {STATE_DIR} directory; else copy the file "
    )
    return Origin(file.kept, help=f"{advice}from this release, which `{fetch}` gets; {_AGAIN}")
