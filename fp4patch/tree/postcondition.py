"""Check the whole tree, as it will be: what a patch is to leave nowhere must be gone, or be a remainder with a reason.

The edits change the places that they find; this looks for places that no edit found. Files are searched as bytes first,
and only those with a hit are read as code.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import partial

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from fp4patch.catalog.patch import Conversions, MacroPromise, Patch
from fp4patch.catalog.plan import Plan, Planned, Read
from fp4patch.catalog.source_files import glob
from fp4patch.core.release import covers
from fp4patch.core.results import Problem, State
from fp4patch.edits import conversions, exact_tests
from fp4patch.edits.cxx import lex
from fp4patch.edits.language import LANGUAGES, language
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Look, PatchedTree, Place
from fp4patch.edits.preprocess import Header, target_macros
from fp4patch.tree.result import Remainder

ADVICE = (
    "the patch does not recognize this place, which would stay as it is; "
    "`fp4patch show` names the releases it was tried on"
)


_NOT_BUILT = "a test, an example or documentation, which is not part of what is built"
not_built = glob(("tests/**", "benchmarks/**", "docs/**", "examples/**")).fullmatch


@dataclass(frozen=True)
class Checked:
    """Code that is left in a tree: as a refusal, or as remainders."""

    problems: tuple[Problem, ...] = ()
    remainders: tuple[Remainder, ...] = ()


def check(wanted: Plan, pristine: Read, desired: Read) -> Checked:
    """Search the tree for what its patches are to leave nowhere. ``desired`` reads it as it will be."""
    problems: list[Problem] = []
    remainders: dict[Remainder, None] = {}
    searches, there = _searches(wanted), set(wanted.candidates.files)
    for file in dict.fromkeys([*wanted.candidates.files, *wanted.files]):
        if not searches[language(file)]:
            continue
        if (content := desired(file)) is None:
            if file in there:
                found_ = "one that may not be read"
                problems.append(Problem("a file that can be searched", found_, file=file, state=State.DRIFTED))
            continue
        for patch, look, places in searches[language(file)]:
            for place in places(file, content.decode("utf-8", "surrogateescape")) if look(content) else ():
                if reason := _NOT_BUILT if not_built(file) else place.because:
                    remainders[Remainder(patch.id, file, place.line, place.found, reason)] = None
                else:
                    problems.append(_problem(patch, file, place))
    for patch in wanted.patches:
        for promise in patch.macros:
            problems += _macro(patch, promise, wanted, pristine, desired)
    for path, because in wanted.candidates.unsearched.items():
        remainders[Remainder(wanted.patches[0].id, path, 1, path, because)] = None
    known = {(problem.patch, problem.file, problem.line) for problem in problems}
    return Checked(
        tuple(dict.fromkeys(problems)), tuple(one for one in remainders if (one.patch, one.file, one.line) not in known)
    )


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


def _problem(patch: Patch, file: str, place: Place) -> Problem:
    expected = "nothing that this patch looks for outside the places that it changes"
    return Problem(expected, f"`{place.found}`", ADVICE, patch.id, file, place.line, state=State.DRIFTED)


def predates(version: Version | None, patch: Patch) -> bool:
    """Tell whether a release is older than all that a patch is for: it may never have had a file."""
    oldest = min((Version(s.version) for s in SpecifierSet(patch.applies) if s.operator == ">="), default=None)
    return version is not None and oldest is not None and version < oldest


def _macro(patch: Patch, promise: MacroPromise, wanted: Plan, pristine: Read, desired: Read) -> Iterator[Problem]:
    """Return the problem of a macro of the patched tree: defined where it must be off, or different from before."""
    definers = [promise.header]
    for file in wanted.candidates.files:
        content = desired(file) if file != promise.header and language(file) == "c++" else None
        if content is not None and promise.name.encode() in content and _defines(content, promise.name):
            definers.append(file)
    for file in definers:
        if desired(file) is None:
            if file == promise.header and not predates(wanted.tree.version, patch):
                advice = "this is not the whole source tree, or an unknown release"
                yield Problem("the file is there", "no such file", advice, patch.id, file, state=State.DRIFTED)
            continue
        try:
            yield from _promised(patch, promise, file, pristine, desired)
        except (LexError, ValueError) as error:
            expected = f"conditions that decide {promise.name}"
            yield Problem(expected, str(error), ADVICE, patch.id, file, state=State.DRIFTED)


def _defines(content: bytes, name: str) -> bool:
    """Tell whether live code defines the macro. A text that does not have the words in that order is not lexed."""
    text = content.decode("utf-8", "surrogateescape")
    if not re.search(rf"define(?:\s|/\*.*?\*/)+{name}\b", re.sub(r"\\[ \t]*\r?\n", "", text), re.DOTALL):
        return False
    return bool(lex(text).find(("#", "define", name)))


def _promised(patch: Patch, promise: MacroPromise, file: str, pristine: Read, desired: Read) -> Iterator[Problem]:
    before, after = (Header.at(file, promise.name, _texts(read), promise.include) for read in (pristine, desired))
    for arch in (*promise.off, *promise.same):
        macros = target_macros(arch, promise.cuda)
        found = after.defined(macros)
        if arch in promise.off and found:
            expected = f"{promise.name} not defined for {arch}"
            yield Problem(expected, "a definition", ADVICE, patch.id, found.file, found.line, state=State.DRIFTED)
        elif arch in promise.same and (found is None) != (before.defined(macros) is None):
            expected = f"{promise.name} for {arch} as upstream has it"
            yield Problem(expected, "another", ADVICE, patch.id, file, state=State.DRIFTED)
    for where, line, name in after.undecided(promise.cuda):
        expected = f"conditions of {promise.name} that the tree decides"
        found_ = f"{name}, which nothing in the tree defines"
        yield Problem(expected, found_, ADVICE, patch.id, where, line, state=State.DRIFTED)


def _texts(read: Read) -> Callable[[str], str | None]:
    def text(path: str) -> str | None:
        content = read(path)
        return None if content is None else content.decode("utf-8", "surrogateescape")

    return text
