"""Progress bars on stderr: silent where stderr is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from fp4patch.core.progress import Step


class _Bytes:
    """A download's progress bar, with the interface that pypi-simple requires (ProgressTracker)."""

    def __init__(self, console: Console, total: int | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("download", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, increment: int) -> None:
        """So many more bytes are here."""
        self._bar.advance(self._task, increment)


def download(console: Console) -> Callable[[int | None], _Bytes]:
    """Return a progress bar for a file of so many bytes, as :mod:`fp4patch.sources.index` expects it."""
    return partial(_Bytes, console)


def silent(total: int | None) -> _Bytes:
    """Return a progress bar that is not shown."""
    return _Bytes(Console(quiet=True), total)


@contextmanager
def probes(console: Console) -> Iterator[Callable[[Step], None]]:
    """A bar over the compilations of a verify."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tick(step: Step) -> None:
            progress.update(task, total=step.total, completed=step.done, description=step.what)

        yield tick


class _Looked(Protocol):
    @property
    def done_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int | None: ...
    @property
    def name(self) -> str: ...


@contextmanager
def bytes_read(console: Console) -> Iterator[Callable[[_Looked], None]]:
    """A bar over the bytes of a binary that doctor reads."""
    columns = (BarColumn(), DownloadColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tick(step: _Looked) -> None:
            progress.update(task, total=step.total_bytes, completed=step.done_bytes, description=step.name)

        yield tick
