"""Progress bars on stderr: silent where stderr is not a terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from fp4patch.core.progress import OnProgress, Step

STEPS, BYTES = (MofNCompleteColumn,), (DownloadColumn, TransferSpeedColumn)
"""Columns for steps that are counted, and for bytes."""


@contextmanager
def shown(console: Console, unit: Sequence[type[ProgressColumn]]) -> Iterator[OnProgress]:
    """Show a bar over the steps of a command."""
    columns = (BarColumn(), *(column() for column in unit), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tick(step: Step) -> None:
            progress.update(task, total=step.total, completed=step.done, description=step.what)

        yield tick
