"""Claims of a variant: the rules that its machine code obeys, and the results of its conversions."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from fp4patch.core.arch import Arch
from fp4patch.core.table import SOME, Manifest, Regex, SomeText, must


class Promise(StrEnum):
    """Agreement with ``cvt.rn.satfinite.e2m1x2.f32`` that an encoder promises over all 2^32 inputs."""

    EXACT = "exact"
    """The same nibble for every input."""
    EXACT_BUT_NAN_SIGN = "exact-but-nan-sign"
    """The same nibble, except that a NaN becomes 6 with either sign, where the instruction gives +6."""


Metric = Literal["branches", "local", "f64"]
"""Kind of instruction that a rule can exclude: branches and calls, accesses to local memory, double precision."""

OperationPattern = Annotated[
    Regex,
    must(
        lambda text: text.startswith("^"),
        "a regular expression that begins with ^, or in a variant a name of [patterns]",
    ),
]
"""Regular expression for an instruction with its modifiers and operands, from its name on: ``^F2FP\\..*\\bE2M1\\b``. In
the file of a variant it is one, or a name that its ``[patterns]`` give to one."""


@dataclass(frozen=True, kw_only=True)
class Rule(Manifest):
    """Conditions on the machine code of some probes on some architectures.

    ``probes`` are globs over probe ids, ``arch`` globs over targets (``sm_121[af]``: with the architecture's suffix or
    the family's). An instruction matches each pattern of ``requires``, none one of ``forbids``; ``without`` has kinds
    of instructions that must not be there. All of these apply to the patched tree. ``identical`` compares the code of
    both trees byte for byte. ``shorter`` compares their length: code that the patch changes has fewer instructions than
    before, and no more branches, accesses of local memory or F64. How many instructions there are is recorded and not
    stated here (``records/counts``).
    """

    probes: Annotated[tuple[str, ...], SOME]
    arch: Annotated[tuple[str, ...], SOME]
    because: SomeText
    identical: bool = False
    shorter: bool = False
    requires: tuple[OperationPattern, ...] = ()
    forbids: tuple[OperationPattern, ...] = ()
    without: tuple[Metric, ...] = ()

    def __post_init__(self) -> None:
        if not (self.identical or self.shorter or self.requires or self.forbids or self.without):
            raise ValueError("a rule has a condition: identical, shorter, requires, forbids or without")

    def is_for(self, arch: Arch) -> bool:
        """Return whether the rule applies to a target."""
        return any(fnmatchcase(str(arch), pattern) for pattern in self.arch)

    def speaks_of(self, target: str) -> bool:
        """Return whether one of its globs matches probes of a target: ``cutlass/float-*`` matches those of cutlass."""
        return any(fnmatchcase(target, pattern.partition("/")[0]) for pattern in self.probes)
