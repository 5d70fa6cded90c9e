"""What commands print: JSON documents; tables, problems and errors as text for a terminal; progress; files."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from fp4patch.core.document import SCHEMA, Report
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.results import Problem, State, Verdict
from fp4patch.core.wording import joined

# --- JSON documents ---


@dataclass(frozen=True)
class Failure(Report):
    """An error of a command that cannot do its work, or cannot parse its command line."""

    error: str
    """Description in one sentence."""
    help: str
    """Recommended next step."""
    problems: tuple[Problem, ...]
    """Every reason to refuse."""
    state: Literal["refused"] = "refused"


def document(result: Report) -> dict[str, Any]:
    """Return the document of a result as values of JSON."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - it takes a while to load

    keys: dict[str, Any] = TypeAdapter(type(result)).dump_python(result, mode="json", by_alias=True)
    return {"schema": SCHEMA} | keys


def as_json(result: Report) -> str:
    """Return the JSON document of a result as text."""
    return json.dumps(document(result), indent=2)


def emit(result: Report) -> None:
    """Print the JSON document of a result on stdout."""
    try:
        click.echo(as_json(result))
    except BrokenPipeError:
        swallow(sys.stdout)


# --- the terminal ---


class Output(Console):
    """A terminal; or a pipe, where a table has 100 columns and a sentence is one line, which grep finds."""

    def __init__(self, file: Any) -> None:
        width = None if file.isatty() or "COLUMNS" in os.environ else 100
        super().__init__(file=file, width=width, highlight=False, soft_wrap=not file.isatty())

    def on_broken_pipe(self) -> None:
        """Discard the rest; rich would exit with a status of its own."""
        swallow(self.file)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape characters that could control the terminal: names come from trees. A diff is not changed."""
        for segment in super().render(renderable, options):
            verbatim = segment.control or (segment.style and segment.style.meta.get(_VERBATIM))
            yield segment if verbatim else Segment(printable(segment.text, kept=LINES), segment.style)


def show(renderable: RenderableType, *, err: bool = False) -> None:
    """Print text for the user, as wide as the terminal is."""
    Output(sys.stderr if err else sys.stdout).print(renderable, crop=False)  # a diff is printed to the byte


def swallow(output: Any) -> None:
    """Discard all further output, since its reader has closed the pipe or the disk is full.

    The exit status stays as it is; click and rich, and Python as it exits, would set their own.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


@contextmanager
def progress_bar() -> Iterator[OnProgress]:
    """Show a bar on stderr over the steps or bytes of a command; nothing where stderr is not a terminal."""
    from rich import progress as bars  # noqa: PLC0415 - it takes a while to load

    shown = (bars.BarColumn(), bars.TaskProgressColumn(), bars.TimeRemainingColumn(), bars.TimeElapsedColumn())
    columns = (*shown, bars.TextColumn("{task.description}"))
    console = Output(sys.stderr)
    with bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def tick(step: Step) -> None:
            progress.update(task, total=step.total, completed=step.done, description=step.what)

        yield tick


def write(path: Path, text: str | bytes, *, advice: str = "name another file") -> None:
    """Write a file for the user, or raise one clear error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        raise Fp4PatchError(f"cannot write {path}: {error.strerror}", help=advice) from error


# --- text ---

LINES = "\t\n\xa0"
"""Characters that a text of several lines can contain beside printable ones."""
_VERBATIM = "verbatim"


def printable(text: str, kept: str = "") -> str:
    """Return the text with control characters and lone surrogates escaped, except those in ``kept``.

    A path, a name in a third-party wheel or a compiler's message must not control the terminal, nor add lines.
    """
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def verbatim(text: str) -> RenderableType:
    """Return text that is printed to the byte, as a diff for programs is: ``rich.text.Text`` drops carriage returns."""
    return Segments([Segment(text, Style.from_meta({_VERBATIM: True}))])


class Hanging:
    """A prefix, then text that wraps below itself on a terminal and stays one line in a pipe, where grep reads it."""

    def __init__(self, prefix: str, text: str, style: str = "") -> None:
        self.prefix = prefix
        self.text = text
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(printable(self.text, kept=LINES))
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


# --- tables ---

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


class _Unpadded:
    """A table without blanks at the ends of its lines."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.table, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            yield from line[:-1]
            yield from (Segment(last.text.rstrip(), last.style) for last in line[-1:])
            yield Segment.line()


def table(columns: Sequence[Column], rows: Iterable[Sequence[RenderableType]], *, gap: int = 2) -> RenderableType:
    """Return a table without lines. It has a header if a column has one.

    A cell that is a string stays on one line, whatever characters it contains.
    """
    headed = any(column.header for column in columns)
    made = Table(*columns, box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold", show_header=headed)
    for row in rows:
        made.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    return _Unpadded(made)


# --- problems and errors ---


def problems(refusals: Sequence[Problem]) -> RenderableType:
    """Return the refusals: place, expected and found, nearest, and the recommended action; one block per problem."""
    return Group(*(part for problem in _advised_once(refusals) for part in _problem(problem)))


def error(failure: Fp4PatchError) -> RenderableType:
    """Return an error with its problems, and the recommended next step."""
    below = [part for problem in _advised_once(failure.problems, failure.help) for part in _problem(problem, "  ")]
    return Group(Hanging("error: ", failure.message, "bold red"), *below, *_help(failure.help, "  "))


def _advised_once(refusals: Sequence[Problem], printed_below: str = "") -> Iterator[Problem]:
    """Yield the problems, each advice with the last one that it applies to."""
    last = {problem.help: number for number, problem in enumerate(refusals)}
    for number, problem in enumerate(refusals):
        repeated = problem.help == printed_below or number < last[problem.help]
        yield replace(problem, help="") if repeated else problem


def _problem(problem: Problem, indent: str = "") -> Iterator[RenderableType]:
    first, *others = problem_lines(problem)
    yield Hanging(f"{indent}error: ", first, "bold red")
    yield from (Hanging(f"{indent}  ", line) for line in others)
    yield from _help(problem.help, f"{indent}  ")


def _help(text: str, indent: str) -> list[RenderableType]:
    return [Hanging(f"{indent}help: ", text, "bold")] if text else []


def problem_lines(problem: Problem) -> list[str]:
    """Return patch and state; the place, with the state if no patch refuses; expected, found and nearest."""
    state = problem.state.value if problem.state else ""
    place = f"{problem.file}:{problem.line}" if problem.file and problem.line is not None else problem.file
    by_patch = joined(problem.patch, state, by=": ") if problem.patch and problem.patch != problem.file else ""
    facts = (("expected ", problem.expected), ("found ", problem.found))
    sentence = joined(*(word + text for word, text in facts if text), by=", ")
    sentence += f"; nearest: {problem.nearest}" if problem.nearest else ""
    lines = [by_patch, place if problem.patch else joined(place, state, by=": "), sentence]
    return [line for line in lines if line] or ["a problem without a description"]
