"""What ``fp4patch objects`` finds in a configured build, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.model.doctor import Reach, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.model.arch import Arch


@dataclass(frozen=True)
class ObjectFile:
    """One object file that sees a patch, or a conversion to E2M1."""

    name: str
    """What the build calls it: a target of ninja."""
    source: str
    """The path in the tree."""
    architectures: tuple[Arch, ...]
    """Those that its command asks for machine code for, in that order."""
    converts: bool
    """Whether a statement that converts to E2M1 is in the file or in what it includes."""
    sees: tuple[str, ...]
    """The files, of those that are patched or convert, that it is or includes."""

    def missed(self, gpus: Sequence[Arch]) -> tuple[Arch, ...]:
        """The GPUs on which its conversions would not run: no machine code of it with a suffix loads there."""
        if not self.converts:
            return ()
        return tuple(gpu for gpu in gpus if reach(self.architectures, gpu) is not Reach.SUFFIXED)
