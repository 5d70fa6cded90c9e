"""A view of a source tree: the tree with some files replaced, as a directory to compile against; and what probes need.

The include directories are copied, and only when something must be compiled: nobody else writes into the copy
meanwhile. Putting a directory of pristine headers in front of the tree's would not do: headers include their siblings,
which would still be the patched ones.
"""

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from fp4patch.catalog.probe import Probe
from fp4patch.catalog.target import Target
from fp4patch.core.errors import ProofError, Refused
from fp4patch.core.lex_error import LexError
from fp4patch.cxx.tokens import lex, words
from fp4patch.tree.files import decode

SideName = Literal["pristine", "patched"]
"""State of the tree: as upstream released it, or as it is now."""


@dataclass(frozen=True)
class SourceView:
    """A tree with these files over it; keys are POSIX paths relative to ``root``, None means *not there*."""

    root: Path
    overlay: Mapping[str, bytes | None] = field(default_factory=dict)


class Side:
    """One view while it is being compiled against: its address on disk, and the hash of its files."""

    def __init__(self, view: SourceView, target: Target, scratch: Path, watched: Iterable[str] = ()) -> None:
        self.watched = tuple(sorted(watched))
        """Files of which compilations report the lines that they read, and those of which they made code."""
        self.root = view.root.resolve()
        """The tree that this is a view of."""
        self._scratch = scratch
        self._lock = threading.Lock()
        self._contents = _contents(self.root, view.overlay, target.include)
        digest = hashlib.sha256()
        for name, content in sorted(self._contents.items()):
            digest.update(f"{name}\0{len(content)}\0".encode(errors="surrogateescape") + content)
        self.digest = digest.hexdigest()
        """SHA-256 over the names and contents of all files in the include directories."""

    def folder(self) -> Path:
        """Return the view as a directory. ProofError where there is no room for it."""
        try:
            with self._lock:
                for name, content in self._contents.items():
                    (self._scratch / name).parent.mkdir(parents=True, exist_ok=True)
                    (self._scratch / name).write_bytes(content)
                self._contents.clear()  # it is written once
        except OSError as error:
            raise ProofError(
                f"{self.root} cannot be copied to {self._scratch}: {error.strerror}",
                help="its include directories are compiled from a copy; TMPDIR names another place for it",
            ) from error
        return self._scratch


def _contents(root: Path, overlay: Mapping[str, bytes | None], include: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a view in its include directories, by path."""
    paths = {name: PurePosixPath(name) for name in overlay}
    inside = {n: overlay[n] for n, path in paths.items() if any(path.is_relative_to(folder) for folder in include)}
    found = {path.relative_to(root).as_posix(): path for folder in include for path in _below(root / folder)}
    try:
        read = {name: path.read_bytes() for name, path in found.items() if name not in inside}
    except OSError as error:
        raise ProofError(f"{error.filename} cannot be read: {error.strerror}") from error
    return read | {name: new for name, new in inside.items() if new is not None}


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a directory. Links are followed, but for those to a directory that they are in; what is
    hidden, and what is no file, is left out."""
    for place, below, names in os.walk(folder, followlinks=True):
        here = Path(place).resolve()
        above = {here, *here.parents}
        below[:] = [name for name in below if name[0] != "." and Path(place, name).resolve() not in above]
        yield from (path for path in (Path(place, name) for name in names) if path.is_file())


def nothing_to_show(probe: Probe, tree: SourceView, headers: Mapping[str, object], *, every_probe: bool = False) -> str:
    """Return the reason why a probe does not run on this tree; empty if it runs.

    ``headers`` are the available third-party headers.
    """
    if needs := probe.needs:
        files = " or ".join(needs.search)
        if needs.without and _has(tree, needs.search, needs.without):
            return f"this release has `{needs.without}` in {files}: the patch has nothing to do"
        if not _has(tree, needs.search, needs.tokens):
            return f"this release has no {f'`{needs.tokens}` in ' if needs.tokens else ''}{files}"
    missing = [name for name in probe.uses if name not in headers]
    if missing:
        how = (
            "name them with --torch-include"
            if "torch" in missing
            else "`verify --layers` takes its tree beside this one"
        )
        return f"it takes the real headers of {', '.join(missing)}: {how}"
    if probe.slow and not every_probe:
        return "it takes the compiler minutes: --all runs it"
    return ""


def _has(tree: SourceView, search: Sequence[str], text: str) -> bool:
    """Return whether one of the files has the tokens. One that cannot be read as C++ counts: the compiler decides."""
    tokens = words(text)
    for path in (path for pattern in search for path in tree.root.glob(pattern) if path.is_file()):
        name = path.relative_to(tree.root).as_posix()
        content = tree.overlay[name] if name in tree.overlay else path.read_bytes()
        try:
            if content is not None and (not tokens or lex(decode(content, name)).find(tokens)):
                return True
        except (LexError, Refused):
            return True
    return False
