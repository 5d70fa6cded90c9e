"""What ``fp4patch objects`` finds in a configured build, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fp4patch.model.doctor import Reach, reach
from fp4patch.model.doctor_binaries import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    itself: bool = True
    """Whether the statement is in a file of the source's own tree, and not only in a library's header."""
    outcomes: Mapping[Arch, frozenset[Outcome]] = field(default_factory=dict)
    """What each GPU gets of the object file's units, where it is there and as new as its command."""

    def missed(self, gpus: Sequence[Arch]) -> tuple[Arch, ...]:
        """Return the GPUs on which its conversions would not run.

        A source that only includes a library's header need not convert, and one that is compiled for other
        architectures alone is meant for those; what the object file holds decides where it is there.
        """
        return tuple(gpu for gpu in gpus if self.converts and self._misses(gpu))

    def _misses(self, gpu: Arch) -> bool:
        held = self.outcomes.get(gpu, frozenset())
        if held & {Outcome.LOST, Outcome.UNWRITTEN}:
            return True
        if Outcome.NATIVE in held or (held and not self.itself and held <= {Outcome.PLAIN, Outcome.OTHER}):
            return False
        of_family = [arch for arch in self.architectures if arch.major == gpu.major]
        if of_family:
            return reach(of_family, gpu) is not Reach.SUFFIXED
        # FP4 instructions begin with SM100: what is compiled for nothing but those of another family is made for it.
        elsewhere = bool(self.architectures) and all(arch.major >= 10 and arch.suffix for arch in self.architectures)
        return self.itself and not elsewhere
