"""Check the whole tree, as it will be: what a patch is to leave nowhere must be gone, or be a remainder with a reason.

The edits change the places that they find; this looks for places that no edit found. Files are searched as bytes first,
and only those with a hit are read as code.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial

from fp4patch.catalog.patch import Conversions, MacroPromise, Patch
from fp4patch.catalog.plan import Plan, Planned, Read
from fp4patch.catalog.source_files import glob
from fp4patch.core.arch import Arch
from fp4patch.core.release import covers
from fp4patch.core.results import Problem, State
from fp4patch.edits import conversions, exact_tests
from fp4patch.edits.cxx import lex
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.operation import Look, PatchedTree, Place
from fp4patch.edits.preprocess import Header
from fp4patch.tree.receipt import Remainder

ADVICE = (
    "the patch does not recognize this place, which would stay as it is; "
    "`fp4patch show` names the releases it was tried on"
)
_NOT_BUILT = "a test, an example or documentation, which is not part of what is built"
not_built = glob(("tests/**", "benchmarks/**", "docs/**", "examples/**")).fullmatch


def check(wanted: Plan, pristine: Read, desired: Read) -> tuple[list[Problem], list[Remainder]]:
    """Search the tree for what its patches are to leave nowhere. ``desired`` reads it as it will be.

    Returns the places that are a reason to refuse, and those that have a reason to stay.
    """
    problems: dict[Problem, None] = {}
    remainders: dict[Remainder, None] = {}
    searches, there = _searches(wanted), set(wanted.candidates.files)
    for file in dict.fromkeys([*wanted.candidates.files, *wanted.files]):
        content = desired(file) if searches[language(file)] else b""
        if content is None:
            if file in there:
                problems[_problem("", file, None, "a file that can be searched", "one that may not be read")] = None
            continue
        for patch, look, places in searches[language(file)]:
            for place in places(file, _text(content)) if look(content) else ():
                if reason := _NOT_BUILT if not_built(file) else place.because:
                    remainders[Remainder(patch.id, file, place.line, place.found, reason)] = None
                else:
                    expected = "nothing that this patch looks for outside the places that it changes"
                    problems[_problem(patch.id, file, place.line, expected, f"`{place.found}`")] = None
    for patch in wanted.patches:
        for promise in patch.macros:
            problems |= dict.fromkeys(_macro(patch, promise, wanted, pristine, desired))
    for path, because in wanted.candidates.unsearched.items() if wanted.patches else ():
        remainders[Remainder(wanted.patches[0].id, path, 1, path, because)] = None
    known = {(problem.patch, problem.file, problem.line) for problem in problems}
    return [*problems], [place for place in remainders if (place.patch, place.file, place.line) not in known]


def _problem(patch: str, file: str, line: int | None, expected: str, found: str) -> Problem:
    return Problem(expected, found, ADVICE, patch, file, line, state=State.DRIFTED)


_Search = tuple[Patch, Look, Callable[[str, str], Iterable[Place]]]
"""Search of a patch: the quick look that passes every file with such a place, and the places in a file and its text."""


def _searches(wanted: Plan) -> dict[str, list[_Search]]:
    """Return the searches in each language that has any."""

    def patched(planned: Planned) -> PatchedTree:
        return PatchedTree(planned.options, lambda file: planned in wanted.files.get(file, ()))

    searches: dict[str, list[_Search]] = {
        spoken: [
            (planned.patch, search.look, partial(search.places, patched(planned)))
            for planned in wanted.edits
            for search in planned.edit.searches(spoken)
        ]
        for spoken in LANGUAGES
    }
    for patch in wanted.patches:
        if tests := patch.exact_tests:
            gates = {name for name, versions in tests.gates.items() if covers(versions, wanted.tree.version)}
            for spoken in exact_tests.LANGUAGES:
                tested = partial(_exact_tests, glob(tests.files).fullmatch, spoken, gates)
                searches[spoken].append((patch, exact_tests.may_have(spoken, gates), tested))
        if known := patch.conversions:
            searches["c++"].append((patch, conversions.may_convert, partial(_conversions, known)))
    return searches


def _exact_tests(
    searched: Callable[[str], object], spoken: str, gates: Set[str], file: str, text: str
) -> Iterable[Place]:
    return exact_tests.places(spoken, gates, text) if searched(file) and not not_built(file) else ()


def _conversions(known: Conversions, file: str, text: str) -> Iterable[Place]:
    return conversions.outside(text, {*known.under} if glob(known.files).fullmatch(file) else set())


def _macro(patch: Patch, promise: MacroPromise, wanted: Plan, pristine: Read, desired: Read) -> Iterator[Problem]:
    """Yield the problems of a macro of the patched tree: defined where it must be off, or different from before."""
    header, name = promise.header, promise.name
    for file in wanted.candidates.files:
        if file != header and language(file) == "c++" and _defines(desired(file) or b"", name):
            yield _problem(patch.id, file, None, f"{name} defined in {header} alone", "a definition")
    if desired(header) is None:
        yield _problem(patch.id, header, None, "the file is there", "no such file")
        return
    before, after = (Header(header, partial(_text_of, read), promise.include) for read in (pristine, desired))
    for arch in (*promise.off, *promise.same):
        was, found = (read.macro(name, Arch.parse(arch), promise.cuda) for read in (before, after))
        if found and found.undecided:
            unknown = f"{found.undecided}, which nothing in the tree defines"
            yield _problem(patch.id, *found.place, f"conditions of {name} that the tree decides", unknown)
        elif found and arch in promise.off:
            yield _problem(patch.id, *found.place, f"{name} not defined for {arch}", "a definition")
        elif arch in promise.same and (found is None) != (was is None):
            yield _problem(patch.id, header, None, f"{name} for {arch} as upstream has it", "another")


def _defines(content: bytes, name: str) -> bool:
    """Tell whether live code defines the macro. A text that does not have the words in that order is not lexed."""
    text = _text(content) if name.encode() in content else ""
    if not re.search(rf"define(?:\s|/\*.*?\*/)+{name}\b", re.sub(r"\\[ \t]*\r?\n", "", text), re.DOTALL):
        return False
    return bool(lex(text).find(("#", "define", name)))


def _text_of(read: Read, path: str) -> str | None:
    content = read(path)
    return None if content is None else _text(content)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
