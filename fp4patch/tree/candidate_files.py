"""Files of a tree that its target's patches may be about, found by one look at the bytes of each source file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Absence, Patch
from fp4patch.catalog.whole import CandidateFiles, Whole, glob
from fp4patch.edits.live_text import LANGUAGES, language
from fp4patch.edits.operation import Look, within
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


def candidates(tree: LockedTree, patches: Sequence[Patch] = ()) -> CandidateFiles:
    """Return the files that the patches may be about: by default, all patches of the tree's target.

    A command looks at a tree once. Refused: a directory may not be read.
    """
    if tree.candidates is None:
        every = load().patches.values()
        tree.candidates = _candidates(tree, patches or tuple(p for p in every if p.target == tree.known.target.name))
    return tree.candidates


def _candidates(tree: LockedTree, patches: Sequence[Patch]) -> CandidateFiles:
    whole = Whole(tree.root, (tree.root / place for part in tree.known.target.contains for place in part.at))
    by_name, looks = _names(patches), {spoken: _looks(patches, spoken) for spoken in LANGUAGES}
    files = []
    for file in whole.files:
        try:
            content = _read(f"{whole.root}/{file}")
        except OSError:  # the fold and the search report it
            files.append(file)
            continue
        if file in tree.on_record:
            files.append(file)
        elif (
            by_name(file)
            or may_be_stamped(content)
            or any(look.passes(file, content) for look in looks[language(file)])
        ):
            files.append(file)
            tree.contents[file] = content
    return CandidateFiles(tuple(files), tuple(whole.outside))


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path for each of ten thousand files takes long
        return file.read()


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
