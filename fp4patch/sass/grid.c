// Runs a whole grid of a kernel that was translated from machine code, warp by warp: 32 threads that exchange values.
// Compiled beside kernel.inc (translated for a grid, named SASS_KERNEL) and runtime.h.
// Run as: grid LAUNCH RESULT
//   LAUNCH  numbers of 32 bits: grid x, y, z; block x, y, z; reciprocal (0 exact, 1 up, 2 down, 3 any); poison; how many
//           bytes of constant bank 0 follow, and these; how many arrays; of each its address and how many bytes it has (64
//           bits each), 1 if the kernel may write it, and its bytes
//   RESULT  gets the arrays that may be written, one after another, and the lines (32 bits) of the conversions to E2M1
//           that were executed
// A load or store outside of the arrays ends it with status 3 and "stray ..." on standard output.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t reciprocal, poison;

static inline uint32_t hashed(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

#define SASS_RECIPROCAL(bits) \
  (reciprocal == 0 ? 0 : reciprocal == 1 ? 1 : reciprocal == 2 ? -1 : (int32_t)(hashed(bits) % 3u) - 1)
#define SASS_EXIT     \
  do {                \
    lane->done = 1;   \
    return;           \
  } while (0)
#define SASS_LOST sass_stray("return", lane->at, 4)
enum { SASS_RUNNING, SASS_SHFL_UP, SASS_SHFL_DOWN, SASS_SHFL_BFLY, SASS_SHFL_IDX, SASS_BARRIER };
#define SASS_WAIT(place, what) \
  do {                         \
    lane->kind = what;         \
    lane->at = 0x##place;      \
    goto suspend;              \
    resume_##place:;           \
  } while (0)
enum { SASS_SOURCES = 3, SASS_RESULTS = 2 };

__attribute__((noreturn)) static void sass_stray(const char *what, uint64_t address, unsigned bytes) {
  printf("stray %s of %u bytes at %#llx\n", what, bytes, (unsigned long long)address);
  fflush(stdout);
  _Exit(3);
}

struct array {
  uint64_t address, bytes;
  uint32_t writable;
  uint8_t *content;
};
static struct array arrays[16];
static uint32_t array_count;

static uint8_t *sass_place(uint64_t address, unsigned bytes, int store) {
  for (uint32_t i = 0; i < array_count; ++i) {
    const uint64_t at = address - arrays[i].address;
    if (at < arrays[i].bytes && at + bytes <= arrays[i].bytes && address % bytes == 0 && (!store || arrays[i].writable)) {
      return arrays[i].content + at;
    }
  }
  sass_stray(store ? "store" : "load", address, bytes);
}
// From sm_90 on the first KB of shared memory is the system's own: a kernel's variables begin behind it.
enum { kSharedFrom = SASS_SHARED, kShared = 48 * 1024 };
static _Alignas(16) uint8_t shared[kShared];
// An address of several words is a multiple of them all.
static uint64_t checked_aligned(const struct launch *launch, uint64_t address, uint32_t bytes) {
  if (address % bytes != 0) sass_stray("misaligned access", address, bytes);
  return address;
}
#define sass_aligned(launch, address, bytes) checked_aligned(launch, address, bytes)
static uint8_t checked_load_8(const struct launch *launch, uint64_t address) { return *sass_place(address, 1, 0); }
static uint16_t checked_load_16(const struct launch *launch, uint64_t address) { return *(const uint16_t *)sass_place(address, 2, 0); }
static uint32_t checked_load_32(const struct launch *launch, uint64_t address) { return *(const uint32_t *)sass_place(address, 4, 0); }
static void checked_store_8(const struct launch *launch, uint64_t address, uint8_t value) { *sass_place(address, 1, 1) = value; }
static void checked_store_16(const struct launch *launch, uint64_t address, uint16_t value) { *(uint16_t *)sass_place(address, 2, 1) = value; }
static void checked_store_32(const struct launch *launch, uint64_t address, uint32_t value) { *(uint32_t *)sass_place(address, 4, 1) = value; }

#include "runtime.h"

// Each instruction is a line of kernel.inc: which of those that convert to E2M1 or E4M3 were executed.
static uint8_t converted[1 << 20];
#define sass_to_e2m1(x) (converted[__LINE__] = 1, sass_to_e2m1(x))
#define sass_to_e4m3(x) (converted[__LINE__] = 1, sass_to_e4m3(x))

// Within the documented error, and the same for every target: flushed, rounded once from double precision.
static inline uint32_t sass_rsq(uint32_t x) { return sass_flush(sass_result((float)(1 / sqrt(sass_single(sass_flush(x)))))); }
static inline uint32_t sass_ex2(uint32_t x) { return sass_flush(sass_result((float)exp2(sass_single(sass_flush(x))))); }
// Powers of two, from 2^-127 on: rounded up, the largest for what is beyond it, 255 for NaN.
static inline uint32_t sass_to_ue8m0(uint32_t x) {
  if (x > 0x80000000u && !sass_is_nan(x)) sass_stray("negative number as a power of two", x, 4);
  const uint32_t exponent = x >> 23 & 255, rest = x & 0x7fffffu;
  const uint32_t up = exponent ? rest != 0 : rest > 0x400000u;
  return sass_is_nan(x) ? 255 : exponent + up > 254 ? 254 : exponent + up;
}
static inline uint32_t sass_bfloat16_of_ue8m0(uint32_t x) { return x == 255 ? 0x7fff : x ? x << 7 : 0x40; }
static inline uint32_t sass_to_bfloat16_upward(uint32_t x) {
  return sass_is_nan(x) ? 0x7fff : ((uint64_t)x + (x >> 31 ? 0 : 0xffff)) >> 16;
}

static inline uint32_t sass_single_of_u64_upward(uint64_t x) {
  const float nearest = (float)x;
  const int below = nearest < 0x1p64f && (uint64_t)nearest < x;
  return sass_bits(nearest) + below;
}

static inline uint8_t *sass_shared(const struct launch *launch, uint32_t address, unsigned bytes) {
  (void)launch;
  const uint32_t at = address - kSharedFrom;
  if (at > kShared - bytes || at % bytes != 0) sass_stray("access to shared memory", address, bytes);
  return shared + at;
}
static uint32_t sass_shared_add(const struct launch *launch, uint32_t address, uint32_t by) {
  uint32_t *there = (uint32_t *)sass_shared(launch, address, 4), old = *there;
  *there += by;
  return old;
}

#define sass_load_8 checked_load_8
#define sass_load_16 checked_load_16
#define sass_load_32 checked_load_32
#define sass_store_8 checked_store_8
#define sass_store_16 checked_store_16
#define sass_store_32 checked_store_32
#define sass_constant constant
static uint8_t bank[0x2000];
static uint32_t constant(const struct launch *launch, uint32_t offset) {
  (void)launch;
  uint32_t word;
  memcpy(&word, bank + offset, sizeof word);
  return word;
}
// Constant bank 2, which kernel.inc defines.
#define sass_own_constant(at) own_constant(sass_own, SASS_OWN, at)
static uint32_t own_constant(const uint32_t *words, uint32_t bytes, uint32_t at) {
  if (at % 4 || at >= bytes) sass_stray("load of a constant", at, 4);
  return words[at / 4];
}
// Local memory of each thread of a block, below the address that constant bank 0 gives for the stack.
enum { kLocal = 1024, kThreads = 1024 };
static _Alignas(16) uint8_t local[kThreads][kLocal];
static const struct launch *first_launch;
static uint8_t *sass_local(const struct launch *launch, uint32_t address, unsigned bytes) {
  const uint32_t at = address - constant(launch, SASS_STACK) + kLocal;
  if (at > kLocal - bytes || at % bytes != 0) sass_stray("access to local memory", address, bytes);
  return local[launch - first_launch] + at;
}
#define SASS_SPACE(space, bits)                                                                          \
  static inline uint##bits##_t sass_##space##_load_##bits(const struct launch *launch, uint32_t address) {           \
    return *(const uint##bits##_t *)sass_##space(launch, address, bits / 8);                              \
  }                                                                                                      \
  static inline void sass_##space##_store_##bits(const struct launch *launch, uint32_t address, uint##bits##_t value) { \
    *(uint##bits##_t *)sass_##space(launch, address, bits / 8) = value;                                   \
  }
SASS_SPACE(shared, 8)
SASS_SPACE(shared, 16)
SASS_SPACE(shared, 32)
SASS_SPACE(local, 8)
SASS_SPACE(local, 16)
SASS_SPACE(local, 32)
#define sass_shared_aligned(launch, address, bytes) (uint32_t)checked_aligned(launch, address, bytes)
#define sass_local_aligned(launch, address, bytes) (uint32_t)checked_aligned(launch, address, bytes)
#include "kernel.inc"

enum { kWarp = 32 };

// PTX ISA, shfl.sync: which lane each one reads, and whether that is inside its segment. Of a lane that does not take
// part nothing is known.
static void shuffle(struct lane *lanes, const uint8_t *taking_part) {
  uint32_t values[kWarp];
  for (uint32_t i = 0; i < kWarp; ++i) values[i] = taking_part[i] ? lanes[i].source[0] : hashed(poison + i);
  for (uint32_t i = 0; i < kWarp; ++i) {
    if (!taking_part[i]) continue;
    struct lane *lane = &lanes[i];
    const uint32_t by = lane->source[1] & 31, clamp = lane->source[2] & 31, segment = lane->source[2] >> 8 & 31;
    const uint32_t least = i & segment, most = least | (clamp & ~segment & 31);
    uint32_t from = 0;
    int inside = 0;
    switch (lane->kind) {
      case SASS_SHFL_UP: from = i - by, inside = (int32_t)from >= (int32_t)most; break;
      case SASS_SHFL_DOWN: from = i + by, inside = from <= most; break;
      case SASS_SHFL_BFLY: from = i ^ by, inside = from <= most; break;
      default: from = least | (by & ~segment & 31), inside = from <= most;
    }
    lane->result[0] = values[inside ? from & 31 : i];
    lane->result[1] = (uint32_t)inside;
  }
  for (uint32_t i = 0; i < kWarp; ++i) {
    if (taking_part[i]) lanes[i].kind = SASS_RUNNING;
  }
}

// Threads run until each has ended or waits. Those that wait at the lowest address go on first, together.
static void run_warp(struct lane *lanes, const struct launch *launches, uint32_t count) {
  for (;;) {
    uint32_t lowest = ~0u;
    for (uint32_t i = 0; i < count; ++i) {
      if (!lanes[i].done && lanes[i].kind == SASS_RUNNING) SASS_KERNEL(&launches[i], &lanes[i]);
      if (!lanes[i].done && lanes[i].kind != SASS_BARRIER && lanes[i].at < lowest) lowest = lanes[i].at;
    }
    if (lowest == ~0u) return;
    uint8_t taking_part[kWarp] = {0};
    for (uint32_t i = 0; i < count; ++i) {
      taking_part[i] = !lanes[i].done && lanes[i].kind != SASS_BARRIER && lanes[i].at == lowest;
    }
    shuffle(lanes, taking_part);
  }
}

static void run_block(const uint32_t *place, const uint32_t *size, struct lane *lanes, struct launch *launches) {
  const uint32_t threads = size[0] * size[1] * size[2];
  for (uint32_t i = 0; i < threads; ++i) {
    lanes[i] = (struct lane){0};
    for (uint32_t r = 0; r < SASS_REGISTERS; ++r) lanes[i].registers[r] = hashed(poison ^ (i * SASS_REGISTERS + r));
    launches[i] = (struct launch){.tid_x = i % size[0], .tid_y = i / size[0] % size[1], .tid_z = i / size[0] / size[1],
                                  .ctaid_x = place[0], .ctaid_y = place[1], .ctaid_z = place[2], .laneid = i % kWarp};
  }
  first_launch = launches;
#ifdef SASS_LOCAL  // the kernel uses it
  for (uint32_t i = 0; i < threads * kLocal; ++i) local[0][i] = (uint8_t)hashed(poison - i);
#endif
  for (uint32_t i = 0; i < kShared; i += 4) {
    const uint32_t word = hashed(poison + i);
    memcpy(shared + i, &word, sizeof word);
  }
  for (;;) {
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < threads; i += kWarp) {
      run_warp(lanes + i, launches + i, threads - i < kWarp ? threads - i : kWarp);
    }
    for (uint32_t i = 0; i < threads; ++i) {  // all that have not ended wait at the barrier
      waiting += !lanes[i].done;
      lanes[i].kind = SASS_RUNNING;
    }
    if (waiting == 0) return;
  }
}

static void take(FILE *file, void *to, uint64_t bytes) {
  if (fread(to, 1, bytes, file) != bytes) exit(2);
}

int main(int argc, char **argv) {
  uint32_t head[9];
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  take(file, head, sizeof head);
  reciprocal = head[6], poison = head[7];
  if (head[8] > sizeof bank) return 2;
  take(file, bank, head[8]);
  take(file, &array_count, sizeof array_count);
  if (array_count > sizeof arrays / sizeof arrays[0]) return 2;
  for (uint32_t i = 0; i < array_count; ++i) {
    take(file, &arrays[i].address, 8), take(file, &arrays[i].bytes, 8), take(file, &arrays[i].writable, 4);
    arrays[i].content = aligned_alloc(16, (arrays[i].bytes + 31) / 16 * 16);
    take(file, arrays[i].content, arrays[i].bytes);
  }
  fclose(file);
  const uint32_t threads = head[3] * head[4] * head[5];
  struct lane *lanes = calloc(threads, sizeof *lanes);
  struct launch *launches = calloc(threads, sizeof *launches);
  for (uint32_t block = 0; block < head[0] * head[1] * head[2]; ++block) {
    const uint32_t place[3] = {block % head[0], block / head[0] % head[1], block / head[0] / head[1]};
    run_block(place, head + 3, lanes, launches);
  }
  FILE *result = fopen(argv[2], "wb");
  if (!result) return 2;
  for (uint32_t i = 0; i < array_count; ++i) {
    if (arrays[i].writable) fwrite(arrays[i].content, 1, arrays[i].bytes, result);
  }
  for (uint32_t line = 0; line < sizeof converted; ++line) {
    if (converted[line]) fwrite(&line, sizeof line, 1, result);
  }
  return fclose(result) == 0 ? 0 : 2;
}
