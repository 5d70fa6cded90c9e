"""What a patch leaves in a tree on purpose, place by place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remainder:
    """A place that has what a patch looks for and that the patch leaves as it is."""

    patch: str
    file: str
    line: int
    found: str
    because: str

    def __str__(self) -> str:
        text = f"{self.patch}: {self.file}:{self.line}: `{self.found}` remains: {self.because}"
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
