"""Check the whole tree, as it will be: what a patch is to leave nowhere must be gone, or be a remainder with a reason.

The edits change the places that they find; this looks for places that no edit found. Files are searched as bytes first,
and only those with a hit are read as code.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import Plan, Planned, Read
from fp4patch.core.results import Problem, State
from fp4patch.core.tree_path import not_built
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.look import Look
from fp4patch.edits.operation import NO_OPTIONS, PatchedTree, Place, Search
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
    for file in dict.fromkeys([*wanted.candidates.files, *wanted.files]):
        spoken = language(file)
        content = desired(file) if searches[spoken] else b""
        if content is None:
            if file in there:
                problems[_problem("", file, None, "a file that can be searched", "one that may not be read")] = None
            continue
        passing = wanted.passing(spoken, content) if searches[spoken] else ()
        for patch, search in searches[spoken]:
            for place in search.places(file, _text(content)) if search.look in passing else ():
                if reason := _NOT_BUILT if not_built(file) else place.because:
                    remainders[Remainder(patch.id, file, place.line, place.found, reason)] = None
                else:
                    problems[_problem(patch.id, file, place.line, search.expected, f"`{place.found}`")] = None
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
    """A search of a patch, whose places depend on a file and its text alone."""

    look: Look
    places: Callable[[str, str], Iterable[Place]]
    expected: str


def _searches(wanted: Plan) -> dict[str, list[tuple[Patch, _Search]]]:
    """Return the searches in each language."""

    def bound(search: Search, planned: Planned | None = None) -> _Search:
        options = planned.options if planned else NO_OPTIONS
        patched = PatchedTree(options, lambda file: planned in wanted.files.get(file, ()))
        return _Search(search.look, partial(search.places, patched), search.expected)

    searches: dict[str, list[tuple[Patch, _Search]]] = {}
    for spoken in LANGUAGES:
        of_edits = (
            (planned.patch, bound(search, planned))
            for planned in wanted.edits
            for search in planned.edit.searches(spoken)
        )
        of_promises = (
            (patch, bound(search))
            for patch in wanted.patches
            for promise in patch.promises
            for search in promise.searches(spoken, wanted.tree.version)
        )
        searches[spoken] = [*of_edits, *of_promises]
    return searches


def _text_of(read: Read, path: str) -> str | None:
    content = read(path)
    return None if content is None else _text(content)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
