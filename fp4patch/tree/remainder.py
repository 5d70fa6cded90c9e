"""Places that a patch leaves unchanged on purpose."""

from dataclasses import dataclass
from typing import ClassVar

from fp4patch.core.document import Document

STRICT = {"extra": "forbid", "strict": True}
"""How pydantic validates what a receipt holds: no other keys, and no value of another type."""


@dataclass(frozen=True)
class Remainder(Document):
    """A place that contains what a patch searches for and that the patch leaves unchanged."""

    patch: str
    """Id of the patch that leaves the place unchanged."""
    file: str
    line: int
    found: str
    """Text that the patch searches for, or the line that has it."""
    because: str
    """Reason why it remains."""
    __pydantic_config__: ClassVar = STRICT

    def __str__(self) -> str:
        text = f"{self.patch}: {self.file}:{self.line}: `{self.found}` remains: {self.because}"
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
