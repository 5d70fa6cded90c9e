"""The functions that a tree's patches touch, and what ``verify`` checked of each on each target."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from fp4patch.catalog.coverage import Covered, FunctionCheck, How, names
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Refused
from fp4patch.core.problem import Problem
from fp4patch.core.tree_path import CXX
from fp4patch.core.verdict import Verdict
from fp4patch.edits.functions import WHOLE, touched
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.live_text import language
from fp4patch.edits.surroundings import macros_since, targets_unseen, variables_since
from fp4patch.proof.builds import check_id
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.result import BuildResult, ProbeResult, SetAside
from fp4patch.proof.source_lines import SourceLines
from fp4patch.sass.text import kernel_of
from fp4patch.tree.files import decode


def touched_functions(
    root: Path, target: Target, before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> dict[str, dict[str, tuple[range, ...]]]:
    """Return the files that patches change in a tree with the functions that they touch, each with its lines.

    A file of another language, or one that is not understood, counts as a whole, by its path.
    """
    old, new, whole = _texts(before, after)
    read = _Headers(root, target, after)
    try:
        found = touched(old, new, read.mentioning)
    except LexError:
        found = {path: {path: WHOLE} for path in new}
    return found | {path: {path: WHOLE} for path in whole}


def macros_of_builds(
    root: Path,
    target: Target,
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    probes: Sequence[Probe],
) -> Iterator[Problem]:
    """Yield a problem for each macro, or variable of CMake, on which the patched text depends and which no check
    varies.

    A macro that is named after a target, and that the tree's headers define, differs between the targets alone.
    """
    old, new, others = _texts(before, after)
    varied = {name for probe in probes for name in probe.defines}
    read = _Headers(root, target, after)

    def of_target(name: str) -> bool:
        definition = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", re.MULTILINE)
        texts = read.mentioning(frozenset((name,))).values() if _NAMED_AFTER_TARGET.search(name) else ()
        return any(definition.search(text) for text in texts)

    found: list[tuple[str, int, str]] = []
    with suppress(LexError):  # the file counts as a whole
        found += [one for one in macros_since(old, new) if not (one[2] in varied or of_target(one[2]))]
    for path in others:
        if language(path) == "cmake":
            with suppress(LexError, Refused):
                texts = (decode(content or b"", path) for content in (before.get(path), after[path]))
                found += [(path, *one) for one in variables_since(*texts)]
    for path, line, name in found:
        expected = "text that is the same in every build, or a check of each"
        help_ = "remove it from the patch, or give a probe that defines it"
        yield Problem(expected, f"`{name}`, which no check varies", help_, file=path, line=line)


_NAMED_AFTER_TARGET = re.compile(r"SM_?\d{2,3}")


def targets_without_a_check(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None], results: Sequence[ProbeResult]
) -> Iterator[Problem]:
    """Yield a problem for each condition of the patched text by which a target differs from all that were compiled."""
    old, new, _ = _texts(before, after)
    seen = {result.arch for result in results if result.after}
    with suppress(LexError):  # the file counts as a whole
        for path, line, condition, arch in targets_unseen(old, new, seen) if seen else ():
            help_ = "let a probe name the target in `also`, or correct the condition"
            yield Problem(
                "code that some target has that was compiled", f"`{condition}` for {arch}", help_, file=path, line=line
            )


def undeclared(functions: Mapping[str, Iterable[str]], patches: Sequence[Patch]) -> Iterator[Problem]:
    """Yield a problem for each function that is touched although no patch declares it."""
    for path, found in functions.items():
        for function in found:
            if not any(names(entry, function, [path]) for patch in patches for entry in patch.touches):
                help_ = "add it to `touches`, with a check, or correct the edit"
                yield Problem("functions that a patch declares", f"{function} is touched too", help_, file=path)


def _texts(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return the C++ files that differ, as they were and as they are, and the paths of all others that differ."""
    old, new, whole = dict[str, str](), dict[str, str](), list[str]()
    for path, content in after.items():
        if content is None or content == before.get(path):
            continue
        try:
            if PurePosixPath(path).suffix not in CXX:
                raise Refused(path)
            old[path], new[path] = decode(before.get(path) or b"", path), decode(content, path)
        except Refused:
            whole.append(path)
    return old, new, tuple(whole)


class _Headers:
    """The C++ files in the include directories of a tree, read once."""

    def __init__(self, root: Path, target: Target, written: Mapping[str, bytes | None]) -> None:
        self._root, self._target, self._written = root, target, written
        self._contents: dict[str, bytes] = {}

    def mentioning(self, macros: frozenset[str]) -> dict[str, str]:
        """Return the files that have one of these names in them."""
        if not macros:
            return {}
        wanted = [name.encode() for name in macros]
        return {
            path: content.decode("utf-8", "replace")
            for path, content in self._all()
            if any(name in content for name in wanted)
        }

    def _all(self) -> Iterator[tuple[str, bytes]]:
        if not self._contents:
            for include in self._target.include:
                for place, _, files in os.walk(self._root / include):
                    for name in files:
                        if PurePosixPath(name).suffix in CXX:
                            path = Path(place, name)
                            with suppress(OSError):  # the compiler reports a header that it cannot read
                                self._contents[path.relative_to(self._root).as_posix()] = path.read_bytes()
            self._contents |= {path: content for path, content in self._written.items() if content is not None}
        yield from ((path, content) for path, content in self._contents.items() if PurePosixPath(path).suffix in CXX)


def coverage(
    functions: Mapping[str, Mapping[str, Sequence[range]]],
    patches: Sequence[Patch],
    probes: Sequence[Probe],
    results: Sequence[ProbeResult],
    lines: Mapping[tuple[str, Arch], SourceLines],
    aside: Sequence[SetAside],
    builds: Sequence[BuildResult],
    executed: Executed | None,
    archs: Sequence[Arch],
) -> tuple[Covered, ...]:
    """Return each function that is touched, with the checks of it that ran.

    ``functions`` are by file, with their lines; ``lines`` those of which each probe has code. A probe that names a
    function in ``covers`` and has no code of it on a target does not check it there.
    """
    files: dict[str, list[str]] = {}
    for path, found in functions.items():
        for function in found:
            files.setdefault(function, []).append(path)
    ran = {
        (one.probe, one.arch)
        for one in (executed.executions if executed else ())
        if one.side == "patched" and not one.unsupported and (one.report or one.batch)
    }
    by_id = {probe.id: probe for probe in probes}
    covering = {check_id(patch, one): one.covers for patch in patches for one in patch.evaluated}
    failed = {one.check: one.verdict for one in reversed(builds) if one.verdict.failed}
    evaluated = {one.check: failed.get(one.check, Verdict.PASS) for one in builds}
    table = []
    for function, places in files.items():
        naming = [
            result
            for result in results
            if result.kind is not ProbeKind.HOST and _covers(by_id[result.probe], function, places)
        ]
        known = {at: lines[at] for one in naming if (at := (one.probe, one.arch)) in lines}
        spans = {path: functions[path][function] for path in places}
        if any(names(entry, function, places) for patch in patches for entry in patch.leaves_no_code):
            known = {}
        without_code = [at for at, made in known.items() if not _compiles(made, spans)]
        beside = [at for at, made in known.items() if not _compiles(_executed_part(by_id[at[0]], made), spans)]
        checks = tuple(
            FunctionCheck(result.probe, result.arch, _how(result, at in ran and at not in beside), result.verdict)
            for result in naming
            if (at := (result.probe, result.arch)) not in without_code
        )
        checks += tuple(
            FunctionCheck(check, arch, How.EVALUATED, verdict)
            for check, verdict in evaluated.items()
            if any(names(entry, function, places) for entry in covering[check])
            for arch in archs
        )
        missing = tuple(arch for arch in archs if not any(one.arch == arch for one in checks))
        left_out = [arch for arch in missing if _left_out([known[at] for at in without_code if at[1] == arch], spans)]
        missing = tuple(arch for arch in missing if arch not in left_out)
        naming_it = [probe for probe, arch in without_code if arch in missing]
        because = _because(function, places, patches, probes, aside, naming_it) if missing else ""
        table.append(Covered(function, tuple(places), checks, missing, because, tuple(left_out)))
    return tuple(table)


def _left_out(units: Sequence[SourceLines], spans: Mapping[str, Sequence[range]]) -> bool:
    return bool(units) and all(unit.leaves_out(spans) for unit in units)


def _compiles(made: SourceLines, spans: Mapping[str, Sequence[range]]) -> bool:
    return any(made.compiles(*one) for one in spans.items())


def _executed_part(probe: Probe, made: SourceLines) -> SourceLines:
    """Return the lines of those kernels that an execution runs: an object file may have others."""
    pattern = probe.launches.kernels if probe.launches else kernel_of(probe.id, made.code)
    return SourceLines(made.read, {name: files for name, files in made.code.items() if fnmatchcase(name, pattern)})


def _how(result: ProbeResult, executed: bool) -> How:
    if executed:
        return How.EXECUTED
    return How.IDENTICAL if result.diff and result.diff.identical else How.COUNTED


def _covers(probe: Probe, function: str, files: Sequence[str]) -> bool:
    return any(names(entry, function, files) for entry in probe.covers)


def _because(
    function: str,
    files: Sequence[str],
    patches: Sequence[Patch],
    probes: Sequence[Probe],
    aside: Sequence[SetAside],
    without_code: Sequence[str],
) -> str:
    if without_code:
        return f"{', '.join(dict.fromkeys(without_code))}: its code has no line of this function"
    covering = {probe.id for probe in probes if _covers(probe, function, files)}
    covering |= {
        check_id(patch, one)
        for patch in patches
        for one in patch.evaluated
        if any(names(entry, function, files) for entry in one.covers)
    }
    if reasons := dict.fromkeys(f"{one.probe}: {one.because}" for one in aside if one.probe in covering):
        return "; ".join(reasons)
    for patch in patches:
        for unchecked in patch.unchecked:
            if any(names(entry, function, files) for entry in unchecked.functions):
                return unchecked.because
    return "no probe of the variant covers it, and no patch states a reason"
