"""What a patch promises of the whole tree, beside its edits: a table of ``patch.toml`` that checks itself."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from packaging.version import Version

from fp4patch.core.table import Manifest
from fp4patch.edits.operation import Search

Read = Callable[[str], str | None]
"""The text of a file of the tree; None if there is none."""


class Breach(NamedTuple):
    """What is wrong with the patched tree: the place, the expectation and the finding."""

    file: str
    line: int | None
    expected: str
    found: str


class Promise(Manifest):
    """Base of the promises."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Globs of the files that it reads, whatever is in them."""
        return ()

    def searches(self, _language: str, _version: Version | None, /) -> Iterator[Search]:
        """Yield the searches for what the patch must leave nowhere, in files of a language of a release."""
        yield from ()

    def breaches(self, _before: Read, _after: Read, /) -> Iterator[Breach]:
        """Yield what is wrong with the tree as it will be, beside what searches find."""
        yield from ()
