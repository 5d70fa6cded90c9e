"""Cache of compiler results for unchanged input, so that a second verify need not compile.

As ccache's direct mode: an entry is found by the command, and holds the files that were read and their hashes. A file
that did not exist then and would be found first now is not detected here: the name of a command must contain the list
of existing files. A damaged entry is a miss.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from fp4patch.core.store import Store, key
from fp4patch.proof.source_lines import SourceLines, unescaped

_KEPT = 32  # source states kept for each command: two sides, for several releases and variants


class Dependency(NamedTuple):
    """A file that the compiler read: below the tree, the toolkit, the probe's directory or the data, or elsewhere."""

    anchor: str
    """``tree``, ``toolkit``, ``probe``, ``data``, ``include 0``, or ``file`` for an absolute path."""
    path: str

    @classmethod
    def of(cls, path: Path, anchors: Mapping[str, Path]) -> Dependency:
        """Return a path relative to the first anchor that it is below: elsewhere that is another directory."""
        for anchor, place in anchors.items():
            if path.is_relative_to(place):
                return cls(anchor, path.relative_to(place).as_posix())
        return cls("file", str(path))

    def located(self, anchors: Mapping[str, Path]) -> Path:
        """Return the path, with the anchors of this run."""
        return anchors.get(self.anchor, Path("/")) / self.path


@dataclass(frozen=True)
class Stored:
    """Result of a command: the object file, empty if ptxas refused the target, and the compiler's messages."""

    content: bytes
    log: str
    lines: SourceLines = field(default_factory=SourceLines)


class Cache:
    """Entries in a directory."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._storing = Lock()  # the two sides of a probe have one list of states, and often end at the same time

    def find(self, name: str, digest: Callable[[Dependency], str | None]) -> Stored | None:
        """Return the entry whose files still have their hashes; ``digest`` gives a file's SHA-256, None if gone."""
        for files in self._states(name):
            if all(digest(Dependency(anchor, path)) == expected for anchor, path, expected in files):
                entry = self._store.get(_result(name, files))
                if entry is not None:
                    content = base64.b64decode(entry["content"])
                    return Stored(content, entry["log"], SourceLines(**entry["lines"]))
        return None

    def store(self, name: str, files: Sequence[tuple[Dependency, str]], stored: Stored) -> None:
        """Remember what came of these files."""
        # The tree's files first: if anything changed, most likely they did, and the comparison is over at once.
        rows = sorted((file.anchor != "tree", *file, sha256) for file, sha256 in files)
        read = [list(row[1:]) for row in rows]
        entry = asdict(stored) | {"content": base64.b64encode(stored.content).decode()}
        self._store.put(_result(name, read), entry)
        with self._storing:
            others = [state for state in self._states(name) if state != read]
            self._store.put(key("states", name), [read, *others][:_KEPT])

    def _states(self, name: str) -> list[list[list[str]]]:
        return self._store.get(key("states", name)) or []


def _result(name: str, files: Sequence[Sequence[str]]) -> str:
    return key("result", name, json.dumps(files))


def files_read(listed: Path, base: Path) -> list[Path]:
    r"""Return the files that a compiler read, from its dependency file for make (``out : a \`` and so on, where ``\ ``
    is a space within a name), or from the lines ``# 1 "a" 1`` of preprocessed text."""
    text = listed.read_text(encoding="utf-8", errors="surrogateescape")
    if listed.suffix == ".ii":
        found = {unescaped(name) for name in _MARKER.findall(text)}
    else:
        _, _, names = text.replace("\\\n", " ").partition(": ")
        found = {re.sub(r"\\([ #])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|[^\s\\])+", names)}
    return sorted({Path(os.path.normpath(base / name)) for name in found})


_MARKER = re.compile(r'(?:\A# \d+ "(?=.*"$)|^# 1 "(?=.*" 1(?: 3)?(?: 4)?$))((?:[^"\\]|\\.)+)"', re.MULTILINE)
"""The first line of preprocessed text, which names the source, and those where another file begins."""
