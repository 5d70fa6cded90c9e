"""Changed lines of a tree, and those of which no check judged what the compiler made.

A line counts as changed if ``difflib`` says so; where lines were removed, their neighbours do. Comments, empty lines,
and lines of braces alone need no check. On each target that something was compiled for:

- A line of a function belongs to a hunk: the neighbouring changed lines, with the statements that they are in, inside
  of the innermost function. The hunk is judged if a kernel whose code was executed, compared or counted has an
  instruction of one of these lines, as the compiler says. A declaration inside of it that is no instruction by itself
  is judged with its hunk; a function that no probe calls is not judged, whatever else its file holds, and neither is
  a branch of an `if` that has no instruction, as one for parameters of a template that no probe instantiates. Where
  such parameters decide between two expressions, or two branches in one line, no instruction shows which: not judged.
  An `if constexpr` of one line is a hunk of its own.
- A line of the preprocessor is judged if such a probe read its file; a declaration outside of functions, and the head
  of a function, if such a probe read the line.
- A line is judged if it is on one target: on another the instruction may be in the place of the software.
- A line that the preprocessor leaves out on every target is not checked, and neither is a file that no probe reads.
  Both are named. Where only some of a variant's targets were asked for, a line that these leave out may be for others.
- A line of a build file is judged if the evaluation of the build executed it, and a check fails for each mutant of the
  line. A line of an edit's `condition` is judged if that was run, and gave something else for each mutant of the line.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal

from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, shown
from fp4patch.core.lex_error import LexError
from fp4patch.core.tree_path import CXX
from fp4patch.cxx.shape import CodePart, one_line_branches, statements, template_choices
from fp4patch.cxx.tokens import Source, lex
from fp4patch.proof.source_lines import SourceLines

NOT_READ = "no probe reads the file"
LEFT_OUT = "the preprocessor leaves it out on every target"
LEFT_OUT_HERE = "the preprocessor leaves it out on the targets that were asked for; others may compile it"
NO_CODE = "no code that was judged has an instruction of it"
NOT_RUN = "its code was counted, and not executed"
LOOSE = "its evaluation gives the same where an operator, a constant or an operand of it is another"
_JUDGED = ""
_STATES = (NOT_READ, LEFT_OUT, NO_CODE, NOT_RUN, LOOSE, _JUDGED)
"""What probes are to a changed line; of several targets the last one counts."""


@dataclass(frozen=True)
class LineSpan(Document):
    """Changed lines of a file that follow each other, and that no check judged."""

    file: str
    first: int
    last: int
    """The last line, included."""
    because: str

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def lines(self) -> str:
        """The lines as compilers name them: ``12-15``."""
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)


@dataclass(frozen=True)
class Coverage(Document):
    """The changed lines that need a check, and those that have none."""

    lines: int = 0
    """Number of changed lines that need a check."""
    unjudged: tuple[LineSpan, ...] = ()
    """Lines that nothing judged on any target: that have no judged code, that every target leaves out, or that no
    probe reads."""

    @property
    @shown()
    def judged(self) -> int:
        """Number of changed lines that a check judged."""
        return self.lines - sum(map(len, self.unjudged))


def places(spans: Iterable[LineSpan]) -> list[str]:
    """Return the places of these lines, one for each file: ``include/a.h:12-15,20``."""
    by_file = groupby(spans, lambda span: span.file)
    return [f"{file}:{','.join(span.lines for span in of_file)}" for file, of_file in by_file]


@dataclass(frozen=True)
class Hunk:
    """Changed lines that are judged together."""

    kind: Literal["statement", "declaration", "directive"]
    lines: tuple[int, ...]
    statements: tuple[range, ...] = ()
    """Lines of the statements that they are in, of a hunk of statements."""


def coverage(
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    made: Mapping[tuple[str, Arch], SourceLines],
    judged: Collection[tuple[str, Arch]],
    evaluated: Mapping[str, Sequence[range]],
    loose: Mapping[str, Collection[int]] = MappingProxyType({}),
    *,
    every_target: bool = True,
) -> Coverage:
    """Return what the checks of a tree judged of the lines that differ between two states of it.

    ``made`` are the lines of all probes by probe and target, ``judged`` those of them whose code was judged;
    ``evaluated`` are the lines of build files and conditions that were evaluated, by file, and ``loose`` those of them
    that may be others for all that was. ``every_target``: the probes
    were compiled for all targets of the variant.
    """
    changed = {
        path: changed_lines(_text(before.get(path)), _text(content))
        for path, content in after.items()
        if content is not None and content != before.get(path)
    }
    return coverage_of(changed, after, made, judged, evaluated, loose, every_target=every_target)


def lines_of_each(
    pristine: Mapping[str, bytes | None],
    states: Mapping[str, Mapping[str, bytes | None]],
    written: Mapping[str, bytes | None],
) -> dict[str, dict[str, set[int]]]:
    """Return the lines of the written files that each of several changes brought, and that no later one replaced.

    ``states`` are the files after each change and those before it, by its name.
    """
    found: dict[str, dict[str, set[int]]] = {name: {} for name in states}
    for path in sorted({path for state in states.values() for path in state}):
        before, authors = _text(pristine.get(path)).split("\n"), [""] * (_text(pristine.get(path)).count("\n") + 1)
        for name, state in {**states, "": written}.items():
            after = _text(state.get(path, pristine.get(path))).split("\n")
            if after != before:
                authors = _authors(before, authors, after, name)
                before = after
        for number, name in enumerate(authors, 1):
            if name and written.get(path) is not None:
                found[name].setdefault(path, set()).add(number)
    return found


def _authors(before: Sequence[str], authors: Sequence[str], after: Sequence[str], name: str) -> list[str]:
    """Return who brought each line of a text, from those of the text before and the name of what changed it."""
    made: list[str] = []
    for tag, start, end, first, last in SequenceMatcher(None, before, after).get_opcodes():
        made += authors[start:end] if tag == "equal" else [name] * (last - first)
    return made


def coverage_of(
    changed: Mapping[str, Collection[int]],
    after: Mapping[str, bytes | None],
    made: Mapping[tuple[str, Arch], SourceLines],
    judged: Collection[tuple[str, Arch]],
    evaluated: Mapping[str, Sequence[range]],
    loose: Mapping[str, Collection[int]] = MappingProxyType({}),
    *,
    every_target: bool = True,
) -> Coverage:
    """Return what the checks of a tree judged of these lines of its files; for the others see :func:`coverage`."""
    number = 0
    spans: list[LineSpan] = []
    for path, lines_of_file in sorted(changed.items()):
        text = _text(after.get(path))
        hunks = list(hunks_of(path, text, lines_of_file))
        number += sum(len(hunk.lines) for hunk in hunks)
        reads: dict[Arch, list[tuple[SourceLines, bool]]] = {}
        for at, lines in made.items():
            if path in lines.read:
                reads.setdefault(at[1], []).append((lines, at in judged))
        states: dict[int, str] = {}
        for hunk in hunks:
            for line in hunk.lines:
                found = [NOT_READ, *(_state(path, hunk, line, units) for units in reads.values())]
                if any(line in span for span in evaluated.get(path, ())):
                    found.append(LOOSE if line in loose.get(path, ()) else _JUDGED)
                states[line] = max(found, key=_STATES.index)
        if not every_target:
            states = {line: LEFT_OUT_HERE if state == LEFT_OUT else state for line, state in states.items()}
        spans += _spans(path, states)
    return Coverage(number, tuple(spans))


def _state(path: str, hunk: Hunk, line: int, units: Sequence[tuple[SourceLines, bool]]) -> str:
    """Return what the probes of a target that read a file, each judged or not, are to a line of a hunk."""
    # For the host, nvcc writes a statement of several lines as one.
    place = [span for span in hunk.statements if line in span] or [range(line, line + 1)]
    judged = [unit for unit, is_judged in units if is_judged]
    if hunk.kind == "directive":
        return _JUDGED if judged else NOT_RUN
    if not any(unit.reads(path, place) for unit, _ in units):
        return LEFT_OUT
    if hunk.kind == "declaration":
        return _JUDGED if any(unit.reads(path, place) for unit in judged) else NOT_RUN
    if any(unit.compiles(path, hunk.statements) for unit in judged):
        return _JUDGED
    return NOT_RUN if any(unit.compiles(path, hunk.statements) for unit, _ in units) else NO_CODE


def _spans(path: str, states: Mapping[int, str]) -> Iterator[LineSpan]:
    """Yield the lines that nothing judged, as spans that have the same reason."""
    unjudged = sorted((line, state) for line, state in states.items() if state != _JUDGED)
    for (_, because), run in groupby(enumerate(unjudged), lambda pair: (pair[1][0] - pair[0], pair[1][1])):
        lines = [line for _, (line, _) in run]
        yield LineSpan(path, lines[0], lines[-1], because)


def hunks_of(path: str, after: str, changed: Collection[int]) -> Iterator[Hunk]:
    """Yield the hunks of a file whose lines need a check."""
    if PurePosixPath(path).suffix in CXX:
        try:
            source = lex(after)
            unseen = sorted(template_choices(source).intersection(changed))
            yield from (Hunk("statement", (line,)) for line in unseen)
            yield from _hunks(source, set(changed).difference(unseen))
        except LexError:  # where the text is not understood, no line of it is known to be judged
            yield Hunk("statement", tuple(sorted(changed)))
        return
    texts = {line: text.strip() for line, text in enumerate(after.split("\n"), 1)}
    if wanted := tuple(line for line in sorted(changed) if texts[line] and not texts[line].startswith("#")):
        yield Hunk("declaration", wanted)


def _hunks(source: Source, changed: Collection[int]) -> Iterator[Hunk]:
    directives = {
        line
        for directive in source.directives
        for line in range(directive.line, source.line(max(directive.start, directive.end - 1)) + 1)
    }
    yield from (Hunk("directive", (line,)) for line in sorted(directives.intersection(changed)))
    of_line: dict[int, list[CodePart]] = {}
    for statement in statements(source):
        for line in statement.lines:
            of_line.setdefault(line, []).append(statement)
    places: dict[int, tuple[int, tuple[int, ...]]] = {}  # of each line of a function: its neighbours, and its scope
    alone = one_line_branches(source)
    neighbours = previous = 0
    for line in sorted(changed):
        neighbours += line > previous + 1
        previous = line
        scopes = [part.scope for part in of_line.get(line, ())]
        if function := max((scope[0] for scope in scopes if scope), default=0):
            places[line] = (
                -line if line in alone else neighbours,
                min((scope for scope in scopes if scope[:1] == (function,)), key=len),
            )
        elif scopes:
            yield Hunk("declaration", (line,))
    for place in dict.fromkeys(places.values()):
        neighbours, scope = place
        beside = (part for line, (other, _) in places.items() if other == neighbours for part in of_line[line])
        inside = {part for part in beside if part.scope[: len(scope)] == scope}
        spans = {part.lines for part in inside} | {part.block for part in inside if part.block}
        own = tuple(line for line, other in places.items() if other == place)
        yield Hunk("statement", own, tuple(sorted(spans, key=lambda span: span.start)))


def changed_lines(before: str, after: str) -> set[int]:
    """Return the numbers of the lines that differ; where lines were removed, those of their neighbours."""
    new = after.split("\n")
    changed: set[int] = set()
    for tag, _, _, first, last in SequenceMatcher(None, before.split("\n"), new).get_opcodes():
        if tag == "delete":
            changed |= {first, first + 1}
        elif tag != "equal":
            changed.update(range(first + 1, last + 1))
    return changed & set(range(1, len(new) + 1))


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")
