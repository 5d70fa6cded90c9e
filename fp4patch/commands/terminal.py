"""Tables, refusals and errors as text for a terminal, at whatever width it has."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from fp4patch.commands import words
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.core.verdict import Verdict

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.UNSUPPORTED: "yellow", Verdict.NOTHING: "cyan"}
STATES = {
    State.APPLIED: "green",
    State.PRISTINE: "",
    State.UPSTREAMED: "cyan",
    State.NOT_NEEDED: "cyan",
    State.OUTDATED: "yellow",
    State.REVERSED: "yellow",
    State.DRIFTED: "red",
    State.FOREIGN: "red",
}
"""Style of each state of a file or a patch."""
NONE = "\N{EN DASH}"
"""Cell of a table that has no value."""

whole, folded = partial(Column, no_wrap=True), partial(Column, overflow="fold")
"""Columns whose cells stay on one line, and columns whose cells wrap. A wide column is the last one: at 80 columns only
that one is cut."""
number = partial(whole, justify="right")


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[RenderableType]], *, gap: int = 2, head: str = "bold"
) -> Table:
    """Return a table without lines. It has a header in the style ``head`` if a column has one.

    A cell that is a string stays on one line, whatever characters it contains.
    """
    headed = any(column.header for column in columns)
    own = [column.copy() for column in columns]  # a column of rich holds the cells of its table
    made = Table(*own, box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style=head, show_header=headed)
    for row in rows:
        made.add_row(*(Text(words.printable(cell)) if isinstance(cell, str) else cell for cell in row))
    return made


@dataclass(frozen=True)
class Fitting:
    """A table, or the lines that replace it on a terminal that is too narrow for its words."""

    table: Table
    lines: Sequence[RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited, columns = options.update(max_width=1 << 16), self.table.columns
        lacking = []
        for column in columns:
            cells = [Measurement.get(console, unlimited, cell) for cell in (column.header, *column.cells)]
            widest = max(cell.maximum for cell in cells)
            column.width = widest if column.no_wrap else max(cell.minimum for cell in cells)
            lacking.append(widest - column.width)
        spare = options.max_width - sum(column.width or 0 for column in columns)
        spare -= self.table.padding[1] * (len(columns) - 1)
        if spare >= 0:
            for _ in range(min(spare, sum(lacking))):  # rich shrinks columns below their words
                at = lacking.index(max(lacking))
                columns[at].width, lacking[at] = (columns[at].width or 0) + 1, lacking[at] - 1
            yield self.table
        else:
            yield from self.lines


def spaced(parts: Iterable[RenderableType]) -> RenderableType:
    """Return the parts with an empty line between them."""
    return Group(*[line for part in parts for line in (part, Text())][:-1])


def problems(found: Sequence[Problem]) -> RenderableType:
    """Return the refusals: place, expected and found, nearest, and the recommended action; one block per problem."""
    return Group(*(_problem(problem) for problem in advised_once(found)))


def advised_once(found: Sequence[Problem], said: str = "") -> Iterator[Problem]:
    """Yield the problems, each advice with the last one that it applies to. ``said`` is printed below them all."""
    last = {problem.help: number for number, problem in enumerate(found)}
    for number, problem in enumerate(found):
        repeated = problem.help == said or number < last[problem.help]
        yield replace(problem, help="") if repeated else problem


def error(failure: Fp4PatchError) -> RenderableType:
    """Return an error with its problems, and the recommended next step."""
    parts: list[RenderableType] = [label("error", failure.message, "bold red")]
    parts += [_problem(problem, "  ") for problem in advised_once(failure.problems, failure.help)]
    if failure.help:
        parts.append(label("help", failure.help, "bold", "  "))
    return Group(*parts)


def _problem(problem: Problem, indent: str = "") -> RenderableType:
    title, place, sentence = words.problem_title(problem), words.problem_place(problem), words.problem_sentence(problem)
    lines = [line for line in (title, place, sentence) if line] or ["a problem without a description"]
    parts: list[RenderableType] = [label("error", lines[0], "bold red", indent)]
    parts += [Hanging(f"{indent}  ", line) for line in lines[1:]]
    if problem.help:
        parts.append(label("help", problem.help, "bold", f"{indent}  "))
    return Group(*parts)


def label(word: str, text: str, style: str, indent: str = "") -> RenderableType:
    """Return ``word: text``, with the text hanging below itself."""
    return Hanging(f"{indent}{word}: ", text, style)


class Hanging:
    """A prefix, then text that wraps below itself on a terminal and stays one line in a pipe, where grep reads it."""

    def __init__(self, prefix: str, text: str, style: str = "") -> None:
        self.prefix, self.text, self.style = prefix, text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(words.printable(self.text, kept=words.LINES))
        room = max(20, options.max_width - len(self.prefix))
        lines = text.split() if options.no_wrap else text.wrap(console, room, overflow="fold")
        prefix = Text(self.prefix, style=self.style)
        for line in lines:
            line.rstrip()
            if not line:
                yield Text()
                continue
            yield Text.assemble(prefix, line, overflow="ignore", no_wrap=True)
            prefix = Text(" " * len(self.prefix))
