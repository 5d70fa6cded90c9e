"""Findings of ``fp4patch objects`` in a configured build, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fp4patch.binaries.report import LoadOutcome
from fp4patch.core.arch import Arch, Reach, reach
from fp4patch.core.document import HIDDEN, Document, Report


@dataclass(frozen=True)
class ObjectFile(Document):
    """One object file that includes patched code or a conversion to E2M1."""

    name: str
    """Name in the build: a target of ninja."""
    source: str
    """Path of the source in the tree."""
    architectures: tuple[Arch, ...]
    """Architectures for which its command requests machine code, in that order."""
    converts: bool
    """True if the file, or a file that it includes, has a statement that converts to E2M1."""
    sees: tuple[str, ...]
    """Patched or converting files that it is or includes."""
    itself: bool = True
    """True if the statement is in a file of the source's own tree, and not only in a library's header."""
    outcomes: Mapping[Arch, frozenset[LoadOutcome]] = field(default_factory=dict, metadata=HIDDEN)
    """Outcomes of each GPU in the object file, if the object file exists and is as new as its command."""

    def missed(self, gpus: Sequence[Arch]) -> tuple[Arch, ...]:
        """Return the GPUs on which its conversions would not run.

        A source that only includes a library's header need not convert, and one that is compiled only for other
        architectures is meant for those. If the object file exists, its contents decide.
        """
        return tuple(gpu for gpu in gpus if self.converts and self._misses(gpu))

    def _misses(self, gpu: Arch) -> bool:
        held = self.outcomes.get(gpu, frozenset())
        if held & {LoadOutcome.LOST, LoadOutcome.UNWRITTEN}:
            return True
        if LoadOutcome.NATIVE in held or (held and not self.itself and held <= {LoadOutcome.PLAIN, LoadOutcome.OTHER}):
            return False
        of_family = [arch for arch in self.architectures if arch.major == gpu.major]
        if of_family:
            return reach(of_family, gpu) is not Reach.SUFFIXED
        # FP4 instructions begin with SM100: code compiled only for such targets of another family is meant for it.
        elsewhere = bool(self.architectures) and all(arch.major >= 10 and arch.suffix for arch in self.architectures)
        return self.itself and not elsewhere


@dataclass(frozen=True)
class Objects(Report):
    """Object files of a build that include patched code or a conversion to E2M1."""

    objects: tuple[ObjectFile, ...]
