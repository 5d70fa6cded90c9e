"""Files of a tree that its target's patches may be about, found by one look at the bytes of each source file."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from fp4patch.catalog.manifest import DATA, data_root, load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.source_files import CandidateFiles, glob, source_files
from fp4patch.core.store import files_hash, key, source_hash
from fp4patch.edits import conversions, exact_tests
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.operation import Look, containing
from fp4patch.tree.files import LARGEST, sha256
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import find_stamp

TOO_LARGE = f"it is larger than {LARGEST >> 20} MiB, more than any source file, and is not searched"
OUTSIDE = "the link leads out of the tree, where nothing is searched"


def candidates(tree: LockedTree, *, to_patch: bool = True) -> CandidateFiles:
    """Return the files that the patches of the tree's target may be about; not ``to_patch``, those that were patched.

    A command looks at a tree once. Refused: a directory may not be read.
    """
    if tree.candidates is None:
        patches = [patch for patch in load().patches.values() if to_patch and patch.target == tree.known.target.name]
        by_name, looks = _names(patches), {spoken: _looks(patches, spoken) for spoken in LANGUAGES}
        files, unsearched = [], {}
        for file, content in _sources(tree):
            if to_patch:
                tree.hashes[file] = _hash(content)
            if isinstance(content, str) and not by_name(file):
                unsearched[file] = content
            elif content is None or isinstance(content, str) or file in tree.on_record:
                files.append(file)  # the fold and the search report what cannot be read
            elif by_name(file) or find_stamp(content) or any(look(content) for look in looks[language(file)]):
                files.append(file)
                tree.contents[file] = content
        tree.candidates = CandidateFiles(tuple(files), unsearched)
    return tree.candidates


def basis(tree: LockedTree, patched: Mapping[str, str]) -> str:
    """Return one hash of all that decides what a variant comes to in a tree, and of what it makes of it.

    That is fp4patch, its patches and variants, each source file of the tree, and the hashes of the files ``patched``.
    """
    if not tree.hashes:
        tree.hashes.update((file, _hash(content)) for file, content in _sources(tree))
    parts = (f"{file} {digest}" for file, digest in sorted({**tree.hashes, **patched}.items()))
    data = files_hash(*(data_root() / folder for folder in DATA))
    return key(source_hash("fp4patch"), data, *map(os.fsencode, parts))


def _sources(tree: LockedTree) -> Iterator[tuple[str, bytes | str | None]]:
    """Yield each source file and its bytes, None if they cannot be read, or the reason why they are not searched."""
    apart = (tree.root / place for part in tree.known.target.contains for place in part.at)
    files, outside = source_files(tree.root, apart)
    for file in files:
        content: bytes | str | None
        try:
            with open(f"{tree.root}/{file}", "rb", buffering=0) as opened:  # noqa: PTH123 - a Path takes long
                content = opened.read() if os.fstat(opened.fileno()).st_size <= LARGEST else TOO_LARGE
        except OSError:
            content = None
        yield file, content
    yield from ((link, OUTSIDE) for link in outside)


def _hash(content: bytes | str | None) -> str:
    return sha256(content) if isinstance(content, bytes) else str(content)


def _names(patches: Iterable[Patch]) -> Callable[[str], object]:
    """Return what passes the files that an edit reads, whatever is in them."""
    globs = [promise.header for patch in patches for promise in patch.macros]
    globs += [place for patch in patches for edit in patch.edits for place in edit.always]
    return glob(tuple(dict.fromkeys(globs))).fullmatch


def _looks(patches: Iterable[Patch], spoken: str) -> tuple[Look, ...]:
    """Return the quick looks at files of a language; one of them passes each file that a patch may be about."""
    looks = [look for patch in patches for edit in patch.edits for look in edit.looks(spoken)]
    if spoken == "c++":
        looks += [containing(promise.name) for patch in patches for promise in patch.macros]
        looks += [conversions.may_convert for patch in patches if patch.conversions]
    for tests in (patch.exact_tests for patch in patches):
        if tests and spoken in exact_tests.LANGUAGES and (spoken == "python" or not tests.are_python):
            looks.append(exact_tests.may_have(spoken, tests.gates.keys()))
    return tuple(dict.fromkeys(looks))
