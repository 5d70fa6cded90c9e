"""What the patched text depends on beside its target and itself. A check varies it, or the patch may not depend on it.

Three things would otherwise pass unseen: a macro or a variable of the build that decides what is compiled, a condition
that decides otherwise for a target that nothing was compiled for, and a macro of the tree that a patch defines
otherwise, which changes text that no patch touches.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from fp4patch.catalog.probe import Probe
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.lex_error import LexError
from fp4patch.core.results import Problem
from fp4patch.core.tree_path import CXX
from fp4patch.cxx.tokens import Source, lex
from fp4patch.edits.cmake import parse
from fp4patch.edits.language import language
from fp4patch.edits.new_macros import (
    asked_since,
    definitions,
    macros_since,
    new_lines,
    pragmas,
    targets_unseen,
    variables_since,
)
from fp4patch.edits.sources import LANGUAGES
from fp4patch.proof.conditions import Cut
from fp4patch.proof.evidence import Evidence
from fp4patch.proof.varied import varied

Contents = Mapping[str, bytes | None]
_OURS = "FP4PATCH_"
"""Begins the macros of pasted encoders; trees inside of a tree have them too, once they are patched."""
_NAMED_AFTER_TARGET = re.compile(r"SM_?\d{2,3}")


def unvaried(evidence: Evidence) -> Iterator[Problem]:
    """Yield a problem for each dependence of the patched files that no check varies.

    Conditions on targets are compared with those that something was compiled for, and not looked at where the targets
    are others than the variant's own.
    """
    subject = evidence.subject
    compiled = {pair.arch for pair in evidence.compiled.pairs if pair.after.listing}
    seen = compiled if subject.probes.own_targets else set[Arch]()
    probes = [probe for probe, _ in (*subject.probes.ran, *subject.probes.aside)]
    root, target = subject.tree.root, subject.tree.target
    yield from dependencies(root, target, subject.folded.with_diffs, subject.written, probes, seen, evidence.cuts)


def dependencies(
    root: Path,
    target: Target,
    before: Contents,
    after: Contents,
    probes: Sequence[Probe],
    seen: Collection[Arch],
    cuts: Sequence[Cut],
) -> Iterator[Problem]:
    """Yield a problem for each dependence of the patched files that no check varies.

    ``seen`` are the targets that something was compiled for; without one, conditions on targets are not looked at.
    """
    changed = {path for path, content in after.items() if content is not None and content != before.get(path)}
    old, new = (
        {path: (side.get(path) or b"").decode("utf-8", "replace") for path in changed} for side in (before, after)
    )
    # Of upstream's text that is not understood nothing is known: all of the new one counts as new. No line of a new
    # text that is not understood counts as judged.
    old = {path: text if _is_read(path, text) else "" for path, text in old.items()}
    new = {path: text for path, text in new.items() if _is_read(path, text)}
    c_before, c_after = ({p: t for p, t in side.items() if PurePosixPath(p).suffix in CXX} for side in (old, new))
    yield from _of_macros(root, target, c_before, c_after, {name for probe in probes for name in probe.defines})
    for path, line, pragma in new_lines(c_before, c_after, pragmas):
        yield Problem(
            expected="code after the patched text that is read as before",
            found=f"`{pragma}`",
            help="remove it from the patch",
            file=path,
            line=line,
        )
    for path, line, condition, arch in targets_unseen(c_before, c_after, seen) if seen else ():
        yield Problem(
            expected="code that some target has that was compiled",
            found=f"`{condition}` for {arch}",
            help="let a probe name the target in `also`, or correct the condition",
            file=path,
            line=line,
        )
    for path in sorted(new):
        if language(path) == "python":
            yield from _of_machines(path, old[path], new[path], [cut for cut in cuts if cut.path == path])
        if language(path) == "cmake":
            yield from _of_builds(path, old[path], new[path], [cut for cut in cuts if cut.path == path])


def _is_read(path: str, text: str) -> bool:
    """Return whether the reader of a file's language understands a text."""
    reader = LANGUAGES.get(language(path))
    try:
        source = reader.read(text) if reader else None
        _ = source.conditionals if isinstance(source, Source) else ()  # they are paired when they are asked for
    except (LexError, SyntaxError, ValueError, RecursionError):
        return False
    return True


def _of_machines(path: str, before: str, after: str, cuts: Sequence[Cut]) -> Iterator[Problem]:
    """Yield the problems of questions for the machine. One in code that a condition runs, whose program varies what is
    asked, has its answers."""
    names = {cut: varied(cut.shim.read_text(encoding="utf-8")) for cut in cuts}
    for line, name in asked_since(before, after):
        if not any(name in names[cut] and any(line in span for span in cut.after) for cut in cuts):
            yield _varied(path, line, name)


def _of_builds(path: str, before: str, after: str, cuts: Sequence[Cut]) -> Iterator[Problem]:
    """Yield the problems of variables and commands. What a condition's program defines is what that code calls."""
    own = {cut: set(_commands(cut.shim.read_text("utf-8"))) for cut in cuts if cut.shim.suffix == ".cmake"}
    for line, name in variables_since(before, after):
        here = (names for cut, names in own.items() if any(line in span for span in cut.after))
        if not any(name.endswith("(") and name[:-1] in names for names in here):
            yield _varied(path, line, name)


def _commands(program: str) -> Iterator[str]:
    """Yield the commands, in lower case, that a program in CMake defines whatever is set; none if it is not CMake."""
    with suppress(LexError):
        depth = 0
        for command in parse(program).commands:
            depth -= command.name.startswith("end")
            if command.name in ("function", "macro") and not depth and command.arguments:
                yield command.arguments[0].text.lower()
            depth += command.name in _BLOCKS


_BLOCKS = frozenset(("block", "foreach", "function", "if", "macro", "while"))


def _of_macros(
    root: Path, target: Target, before: Mapping[str, str], after: Mapping[str, str], varied: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of macros. One that is named after a target, and that the tree's headers define, differs
    between the targets alone."""
    read = [found for found in macros_since(before, after) if found[2] not in varied]
    written = [found for found in new_lines(before, after, definitions) if not found[2].startswith(_OURS)]
    of_targets = {name for *_, name in read if _NAMED_AFTER_TARGET.search(name)}
    defined = _defined(root, target, of_targets | {name for *_, name in written}, after)
    yield from (_varied(*found) for found in read if found[2] not in of_targets & defined)
    for path, line, name in written:
        if name in defined:
            yield Problem(
                expected="macros of the tree as they were",
                found=f"`{name}` is defined anew",
                help="give the patch a macro of its own",
                file=path,
                line=line,
            )


def _varied(path: str, line: int, name: str) -> Problem:
    return Problem(
        expected="text that is the same in every build, or a check of each",
        found=f"`{name}`, which no check varies",
        help="remove it from the patch, or give a probe or a condition that varies it",
        file=path,
        line=line,
    )


def _defined(root: Path, target: Target, names: Collection[str], written: Collection[str]) -> set[str]:
    """Return those of some macros that a C++ file of the tree defines, beside those that were written."""
    if not names:
        return set()
    defined: set[str] = set()
    for path in (path for include in target.include for path in (root / include).rglob("*")):
        if path.suffix not in CXX or path.relative_to(root).as_posix() in written:
            continue
        with suppress(OSError, LexError):  # the compiler reports a header that it cannot read
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            wanted = {name for name in names if name in text}
            if wanted:
                defined |= wanted & {name for _, name in definitions(lex(text))}
    return defined
