"""The machine code of one probe that is to be executed."""

from dataclasses import dataclass, replace

from fp4patch.catalog.probe import Executes, Launches, Quantizes
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.proof.listing import SassListing
from fp4patch.proof.view import SideName
from fp4patch.sass.instruction import InstructionClass


@dataclass(frozen=True, eq=False)
class ProbeCode:
    """One probe's code, as it was compiled for one architecture from one side."""

    probe: str
    does: Executes | Quantizes | Launches
    arch: Arch
    side: SideName
    content: bytes
    """The cubin, or an object file with host code."""
    listing: SassListing | None
    """None: the host's code is executed."""
    promise: Promise

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of its target: ``(12, 1)``."""
        return self.arch.major, self.arch.minor

    @property
    def swept(self) -> Executes | None:
        """Conversion, if all inputs run; None if selected ones do."""
        does = self.does
        if self.listing is None or not isinstance(does, Executes):
            return None
        if isinstance(does.sampled, str):
            is_meant = does.sampled == "with-branches" or self.side == "pristine"
            does = replace(does, sampled=is_meant and self.listing.branches > 0)
        return does if does.swept else None

    @property
    def in_order(self) -> bool:
        """True if it must leave the block scales of V in the order of the tokens: patched, and for SM12x."""
        return self.side == "patched" and self.arch.major == 12

    @property
    def instruction(self) -> bool:
        """True if it converts with F2FP."""
        return bool(self.listing and self.listing.count(InstructionClass.FP4))
