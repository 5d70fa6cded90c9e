"""Outputs of programs that tests make, kept in the user's cache as ``verify`` keeps its own."""

import platform
from collections.abc import Callable
from functools import cache

from fp4patch.core import process
from fp4patch.core.store import Store, cache_dir, key


def remembered(made_of: tuple[str, ...], make: Callable[[], str]) -> str:
    """Return ``make()``, or what it was on this machine with the same texts: all that a program is compiled from."""
    store, name = Store(cache_dir() / "tests"), key("output", *_machine(), *made_of)
    kept = store.get(name)
    if not isinstance(kept, str):
        kept = make()
        store.put(name, kept)
    return kept


@cache
def _machine() -> tuple[str, ...]:
    """The processor, and the compiler."""
    return platform.machine(), process.run(
        ["g++", "-march=native", "-E", "-v", "-x", "c++", "/dev/null"], limit=None
    ).err
