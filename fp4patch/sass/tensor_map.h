// A tensor map in the driver's form of 128 bytes. Its fields are where ptxas puts those of tensormap.replace (the same for
// sm_90a and sm_121a), and where an H200's driver has them: tests/sass/test_tensor_maps.py. tensor_map.py writes the same.
#include <stdint.h>
#include <string.h>

struct tensor_map {
  uint64_t address, sizes[5], strides[5];
  uint32_t rank, box[5], steps[5];
  uint32_t type; /* as tensormap.replace.elemtype numbers them (PTX ISA) */
  uint32_t interleave, swizzle, fill, tf32, promotion;
};
enum { kMapBytes = 128, kBoxBytes = 16, kAlignment = 18 };

// Two words are about shared memory, and tensormap.replace leaves them as they are: the bytes of a box, and the address at
// which a swizzle begins, which no other bytes are likely to have there. All others are zero.
static inline uint32_t tensor_map_alignment(uint32_t swizzle) { return swizzle ? 128u << swizzle : 16; }

// From bytes; 0 if they are no tensor map.
static inline int tensor_map_read(struct tensor_map *map, const uint8_t *bytes) {
  uint32_t w[kMapBytes / 4], rest = 0;
  memcpy(w, bytes, sizeof w);
  const uint32_t kind = w[2];
  map->address = w[0] | (uint64_t)w[1] << 32;
  map->rank = (kind >> 4 & 7) + 1, map->type = kind >> 7 & 15, map->interleave = kind >> 11 & 3, map->swizzle = kind >> 13 & 3;
  map->fill = kind >> 15 & 1, map->tf32 = kind >> 16 & 1, map->promotion = kind >> 17 & 3;
  map->strides[0] = 0;
  for (int d = 0; d < 5; ++d) {
    map->sizes[d] = (uint64_t)w[8 + d] + 1;
    map->steps[d] = (w[13] >> 3 * d & 7) + 1;
    map->box[d] = (d ? w[14] >> 8 * (d - 1) & 255 : w[13] >> 24) + 1;
    if (d) map->strides[d] = ((uint64_t)w[2 + d] | (uint64_t)(w[7] >> 4 * (d - 1) & 15) << 32) << 4;
  }
  for (int i = 15; i < kMapBytes / 4; ++i) rest |= i == kBoxBytes || i == kAlignment ? 0 : w[i];
  if (rest | (kind & ~0x7fff0u) | (w[13] & 0xff8000u) | w[7] >> 16 | (map->address & 15) || map->rank > 5) return 0;
  for (uint32_t swizzle = 0; swizzle < 4; ++swizzle) rest |= w[kAlignment] == tensor_map_alignment(swizzle);
  return (int)rest;
}

// The same the other way.
static inline void tensor_map_write(const struct tensor_map *map, uint8_t *bytes) {
  uint32_t w[kMapBytes / 4] = {(uint32_t)map->address, (uint32_t)(map->address >> 32)};
  w[2] = (map->rank - 1) << 4 | map->type << 7 | map->interleave << 11 | map->swizzle << 13 | map->fill << 15 | map->tf32 << 16 |
         map->promotion << 17;
  static const uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 32, 64, 16, 0, 0, 4, 4, 6};
  uint64_t elements = 1;
  for (uint32_t d = 0; d < map->rank; ++d) {
    elements *= map->box[d] / map->steps[d];
    w[8 + d] = (uint32_t)(map->sizes[d] - 1);
    w[13] |= (map->steps[d] - 1) << 3 * d;
    if (d == 0) {
      w[13] |= (map->box[d] - 1) << 24;
    } else {
      w[14] |= (map->box[d] - 1) << 8 * (d - 1);
      w[2 + d] = (uint32_t)(map->strides[d] >> 4), w[7] |= (uint32_t)(map->strides[d] >> 36) << 4 * (d - 1);
    }
  }
  w[kBoxBytes] = (uint32_t)(elements * bits[map->type] / 8), w[kAlignment] = tensor_map_alignment(map->swizzle);
  memcpy(bytes, w, sizeof w);
}
