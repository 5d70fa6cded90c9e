"""What executions in several threads share, and whose turn it is: all locks are here."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fp4patch.proof.execution.result import Ran
from fp4patch.proof.turns import Turns
from fp4patch.sass.bit_functions import Symbols


class Scheduler:
    """Hands out what one execution at a time may use: the symbols, all processors, and the turn of a function."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._symbols = Symbols()
        self._following = threading.Lock()
        self._sweeping = threading.Lock()
        self._swept: dict[object, Ran] = {}
        self._turns = Turns()

    @contextmanager
    def symbols(self) -> Iterator[Symbols]:
        """Hold what the functions of all kernels are made of, so that those that are the same are found."""
        with self._following:
            yield self._symbols

    @contextmanager
    def all_processors(self) -> Iterator[int]:
        """Hold the processors, for a program that uses as many threads as this yields."""
        with self._sweeping:
            yield self._threads

    @contextmanager
    def turn(self, function: object) -> Iterator[Ran | None]:
        """Hold the turn of the kernels with one function, and yield what all inputs gave if one of them had it before.

        The next one is compiled for the boundaries alone, which takes less time. A function that is None is nobody's.
        """
        if function is None:
            yield None
            return
        with self._turns.of(function):
            yield self._swept.get(function)

    def keep(self, function: object, ran: Ran) -> None:
        """Keep what all inputs gave, for the next kernel with this function."""
        if function is not None:
            self._swept[function] = ran
