"""Files of a tree that its target's patches may be about, found by one look at the bytes of each source file.

The user's cache keeps for each file its stat data and, if a patch may be about it, its SHA-256. A file whose stat data
are the same is not read again, as in git's index: a change of its content changes the time of its inode (ctime), which
no program can set back.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from fp4patch.catalog.manifest import data_root, load
from fp4patch.catalog.patch import Absence, Patch
from fp4patch.catalog.whole import Concerned, Whole, glob
from fp4patch.core.kept import digest, keep, recall
from fp4patch.edits.live_text import LANGUAGES, language
from fp4patch.edits.operation import Look, within
from fp4patch.tree.journal import sha256
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import may_be_stamped


class Quick(NamedTuple):
    """A quick look at the bytes of a file, and the files that it is for; None: all."""

    look: Look
    files: re.Pattern[str] | None = None

    def passes(self, file: str, content: bytes) -> object:
        """Return whether a file is one of these, and passes."""
        return self.look(content) and (self.files is None or self.files.fullmatch(file))

    @classmethod
    def of(cls, absence: Absence) -> Quick:
        """Return the look that passes each file with code that must be absent."""
        return cls(partial(_mentioned, absence.mention), glob(absence.files))


_TREES = 16
"""Trees that the cache knows."""
_TICK = 50_000_000
"""Nanoseconds within which two changes of a file may get the same time: a tick of the kernel is 10 ms at most."""
_COARSE_TICK = 2_000_000_000
"""The same for a file system whose times are whole seconds."""


@dataclass(frozen=True)
class _Seen:
    files: dict[str, str]
    """Stat data of each source file, and behind a blank the SHA-256 of one that a patch may be about."""


def concerned(tree: LockedTree, patches: Sequence[Patch] = ()) -> Concerned:
    """Return the files that the patches may be about: by default, all patches of the tree's target.

    A command looks at a tree once. Refused: a directory may not be read.
    """
    if tree.concerned is None:
        every = load().patches.values()
        tree.concerned = _concerned(tree, patches or tuple(p for p in every if p.target == tree.known.target.name))
    return tree.concerned


def _concerned(tree: LockedTree, patches: Sequence[Patch]) -> Concerned:
    root, began = tree.root, _now()
    whole = Whole(root, (root / place for part in tree.known.target.contains for place in part.at))
    name = repr((str(root), digest(data_root()), [(p.id, p.edits, p.absent, p.macros) for p in patches]))
    seen = recall("trees", name, {"_Seen": _Seen})
    before = seen.files if isinstance(seen, _Seen) else {}
    by_name, looks = _names(patches), {spoken: _looks(patches, spoken) for spoken in LANGUAGES}
    files, now = [], dict[str, str]()
    for file in whole.files:
        path = f"{whole.root}/{file}"
        try:
            found = os.stat(path)  # noqa: PTH116 - a Path for each of ten thousand files takes as long as the rest
            state = f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"
            known, _, sha = before.get(file, "").partition(" ")
            if known != state:
                content = _read(path, found.st_size)
                about = (
                    by_name(file)
                    or may_be_stamped(content)
                    or any(one.passes(file, content) for one in looks[language(file)])
                )
                sha = sha256(content) or "" if about else ""
                if about and file not in tree.on_record:
                    tree.contents[file] = content
        except OSError:  # the fold and the search report it
            files.append(file)
            continue
        if sha or file in tree.on_record:
            files.append(file)
            if file not in tree.on_record:
                tree.looked_at[file] = sha
        if _is_settled(found, began):
            now[file] = f"{state} {sha}" if sha else state
    if now != before:
        keep("trees", name, _Seen(now), most=_TREES)
    return Concerned(tuple(files), tuple(whole.outside))


_now = time.time_ns


def _is_settled(found: os.stat_result, now: int) -> bool:
    """Tell whether a later change of a file will show in its stat data."""
    return found.st_ctime_ns < now - (_TICK if found.st_ctime_ns % 1_000_000_000 else _COARSE_TICK)


def _read(path: str, size: int) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - see above
        content = file.read(size + 1)
        return content + file.read() if len(content) > size else content


def _names(patches: Iterable[Patch]) -> Callable[[str], object]:
    """Return what passes the files that an edit reads, whatever is in them."""
    globs: list[str] = []
    for patch in patches:
        globs += (promise.header for promise in patch.macros)
        for edit in patch.edits:
            globs += edit.always
    return glob(tuple(dict.fromkeys(globs))).fullmatch


def _looks(patches: Iterable[Patch], spoken: str) -> tuple[Quick, ...]:
    """Return the quick looks at files of a language; one of them passes each file that a patch may be about."""
    return tuple(dict.fromkeys(chain.from_iterable(_looks_of(patch, spoken) for patch in patches)))


def _looks_of(patch: Patch, spoken: str) -> Iterable[Quick]:
    for edit in patch.edits:
        yield from map(Quick, edit.looks(spoken))
    yield from (Quick.of(one) for one in patch.absent if one.code == spoken)
    if spoken == "c++":
        yield from (Quick(within(promise.name)) for promise in patch.macros)


def _mentioned(parts: tuple[str, ...], content: bytes) -> bool:
    return all(look(content) for look in _mentions(parts))


@lru_cache
def _mentions(parts: tuple[str, ...]) -> tuple[Look, ...]:
    return tuple(within(part) if part.isalnum() else re.compile(_faster(part).encode()).search for part in parts)


def _faster(pattern: str) -> str:
    r"""Return an equal pattern with ``\b1`` as ``1(?<=\b1)``: re looks for a character faster than for a boundary."""
    return re.sub(r"(?<!\\)\\b(\w)(?![?*+{])", r"\1(?<=\\b\1)", pattern)
