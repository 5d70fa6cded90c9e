"""What names a GPU target of NVIDIA's compilers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, order=True)
class Arch:
    """A GPU target of NVIDIA's compilers: ``sm_121a`` is ``Arch(12, 1, "a")``.

    The suffix matters more than anything else here: without ``a`` or ``f`` the FP4 instructions do not exist.
    """

    major: int
    minor: int
    suffix: Literal["", "a", "f"] = ""

    @classmethod
    def parse(cls, text: str) -> Arch:
        """``sm_121a``, ``compute_121a``, ``121a`` and PyTorch's ``12.1a`` all name one target; else ValueError."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})(\.?)(\d)([af]?)", text.strip())
        if not found or not 5 <= int(found[1]) < 100:
            raise ValueError(f"{text!r} is not a GPU architecture; write for example sm_121a or 12.1a")
        return cls(int(found[1]), int(found[3]), found[4])  # type: ignore[arg-type]  # the pattern admits no other suffix

    @property
    def number(self) -> str:
        """``121a``."""
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def torch(self) -> str:
        """``12.1a``, as in TORCH_CUDA_ARCH_LIST."""
        return f"{self.major}.{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"sm_{self.number}"
