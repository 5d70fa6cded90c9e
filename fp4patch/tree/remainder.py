"""Places that a patch leaves unchanged on purpose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remainder:
    """A place that contains what a patch searches for and that the patch leaves unchanged."""

    patch: str
    file: str
    line: int
    found: str
    because: str

    def __str__(self) -> str:
        text = f"{self.patch}: {self.file}:{self.line}: `{self.found}` remains: {self.because}"
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
