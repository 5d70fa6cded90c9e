"""A lock for each name: what several threads need is made by one of them, while others go on with theirs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Threads that ask for the same name take turns; those that ask for another do not wait."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}

    @contextmanager
    def of(self, name: object) -> Iterator[None]:
        """Hold the turn of a name."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            yield
