"""What a variant answers for: the rules that its machine code obeys, and what its conversions come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from fp4patch.model.manifest import Manifest


class Promise(StrEnum):
    """How near to ``cvt.rn.satfinite.e2m1x2.f32`` an encoder promises to be, over all 2^32 inputs."""

    EXACT = "exact"
    """The same nibble for every input."""
    EXACT_BUT_NAN_SIGN = "exact-but-nan-sign"
    """The same, but a NaN becomes 6 with a sign of its own, where the instruction gives +6."""


Metric = Literal["instructions", "branches", "local", "f64", "registers"]
"""What is counted in machine code: instructions, all or of a class, or the registers of each thread."""


@dataclass(frozen=True, kw_only=True)
class Rule(Manifest):
    """What the machine code of some probes must satisfy on some architectures.

    ``probes`` are globs over probe ids, ``requires`` and ``forbids`` regular expressions searched in
    ``OPCODE.MODIFIERS`` of each instruction, ``max`` upper bounds of metrics. All of it is about the patched tree;
    ``identical`` compares both trees' code byte for byte.
    """

    probes: tuple[str, ...]
    arch: tuple[str, ...]
    because: str
    identical: bool = False
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    max: dict[Metric, int] = field(default_factory=dict)

    @property
    def judges(self) -> bool:
        """Whether it has a condition at all; a rule without one is a mistake."""
        return bool(self.identical or self.requires or self.forbids or self.max)

    def speaks_of(self, target: str) -> bool:
        """Whether one of its globs is about probes of a target: ``cutlass/float-*`` is about cutlass."""
        return any(fnmatchcase(target, pattern.partition("/")[0]) for pattern in self.probes)
