"""GPU targets of NVIDIA's compilers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pydantic_core import CoreSchema


@dataclass(frozen=True, order=True)
class Arch:
    """A GPU target of NVIDIA's compilers: ``sm_121a`` is ``Arch(12, 1, "a")``.

    The suffix decides about FP4: a target without ``a`` or ``f`` does not have the FP4 instructions.
    """

    major: int
    minor: int
    suffix: Literal["", "a", "f"] = ""

    @classmethod
    def parse(cls, text: str) -> Arch:
        """Parse ``sm_121a``, ``compute_121a``, ``121a`` or PyTorch's ``12.1a``; raise ValueError for any other text."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})(\.?)(\d)([af]?)", text.strip())
        if not found or not 5 <= int(found[1]) < 100:
            raise ValueError(f"{text!r} is not a GPU architecture; write for example sm_121a or 12.1a")
        return cls(int(found[1]), int(found[3]), found[4])  # type: ignore[arg-type]  # the pattern admits no other suffix

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: type, _handler: object) -> CoreSchema:
        """Tell pydantic that a document has it as text; it calls this by name."""
        from pydantic_core import core_schema as core  # noqa: PLC0415 - only where a document is made

        return core.is_instance_schema(cls, serialization=core.to_string_ser_schema())

    @property
    def number(self) -> str:
        """Digits and suffix: ``121a``."""
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def torch(self) -> str:
        """PyTorch's form, as in TORCH_CUDA_ARCH_LIST: ``12.1a``."""
        return f"{self.major}.{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"sm_{self.number}"
