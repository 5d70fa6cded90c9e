"""Tensor maps: what ``cuTensorMapEncodeTiled`` is called with, in this library's own form of 128 bytes.

The driver's form is documented nowhere. A kernel never looks into a map; so it is passed this one instead, as the
bytes of a parameter or of an array.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box of it that is copied (CUDA driver API, ``cuTensorMapEncodeTiled``)."""

    MAGIC: ClassVar[int] = 0x5353_414D

    type: int
    """Number of its ``CUtensorMapDataType``."""
    address: int
    sizes: tuple[int, ...]
    """In elements, the innermost first."""
    strides: tuple[int, ...]
    """In bytes, of all but the innermost."""
    box: tuple[int, ...]
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    """0, or 1 to 3 for 32, 64 and 128 bytes."""
    interleave: int = 0
    fill: int = 0

    @property
    def content(self) -> bytes:
        """The bytes that stand for it."""
        rank = len(self.sizes)

        def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
            return (*values, *(1,) * (count - len(values)))

        packed = struct.pack(
            "<I4BQ5I5I4Q5BB",
            self.MAGIC,
            *(self.type, rank, self.swizzle, self.interleave),
            self.address,
            *padded(self.sizes, 5),
            *padded(self.box, 5),
            *padded(self.strides, 4),
            *padded(self.steps or (1,) * rank, 5),
            self.fill,
        )
        return packed.ljust(128, b"\0")
