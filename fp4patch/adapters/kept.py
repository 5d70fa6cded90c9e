"""Evaluations of a tree's build that are in the user's cache, found by all that an evaluation reads of the tree.

That are the names of the tree's files, the contents of those in the build's own language, and the environment
variables that CMake's text names. Of any other file that CMake reads, the hash is kept beside the result.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.target import Build
from fp4patch.core.store import Store, key, source_hash

# Example: ENV{VLLM_FLASH_ATTN_SRC_DIR}
_VARIABLE = re.compile(r"\bENV\{(\w+)\}")
_READ = {"cmake": (".cmake", "CMakeLists.txt"), "jit": (".py", ".txt", ".toml", ".jinja")}
"""Ends of the names of files whose contents an evaluation of this kind may read."""


class BuildFiles:
    """What evaluations of a build read of a tree, looked at once."""

    def __init__(self, root: Path, build: Build, store: Store) -> None:
        self._root, self._store = root, store
        self._names, self._hashes = set[str](), dict[str, str]()
        self._ends = _READ[build.kind]
        variables = set[str]()
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name != ".git"]
            inside = os.path.relpath(folder, root)
            paths = (os.path.normpath(f"{inside}/{name}") for name in (*names, *below))
            for path in paths:
                self._names.add(path)
                if path.endswith(self._ends) and (content := _content(root / path)) is not None:
                    self._hashes[path] = key(content)
                    if build.kind == "cmake":
                        variables |= set(_VARIABLE.findall(content.decode("utf-8", "replace")))
        self._fixed = (
            source_hash("fp4patch.adapters", "fp4patch.core"),
            sys.version,
            *(f"{name}={os.environ.get(name)}" for name in sorted(variables)),
        )

    def over(self, overlay: Mapping[str, bytes | None]) -> "KeptResults":
        """Return the results of the tree with these files over it."""
        gone = {path for path, content in overlay.items() if content is None}
        hashes = {path: key(content) for path, content in overlay.items() if content is not None}
        names = sorted((self._names | hashes.keys()) - gone)
        ours = sorted(
            item for item in (self._hashes | hashes).items() if item[0].endswith(self._ends) and item[0] not in gone
        )
        parts = (f"{path} {digest}" for path, digest in ours)
        basis = key(*self._fixed, *map(os.fsencode, names), "contents", *map(os.fsencode, parts))
        return KeptResults(self._store, self._root, overlay, basis)


class KeptResults:
    """Results of evaluations of one state of a tree."""

    def __init__(self, store: Store, root: Path, overlay: Mapping[str, bytes | None], basis: str) -> None:
        self._store, self._root, self._overlay, self._basis = store, root, overlay, basis

    def get(self, *question: str) -> Any:
        """Return what was kept for a question; None if nothing was."""
        return self._store.get(key(self._basis, *question))

    def put(self, answer: object, *question: str) -> None:
        """Keep the answer to a question."""
        self._store.put(key(self._basis, *question), answer)

    def row(self, *question: str) -> BuildRow | None:
        """Return the row that was kept for a question, unless a file that CMake read for it is another one now."""
        kept = self.get(*question)
        if not kept or any(self._now(path) != digest for path, digest in kept["reads"].items()):
            return None
        parts = {(target, what): tuple(values) for target, what, values in kept["parts"]}
        lines = {path: frozenset(numbers) for path, numbers in kept["ran"].items()}
        code, ptx = ({name: tuple(archs) for name, archs in kept[kind].items()} for kind in ("code", "ptx"))
        return BuildRow(kept["cuda"], kept["asked"], (), code=code, ptx=ptx, parts=parts, ran=lines)

    def put_row(self, row: BuildRow, *question: str) -> None:
        """Keep a row. One with an error is not kept: it may be the machine's."""
        if row.error:
            return
        self.put(
            {
                "cuda": row.cuda,
                "asked": row.asked,
                "code": row.code,
                "ptx": row.ptx,
                "parts": [[target, what, values] for (target, what), values in row.parts.items()],
                "ran": {path: sorted(lines) for path, lines in row.ran.items()},
                "reads": {path: self._now(path) for path in row.reads},
            },
            *question,
        )

    def _now(self, path: str) -> str | None:
        content = self._overlay[path] if path in self._overlay else _content(self._root / path)
        return None if content is None else key(content)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
