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
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from fp4patch.core.progress import OnProgress, Step


class Counted(MofNCompleteColumn):
    """Steps done of all; nothing as long as their number is not known."""

    def render(self, task: Task) -> Text:
        """Return ``3/16``."""
        return Text() if task.total is None else super().render(task)


STEPS, BYTES = (Counted, TimeRemainingColumn), (DownloadColumn, TransferSpeedColumn)
"""Columns for steps that are counted, and for bytes."""


@contextmanager
def shown(console: Console, unit: Sequence[type[ProgressColumn]]) -> Iterator[OnProgress]:
    """Show a bar over the steps of a command."""
    columns = (BarColumn(), *(column() for column in unit), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def tick(step: Step) -> None:
            progress.update(task, total=step.total, completed=step.done, description=step.what)

        yield tick
