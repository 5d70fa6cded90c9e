"""Check the whole tree, as it will be: what a patch is to leave nowhere must be gone, or be a remainder with a reason.

The edits change the places that they find; this looks for places that no edit found. Files are searched as bytes first,
and only those with a hit are read as code. What the searches find in a text is kept in the user's cache.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import Plan, Planned, Read
from fp4patch.core.errors import SourceError
from fp4patch.core.results import Problem, State
from fp4patch.core.store import Store, cache_dir, key, source_hash
from fp4patch.core.tree_path import not_built
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.operation import NO_OPTIONS, Operation, PatchedTree, Place, Search
from fp4patch.edits.promise import Promise
from fp4patch.tree.receipt import Remainder

ADVICE = (
    "the patch does not recognize this place, which would stay as it is; "
    "`fp4patch show` names the releases it was tried on"
)
_NOT_BUILT = "a test, an example or documentation, which is not part of what is built"


def check(wanted: Plan, pristine: Read, desired: Read) -> tuple[list[Problem], list[Remainder]]:
    """Search the tree for what its patches are to leave nowhere. ``desired`` reads it as it will be.

    Returns the places that are a reason to refuse, and those that have a reason to stay.
    """
    problems: dict[Problem, None] = {}
    remainders: dict[Remainder, None] = {}
    searches, there = _searches(wanted), set(wanted.candidates.files)
    kept = _store()
    for file in dict.fromkeys([*wanted.candidates.files, *wanted.files]):
        spoken = language(file)
        content = desired(file) if searches[spoken] else b""
        if content is None:
            if file in there:
                problems[_problem("", file, None, "a file that can be searched", "one that may not be read")] = None
            continue
        passing = wanted.passing(spoken, content) if searches[spoken] else frozenset()
        asked = [one for one in searches[spoken] if one.search.look in passing]
        for one, places in zip(asked, _places(kept, asked, file, content), strict=True):
            for place in places:
                if reason := _NOT_BUILT if not_built(file) else place.because:
                    remainders[Remainder(one.patch, file, place.line, place.found, reason)] = None
                else:
                    expected = one.search.expected
                    problems[_problem(one.patch, file, place.line, expected, f"`{place.found}`")] = None
    for patch in wanted.patches:
        for promise in patch.promises:
            for breach in promise.breaches(partial(_text_of, pristine), partial(_text_of, desired)):
                problems[_problem(patch.id, *breach)] = None
    for path, because in wanted.candidates.unsearched.items() if wanted.patches else ():
        remainders[Remainder(wanted.patches[0].id, path, 1, path, because)] = None
    known = {(problem.patch, problem.file, problem.line) for problem in problems}
    return [*problems], [place for place in remainders if (place.patch, place.file, place.line) not in known]


def _problem(patch: str, file: str, line: int | None, expected: str, found: str) -> Problem:
    return Problem(expected, found, help=ADVICE, patch=patch, file=file, line=line, state=State.DRIFTED)


class _Search(NamedTuple):
    """A search of a patch in a tree, whose places depend on a file and its text alone."""

    patch: str
    search: Search
    tree: PatchedTree
    asks: str
    """All that its places depend on, but for the file."""


def _searches(wanted: Plan) -> dict[str, list[_Search]]:
    """Return the searches in each language."""

    def of(
        patch: Patch, owner: Operation | Promise, searches: Iterable[Search], planned: Planned | None = None
    ) -> Iterator[_Search]:
        options = planned.options if planned else NO_OPTIONS
        tree = PatchedTree(options, lambda file: planned in wanted.files.get(file, ()))
        for number, search in enumerate(searches):
            asks = f"{number} of {owner!r} {sorted(options.items())} {wanted.tree.version}"
            yield _Search(patch.id, search, tree, asks)

    searches: dict[str, list[_Search]] = {}
    for spoken in LANGUAGES:
        of_edits = (
            search
            for planned in wanted.edits
            for search in of(planned.patch, planned.edit, planned.edit.searches(spoken), planned)
        )
        of_promises = (
            search
            for patch in wanted.patches
            for promise in patch.promises
            for search in of(patch, promise, promise.searches(spoken, wanted.tree.version))
        )
        searches[spoken] = [*of_edits, *of_promises]
    return searches


def _store() -> Store | None:
    """Return where places are kept; None for a user without a directory for it."""
    try:
        return Store(cache_dir() / "searches")
    except SourceError:
        return None


def _places(kept: Store | None, searches: Sequence[_Search], file: str, content: bytes) -> list[list[Place]]:
    """Return what each search finds in a file."""
    if not searches:
        return []
    made_by = source_hash("fp4patch.edits", "fp4patch.cxx", "fp4patch.core")
    asks = (f"{one.tree.folded(file)} {one.asks}" for one in searches)
    name = key("places", made_by, file, content, *asks)
    found = kept.get(name) if kept else None
    if found is None:
        found = [list(one.search.places(one.tree, file, _text(content))) for one in searches]
        if kept:
            kept.put(name, found)
    return [[Place(*place) for place in places] for places in found]


def _text_of(read: Read, path: str) -> str | None:
    content = read(path)
    return None if content is None else _text(content)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
