"""Files of a tree that its target's patches may be about, found by one look at the bytes of each source file."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fp4patch.catalog.manifest import DATA, data_root
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.source_files import CandidateFiles, source_files
from fp4patch.core.globs import glob
from fp4patch.core.store import files_hash, key, source_hash
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.look import Look, QuickLooks
from fp4patch.tree.files import LARGEST, sha256
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import find_stamp

TOO_LARGE = f"it is larger than {LARGEST >> 20} MiB, more than any source file, and is not searched"
OUTSIDE = "the link leads out of the tree, where nothing is searched"


@dataclass(frozen=True, eq=False)
class Scan:
    """Source files of a tree, each looked at once, for some patches."""

    candidates: CandidateFiles
    """Those that the patches may be about, and those that fp4patch may have written."""
    contents: Mapping[str, bytes]
    """The bytes of the candidates that can be read and are not on record."""
    hashes: Mapping[str, str]
    """The hash of each source file, or the reason why it was not looked at."""
    looks: QuickLooks
    """Quick looks of the patches."""

    passed: dict[tuple[str, bytes], frozenset[Look]]
    """The looks that pass contents of a language, of those that were asked about."""

    def passing(self, language: str, content: bytes) -> frozenset[Look]:
        """Return the quick looks that pass a file, by its language and its bytes; each content is searched once."""
        if (language, content) not in self.passed:
            self.passed[language, content] = self.looks.passing(language, content)
        return self.passed[language, content]


def scan(tree: LockedTree, patches: Sequence[Patch]) -> Scan:
    """Look at each source file of a tree. Refused: a directory may not be read."""
    by_name = _names(patches)
    looks = QuickLooks({spoken: _looks(patches, spoken) for spoken in LANGUAGES})
    files: list[str] = []
    unsearched: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    hashes: dict[str, str] = {}
    passed: dict[tuple[str, bytes], frozenset[Look]] = {}
    for file, content in _sources(tree):
        hashes[file] = _hash(content)
        if isinstance(content, str) and not by_name(file):
            unsearched[file] = content
        elif content is None or isinstance(content, str) or file in tree.on_record:
            files.append(file)  # the fold and the search report what cannot be read
        elif (found := looks.passing(language(file), content)) or by_name(file) or find_stamp(content):
            files.append(file)
            contents[file] = content
            passed[language(file), content] = found
    tree.read_before(contents)
    return Scan(CandidateFiles(tuple(files), unsearched), contents, hashes, looks, passed)


def source_hashes(tree: LockedTree) -> dict[str, str]:
    """Return the hash of each source file of a tree, or the reason why it was not looked at."""
    return {file: _hash(content) for file, content in _sources(tree)}


def basis(hashes: Mapping[str, str], patched: Mapping[str, str]) -> str:
    """Return one hash of all that decides what a variant comes to in a tree, and of what it makes of it.

    That is fp4patch, its patches and variants, the hash of each source file of the tree, and those of the files
    ``patched``.
    """
    parts = (f"{file} {digest}" for file, digest in sorted({**hashes, **patched}.items()))
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
    """Return what passes the files that a patch reads, whatever is in them."""
    globs = [place for patch in patches for part in (*patch.promises, *patch.edits) for place in part.reads]
    return glob(tuple(dict.fromkeys(globs))).fullmatch


def _looks(patches: Sequence[Patch], spoken: str) -> Iterator[Look]:
    """Yield the quick looks at files of a language; one of them passes each file that a patch may be about."""
    for patch in patches:
        for edit in patch.edits:
            yield from edit.looks(spoken)
        for promise in patch.promises:
            yield from (search.look for search in promise.searches(spoken, None))
