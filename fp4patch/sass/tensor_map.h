// A tensor map of this library: what cuTensorMapEncodeTiled is called with (CUDA driver API), in 128 bytes. tensor_map.py
// writes the same.
#include <stdint.h>

struct tensor_map {
  uint32_t magic;
  uint8_t type, rank, swizzle, interleave;
  uint64_t address;
  uint32_t sizes[5], box[5];
  uint64_t strides[4];
  uint8_t steps[5], fill, unused[34];
};
enum { kMagic = 0x5353414d };
_Static_assert(sizeof(struct tensor_map) == 128, "a tensor map has 128 bytes");
