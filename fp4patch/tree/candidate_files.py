"""Files of a tree that its target's patches may be about, found by one look at the bytes of each source file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.source_files import CandidateFiles, SourceFiles, glob
from fp4patch.edits import exact_tests
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.operation import Look, containing
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import may_be_stamped


def candidates(tree: LockedTree, patches: Sequence[Patch] = ()) -> CandidateFiles:
    """Return the files that the patches may be about: by default, all patches of the tree's target.

    A command looks at a tree once. Refused: a directory may not be read.
    """
    if tree.candidates is None:
        every = load().patches.values()
        tree.candidates = _candidates(tree, patches or tuple(p for p in every if p.target == tree.known.target.name))
    return tree.candidates


def _candidates(tree: LockedTree, patches: Sequence[Patch]) -> CandidateFiles:
    sources = SourceFiles(tree.root, (tree.root / place for part in tree.known.target.contains for place in part.at))
    by_name, looks = _names(patches), {spoken: _looks(patches, spoken) for spoken in LANGUAGES}
    files = []
    for file in sources.files:
        try:
            content = _read(f"{sources.root}/{file}")
        except OSError:  # the fold and the search report it
            files.append(file)
            continue
        if file in tree.on_record:
            files.append(file)
        elif by_name(file) or may_be_stamped(content) or any(look(content) for look in looks[language(file)]):
            files.append(file)
            tree.contents[file] = content
    return CandidateFiles(tuple(files), tuple(sources.outside))


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


def _looks(patches: Iterable[Patch], spoken: str) -> tuple[Look, ...]:
    """Return the quick looks at files of a language; one of them passes each file that a patch may be about."""
    looks = [look for patch in patches for edit in patch.edits for look in edit.looks(spoken)]
    if spoken == "c++":
        looks += [containing(promise.name) for patch in patches for promise in patch.macros]
    looks += [
        exact_tests.may_have(spoken, one.gates.keys())
        for patch in patches
        if (one := patch.exact_tests) and spoken in exact_tests.LANGUAGES
    ]
    return tuple(looks)
