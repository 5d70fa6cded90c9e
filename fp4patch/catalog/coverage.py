"""Functions that the patches of a tree change, with the checks of each on each target."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from fp4patch.core.arch import Arch
from fp4patch.core.document import Document
from fp4patch.core.verdict import Verdict


class How(StrEnum):
    """Method by which a function was checked; the strongest one is first."""

    EXECUTED = "executed"
    """Its machine code was executed, and the output compared with the specification."""
    EVALUATED = "evaluated"
    """The build's own functions were evaluated, before and after."""
    IDENTICAL = "identical"
    """Its machine code has the same bytes as the pristine tree's."""
    COUNTED = "counted"
    """Its machine code satisfies the variant's rules."""


@dataclass(frozen=True)
class FunctionCheck(Document):
    """One check of a function on one target."""

    check: str
    """The id of a probe or of a build: ``cutlass/float-to-e2m1-x8``."""
    arch: Arch
    how: How
    verdict: Verdict


@dataclass(frozen=True)
class Covered(Document):
    """One function that the patches touch, with every check of it."""

    function: str
    """Its name, with namespaces and parameters; the path of a file that is checked as a whole."""
    files: tuple[str, ...]
    """Files that define it."""
    checks: tuple[FunctionCheck, ...]
    missing: tuple[Arch, ...]
    """Targets on which nothing checked it."""
    because: str = ""
    """Reason why nothing did: that of ``[[unchecked]]``, or of the probes that did not run or have no code of it."""
    absent: tuple[Arch, ...] = ()
    """Targets on which nothing checked it, and for which it is not compiled, as an evaluation of the tree's own build,
    the compiler's refusal or the preprocessor's output shows. They are not among the missing ones."""

    def on(self, arch: Arch) -> FunctionCheck | None:
        """Return the strongest check on a target; a failed one before all others."""
        order = list(How)
        found = [one for one in self.checks if one.arch == arch]
        return min(found, key=lambda one: (not one.verdict.failed, order.index(one.how)), default=None)


def unchecked(coverage: Sequence[Covered]) -> tuple[Covered, ...]:
    """Return the functions that were not checked on every target."""
    return tuple(one for one in coverage if one.missing)


def without(one: Covered, absent: Sequence[Arch]) -> Covered:
    """Return a function without the missing targets for which it is not compiled."""
    gone = tuple(arch for arch in one.missing if arch in absent)
    return replace(one, missing=tuple(arch for arch in one.missing if arch not in gone), absent=(*one.absent, *gone))


def names(entry: str, function: str, files: Sequence[str] = ()) -> bool:
    """Return whether an entry of ``covers`` or ``touches`` names a function of these files, or a file.

    An entry with a slash or a dot is a glob of files, and names all their functions. Any other is the beginning of a
    function's name, with or without its namespaces; white space does not count. One that begins with ``::`` names no
    function of a namespace.
    """
    if "/" in entry or "." in re.split("[(<]", entry, maxsplit=1)[0]:
        return any(fnmatchcase(path, entry) for path in (function, *files))
    wanted = _packed(entry)
    return any(
        there.startswith(wanted) and not (_is_word(wanted[-1:]) and _is_word(there[len(wanted) : len(wanted) + 1]))
        for there in _from_each_namespace(_packed(function))
        if wanted
    )


def _from_each_namespace(name: str) -> Iterator[str]:
    yield f"::{name}"
    yield name
    end = re.search(r"[(<]|$", name)
    assert end
    yield from (name[found.end() :] for found in re.finditer("::", name[: end.start()]))


def _packed(name: str) -> str:
    return re.sub(r"\s+(?!\w)|(?<!\w)\s+", "", name.strip())


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
