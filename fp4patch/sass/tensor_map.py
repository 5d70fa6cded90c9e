"""Tensor maps: what ``cuTensorMapEncodeTiled`` makes of its arguments, in the driver's form of 128 bytes.

NVIDIA documents the form nowhere. Kernels that change a map know it, since ptxas writes its fields; ``tensor_map.h``
reads it.
"""

import struct
from dataclasses import dataclass
from math import prod

_TYPES = {8: 9, 9: 10, 10: 8, 11: 7, 12: 8}
"""Numbers in a map of those of a ``CUtensorMapDataType`` that have another one there: PTX's. TF32 is a float's, with a
bit."""
_BITS = (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6)
"""Of an element, by ``CUtensorMapDataType``."""


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box of it that is copied (CUDA driver API, ``cuTensorMapEncodeTiled``)."""

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
    promotion: int = 0

    @property
    def content(self) -> bytes:
        """The bytes that stand for it."""
        rank = len(self.sizes)
        kind = (rank - 1) << 4 | _TYPES.get(self.type, self.type) << 7 | self.interleave << 11 | self.swizzle << 13
        kind |= self.fill << 15 | (self.type in (11, 12)) << 16 | self.promotion << 17
        steps = self.steps or (1,) * rank
        elements = prod(size // step for size, step in zip(self.box, steps, strict=True))
        boxes = sum(one - 1 << 8 * d for d, one in enumerate(self.box[1:]))
        packed = struct.pack(
            "<QI4II5III4I",
            self.address,
            kind,
            *_padded([stride >> 4 & 0xFFFF_FFFF for stride in self.strides], 4),
            sum(stride >> 36 << 4 * d for d, stride in enumerate(self.strides)),
            *_padded([size - 1 for size in self.sizes], 5),
            sum(step - 1 << 3 * d for d, step in enumerate(steps)) | self.box[0] - 1 << 24,
            boxes,
            0,
            elements * _BITS[self.type] // 8,
            0,
            128 << self.swizzle if self.swizzle else 16,
        )
        return packed.ljust(128, b"\0")


def _padded(values: list[int], count: int) -> list[int]:
    return values + [0] * (count - len(values))
