"""Options that several commands share, and the printing of results."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fp4patch.core.errors import Fp4PatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from fp4patch.core.document import Report

Command = TypeVar("Command", bound="Callable[..., object]")

EXIT_REFUSED = 1


class Place(click.Path):
    """A path that is not empty: Python takes an empty one for the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty path, and convert any other as click does."""
        if value == "":
            self.fail("it is empty; if a command in $(…) was to print it, see that command's error", param, ctx)
        return super().convert(value, param, ctx)


PLACE, NAME = Place(path_type=Path), Place(path_type=str)
FILE, FOLDER = Place(path_type=Path, dir_okay=False), Place(path_type=Path, file_okay=False)
TREES = click.argument("trees", metavar="TREE...", nargs=-1, required=True, type=PLACE)
CUDA_ROOT = click.option("--cuda-root", type=FOLDER, help="CUDA toolkit to compile with.")
JOBS = click.option(
    "--jobs", "-j", metavar="N", type=click.IntRange(1, 64), help="Compilations at a time. Default: one per core."
)


def complete_names(folder: str, pattern: str):  # type: ignore[no-untyped-def]  # click's own callback protocol
    """Shell completion from the names on disk, without reading the files."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        from fp4patch.catalog.manifest import data_root

        names = (path.stem for path in (data_root() / folder).glob(pattern))
        return sorted(name for name in names if name.startswith(incomplete))

    return complete


def variant_option(*, required: bool) -> Callable[[Command], Command]:
    """Return ``--variant NAME``, completed in the shell."""
    return click.option(
        "--variant",
        metavar="NAME",
        required=required,
        shell_complete=complete_names("variants", "*.toml"),
        help="Name of the variant; see `fp4patch list variants`.",
    )


def json_option(*results: str) -> Callable[[Command], Command]:
    """Return ``--json`` and ``--json-schema`` of a command whose results are of these classes, ``module:Class``."""

    def options(command: Command) -> Command:
        json_ = click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON document on stdout instead of text."
        )
        return json_(schema_option(*results, "fp4patch.commands.document:Failure")(command))

    return options


def schema_option(*results: str) -> Callable[[Command], Command]:
    """Return ``--json-schema`` of a command whose results are of these classes, which are imported when it is used."""

    def show_schema(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
        if wanted:
            from fp4patch.commands.json_schema import json_schema

            named = [name.split(":") for name in results]
            kinds = [getattr(import_module(module), kind) for module, kind in named]
            schema = json_schema(context.command.name or "", reduce(or_, kinds))
            click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
            context.exit()

    return click.option(
        "--json-schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_schema,
        help="Print the JSON schema of that document, and do nothing else.",
    )


def swallow(output: Any) -> None:
    """Discard all further output, since its reader has closed the pipe or the disk is full.

    The exit status stays as it is; click and rich, and Python as it exits, would set their own.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def as_json(result: Report) -> str:
    """Return the JSON document of a result as text."""
    from fp4patch.commands.document import document

    return json.dumps(document(result), indent=2)


def emit(result: Report) -> None:
    """Print the JSON document of a result on stdout."""
    try:
        click.echo(as_json(result))
    except BrokenPipeError:
        swallow(sys.stdout)


def show(renderable: RenderableType, *, err: bool = False) -> None:
    """Print text for the user, as wide as the terminal is."""
    (stderr() if err else _console(sys.stdout)).print(renderable)


def stderr() -> Console:
    """Return the console for messages."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    from rich.console import Console
    from rich.segment import Segment

    from fp4patch.commands.words import LINES, VERBATIM, printable

    class Output(Console):
        def on_broken_pipe(self) -> None:
            swallow(self.file)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Escape characters that could control the terminal: names come from trees. A diff is not changed."""
            for segment in super().render(renderable, options):
                verbatim = segment.control or (segment.style and segment.style.meta.get(VERBATIM))
                yield segment if verbatim else Segment(printable(segment.text, kept=LINES), segment.style)

    # A pipe has no width: text in it must not be cut.
    columns = os.environ.get("COLUMNS", "")
    width = None if file.isatty() else (columns.isdecimal() and int(columns)) or 120
    return Output(file=file, width=width, highlight=False, soft_wrap=not file.isatty())


def waiting(root: Path) -> None:
    """Print once that another fp4patch holds the tree."""
    from fp4patch.commands.words import printable

    click.echo(f"waiting for another fp4patch that works on {printable(str(root))}", err=True)


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Print the result for the trees on stderr if the output cannot be written."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        click.echo(f"error: the output cannot be written: {error.strerror}; {what}", err=True)
        raise click.exceptions.Exit(EXIT_REFUSED) from error


def write(path: Path, text: str | bytes, *, advice: str = "name another file") -> None:
    """Write a file for the user, or raise one clear error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        raise Fp4PatchError(f"cannot write {path}: {error.strerror}", help=advice) from error
