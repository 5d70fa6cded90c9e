// Runs every input through a kernel that was translated from machine code, and compares what it stores with the
// specification's intervals. Compiled with:
//   FP4PATCH_LANES       values that one thread converts: 1, 2, 4, 8 or 16
//   FP4PATCH_INPUT       32: float; 16: half; 8: bfloat16
//   FP4PATCH_BITS        bits that a value takes where it is stored: 4 or 8; FP4PATCH_SIGN: which of them is the sign
//   FP4PATCH_PARAMETERS  where the kernel's parameters begin in constant bank 0, in bytes
//   FP4PATCH_BLOCK_SIZE  where blockDim.x stands in it
// and beside kernel.inc, runtime.h, immediates.inc and intervals.inc: lines {first, last, code}.
// Run as: sweep THREADS STRIDE TURNS
//   STRIDE  1 for all inputs; else every so many blocks alone
//   TURNS   by how much the inputs are rotated over the lanes, for each time that all of them run: 0, or 0,4
// It writes for the corners, which go through every lane, and for the sweep a line: inputs, how many are wrong, how many
// have another sign of NaN, and of the lowest the input, what it shall give and what it gave, in hex.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum {
  kLanes = FP4PATCH_LANES,
  kBlock = 1024,  // threads of one launch
  kElement = FP4PATCH_INPUT == 32 ? 4 : 2,
  kInputBytes = kBlock * kLanes * kElement,
  kBits = FP4PATCH_BITS,
  kStored = kLanes * kBits < 8 ? 1 : kLanes * kBits / 8,  // bytes that one thread stores
  kOutputBytes = kBlock * kStored,
};

#if FP4PATCH_LANES * FP4PATCH_BITS <= 8
typedef uint8_t packed_t;
#elif FP4PATCH_LANES * FP4PATCH_BITS == 16
typedef uint16_t packed_t;
#elif FP4PATCH_LANES * FP4PATCH_BITS == 32
typedef uint32_t packed_t;
#else
typedef uint64_t packed_t;
#endif

// --- the device's memory: two arrays, at addresses of their own -----------------------------------------------------

#define INPUT_AT 0x10000000u
#define OUTPUT_AT 0x20000000u

static _Thread_local _Alignas(64) uint8_t input[kInputBytes];
static _Thread_local _Alignas(64) uint8_t output[kOutputBytes];
static _Thread_local _Alignas(64) packed_t expected[kBlock];
static _Thread_local unsigned written[kBlock];  // bytes that the checked kernel stored for each thread

static void stray(const char *what, uint64_t address, unsigned bytes) {
  printf("stray %s of %u bytes at %#llx\n", what, bytes, (unsigned long long)address);
  fflush(stdout);
  _Exit(3);
}

static const uint8_t *checked_read(uint64_t address, unsigned bytes) {
  uint64_t at = address - INPUT_AT;
  if (at > kInputBytes - bytes || at % bytes != 0) stray("load", address, bytes);
  return input + at;
}

static uint8_t *checked_write(uint64_t address, unsigned bytes) {
  uint64_t at = address - OUTPUT_AT;
  if (at > kOutputBytes - bytes || at % bytes != 0) stray("store", address, bytes);
  written[at / kStored] += bytes;
  return output + at;
}

static uint8_t checked_load_8(const struct launch *launch, uint64_t address) { return *checked_read(address, 1); }
static uint16_t checked_load_16(const struct launch *launch, uint64_t address) { return *(const uint16_t *)checked_read(address, 2); }
static uint32_t checked_load_32(const struct launch *launch, uint64_t address) { return *(const uint32_t *)checked_read(address, 4); }
static void checked_store_8(const struct launch *launch, uint64_t address, uint8_t value) { *checked_write(address, 1) = value; }
static void checked_store_16(const struct launch *launch, uint64_t address, uint16_t value) { *(uint16_t *)checked_write(address, 2) = value; }
static void checked_store_32(const struct launch *launch, uint64_t address, uint32_t value) { *(uint32_t *)checked_write(address, 4) = value; }

// The corners run first, over checked memory. After that the thread selects the record, and only the part of the address
// within a record counts: so the compiler detects that threads are independent, and runs many at a time.
#define INLINE static inline __attribute__((always_inline))
#define READ(launch, address) (input + (launch)->tid_x * (kLanes * kElement) + ((address) & (kLanes * kElement - 1)))
#define WRITTEN(launch, address) (output + (launch)->tid_x * kStored + ((address) & (kStored - 1)))
INLINE uint8_t fast_load_8(const struct launch *launch, uint64_t address) { return *READ(launch, address); }
INLINE uint16_t fast_load_16(const struct launch *launch, uint64_t address) {
  return *(const uint16_t *)READ(launch, address & ~1ull);
}
INLINE uint32_t fast_load_32(const struct launch *launch, uint64_t address) {
  return *(const uint32_t *)READ(launch, address & ~3ull);
}
INLINE void fast_store_8(const struct launch *launch, uint64_t address, uint8_t value) {
  *WRITTEN(launch, address) = value;
}
INLINE void fast_store_16(const struct launch *launch, uint64_t address, uint16_t value) {
  *(uint16_t *)WRITTEN(launch, address & ~1ull) = value;
}
INLINE void fast_store_32(const struct launch *launch, uint64_t address, uint32_t value) {
  *(uint32_t *)WRITTEN(launch, address & ~3ull) = value;
}

#define sass_load_8 checked_load_8
#define sass_load_16 checked_load_16
#define sass_load_32 checked_load_32
#define sass_store_8 checked_store_8
#define sass_store_16 checked_store_16
#define sass_store_32 checked_store_32
#define SASS_KERNEL checked_kernel
#include "kernel.inc"
#undef SASS_KERNEL
#undef sass_load_8
#undef sass_load_16
#undef sass_load_32
#undef sass_store_8
#undef sass_store_16
#undef sass_store_32

// Constant bank 0 as the driver lays it out: blockDim.x, and the two pointers that every probe takes. All else is poison,
// of another kind here than for the corners: the stack's end, the grid's size, words that are no parameter. The compiler
// sees the numbers, and so that the addresses of threads that follow each other do too.
INLINE uint32_t constant(uint32_t offset) {
  if (offset == FP4PATCH_BLOCK_SIZE) return kBlock;
  if (offset == FP4PATCH_PARAMETERS) return INPUT_AT;
  if (offset == FP4PATCH_PARAMETERS + 8) return OUTPUT_AT;
  return offset == FP4PATCH_PARAMETERS + 4 || offset == FP4PATCH_PARAMETERS + 12 ? 0 : 0xc9a5f3e7u;
}

#define sass_load_8(launch, address) fast_load_8(launch, address)
#define sass_load_16(launch, address) fast_load_16(launch, address)
#define sass_load_32(launch, address) fast_load_32(launch, address)
#define sass_store_8(launch, address, value) fast_store_8(launch, address, value)
#define sass_store_16(launch, address, value) fast_store_16(launch, address, value)
#define sass_store_32(launch, address, value) fast_store_32(launch, address, value)
INLINE void fast_kernel(const struct launch *launch);
#define SASS_KERNEL fast_kernel
#define sass_constant(launch, offset) constant(offset)
#include "kernel.inc"
#undef sass_constant
#undef SASS_KERNEL

static __attribute__((noinline)) void run_fast(void) {
  memset(output, 0xa5, sizeof output);  // a store that does not happen must show
#pragma GCC ivdep
  for (uint32_t i = 0; i < kBlock; ++i) {
    const struct launch launch = {NULL, i, 0, kBlock, 1};
    fast_kernel(&launch);
  }
}

static uint64_t mixed(uint64_t group, uint64_t word, uint64_t index) {
  uint64_t z = (group << 32 | word) + index * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Launches of several sizes, and parts of larger grids: the pointers stand where thread 0 of the grid would be, so that
// ours are the records of `input`.
static void run_checked(uint32_t number) {
  static const uint32_t sizes[] = {kBlock / 2, 1, kBlock, 32, 96, 256, 128, 777};
  static uint32_t constants[0x2000 / 4];
  const uint32_t size = sizes[number % (sizeof sizes / sizeof sizes[0])];
  const uint32_t first = number == 0 ? 0 : (uint32_t)mixed(number, 0, 3) & 0xffff;
  const uint64_t before = (uint64_t)first * size;
  const uint64_t pointers[2] = {INPUT_AT - before * kLanes * kElement, OUTPUT_AT - before * kStored};
  for (uint32_t i = 0; i < sizeof constants / sizeof constants[0]; ++i) constants[i] = (uint32_t)mixed(i, number, 4);
  constants[FP4PATCH_BLOCK_SIZE / 4] = size;
  memcpy(constants + FP4PATCH_PARAMETERS / 4, pointers, sizeof pointers);
  memset(output, 0xa5, sizeof output);
  memset(written, 0, sizeof written);
  for (uint32_t i = 0; i < kBlock; ++i) {
    const struct launch launch = {(const uint8_t *)constants, i % size, first + i / size, size, kBlock / size};
    checked_kernel(&launch);
  }
  for (uint32_t i = 0; i < kBlock; ++i) {
    if (written[i] != kStored) {
      printf("stray store: thread %u stored %u bytes of its %u\n", i, written[i], kStored);
      fflush(stdout);
      _Exit(3);
    }
  }
}

// --- the specification -----------------------------------------------------------------------------------------------

struct interval {
  uint32_t first, last, code;
};
static const struct interval intervals[] = {
#include "intervals.inc"
};
enum { kIntervals = sizeof intervals / sizeof intervals[0] };

static const struct interval *interval_of(uint32_t bits) {
  int which = 0;
  for (int i = 1; i < kIntervals; ++i) which += bits >= intervals[i].first;
  return &intervals[which];
}

// A float's bits from those of an input: exact, NaN stays NaN and keeps its sign.
static uint32_t widened(uint32_t bits) {
#if FP4PATCH_INPUT == 32
  return bits;
#elif FP4PATCH_INPUT == 8
  return bits << 16;
#else
  uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return sign | 0x7f800000 | fraction << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  int shift = __builtin_clz(fraction) - 21;  // to where the leading 1 is the one that is not written
  return sign | (uint32_t)(113 - shift) << 23 | (fraction << shift & 0x3ff) << 13;
#endif
}

static void put(uint32_t thread, uint32_t lane, uint32_t bits) {
  const uint32_t at = thread * kLanes + lane;
#if FP4PATCH_INPUT == 32
  ((uint32_t *)input)[at] = bits;
#else
  ((uint16_t *)input)[at] = (uint16_t)bits;
#endif
}

static uint32_t get(uint32_t thread, uint32_t lane) {
  const uint32_t at = thread * kLanes + lane;
#if FP4PATCH_INPUT == 32
  return ((const uint32_t *)input)[at];
#else
  return ((const uint16_t *)input)[at];
#endif
}

// --- what was found --------------------------------------------------------------------------------------------------

struct row {
  uint64_t inputs, wrong, signs;
  uint64_t first;  // input << 16 | expected << 8 | got of the lowest that is wrong, or of the lowest sign if none is
};
static const uint64_t kSign = 1ull << 63;
static const struct row kNothing = {.first = ~0ull};

static void merge(struct row *into, const struct row *from) {
  into->inputs += from->inputs;
  into->wrong += from->wrong;
  into->signs += from->signs;
  if (from->first < into->first) into->first = from->first;
}

static void show(const char *what, const struct row *row) {
  printf("%s %llu %llu %llu", what, (unsigned long long)row->inputs, (unsigned long long)row->wrong,
         (unsigned long long)row->signs);
  if (row->wrong + row->signs) {
    printf(" %llx %llx %llx", (unsigned long long)((row->first & ~kSign) >> 16),
           (unsigned long long)(row->first >> 8 & 255), (unsigned long long)(row->first & 255));
  }
  printf("\n");
}

static packed_t packed_of(uint32_t thread) {
  packed_t packed = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    packed |= (packed_t)((packed_t)interval_of(widened(get(thread, lane)))->code << kBits * lane);
  }
  return packed;
}

static uint32_t nibble(packed_t packed, uint32_t lane) {
  // One value alone has a byte of its own, of which nothing else may be set.
  return kLanes == 1 ? (uint32_t)packed : (uint32_t)(packed >> kBits * lane) & ((1 << kBits) - 1);
}

// Thread by thread and lane by lane: where something mismatches, or the inputs of a block are not of one code.
static void compare(struct row *row) {
  for (uint32_t thread = 0; thread < kBlock; ++thread) {
    const packed_t got = ((const packed_t *)output)[thread], wanted = expected[thread];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t bits = widened(get(thread, lane)), is = nibble(got, lane), shall = nibble(wanted, lane);
      ++row->inputs;
      if (is == shall) continue;
      const int sign = (bits & 0x7fffffffu) > 0x7f800000u && ((is ^ shall) & ~(uint32_t)FP4PATCH_SIGN) == 0;
      const uint64_t mismatch = (sign ? kSign : 0) | (uint64_t)bits << 16 | shall << 8 | is;
      if (sign) ++row->signs; else ++row->wrong;
      if (mismatch < row->first) row->first = mismatch;
    }
  }
}

// --- corners: through every lane -------------------------------------------------------------------------------------

enum { kMostCorners = 1 << 15 };
static uint32_t corners[kMostCorners];
static uint32_t corner_count;

static void corner(uint32_t bits) {
  if (corner_count < kMostCorners) corners[corner_count++] = bits;
}

static uint64_t random_bits(uint64_t *state) {
  return mixed(*state += 1, 0, 1);
}

static void find_corners(void) {
#if FP4PATCH_INPUT == 32
  uint64_t state = 0;
  for (int i = 0; i < kIntervals; ++i) {
    for (int by = -4; by <= 4; ++by) {
      corner(intervals[i].first + (uint32_t)by);
      corner(intervals[i].last + (uint32_t)by);
    }
    const uint64_t size = (uint64_t)intervals[i].last - intervals[i].first + 1;
    for (int n = 0; n < 128; ++n) corner(intervals[i].first + (uint32_t)(random_bits(&state) % size));
  }
  for (uint32_t top = 0; top < 512; ++top) {  // every sign and exponent, with either neighbour
    for (int by = -1; by <= 1; ++by) corner((top << 23) + (uint32_t)by);
    for (int n = 0; n < 4; ++n) corner(top << 23 | (uint32_t)(random_bits(&state) & 0x7fffff));
  }
  for (uint32_t bit = 0; bit < 23; ++bit) {  // subnormals and NaN payloads of one bit
    for (uint32_t sign = 0; sign < 2; ++sign) {
      corner(sign << 31 | 1u << bit);
      corner(sign << 31 | 0x7f800000u | 1u << bit);
      corner(sign << 31 | 0x7fc00000u | 1u << bit);
    }
  }
  // Whole blocks of threads: what is left of the last one are inputs of any kind.
  while (corner_count % kBlock != 0) corner((uint32_t)random_bits(&state));
#else
  // All of them go through every lane in the sweep; these are for the check of memory.
  for (uint32_t n = 0; n < 8 * kBlock; ++n) corner(n * 8 + n % 8);
#endif
}

// The threads' records in `input`, through the kernel and compared.
static void run_records(uint32_t number, struct row *row) {
  for (uint32_t thread = 0; thread < kBlock; ++thread) expected[thread] = packed_of(thread);
  run_checked(number);
  compare(row);
}

#if FP4PATCH_INPUT == 32 || FP4PATCH_LANES > 1
// What the machine code compares with: words that take every place of the record, beside random ones.
static const uint32_t suggested[] = {
#include "immediates.inc"
    0};
enum { kSuggested = sizeof suggested / sizeof suggested[0], kWords = kLanes * kElement / 4 };

static __attribute__((noinline)) void run_suggested(struct row *row) {
  uint64_t state = 1ull << 40;
  for (uint32_t at = 0; at < kSuggested * kWords; at += kBlock) {
    for (uint32_t thread = 0; thread < kBlock; ++thread) {
      const uint32_t word = suggested[(at + thread) / kWords % kSuggested], place = (at + thread) % kWords;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t by = lane * kElement - place * 4;  // of the word, where it is less than 4
        put(thread, lane, by < 4 ? word >> 8 * by : (uint32_t)random_bits(&state));
      }
    }
    run_records(at / kBlock, row);
  }
}
#endif

static void run_corners(struct row *row) {
  for (uint32_t start = 0; start < corner_count; start += kBlock) {
    for (uint32_t thread = 0; thread < kBlock; ++thread) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        // Neighbouring lanes take distant corners; over all threads each lane has each of them once.
        put(thread, lane, corners[(start + thread + lane * 1237) % corner_count]);
      }
    }
    run_records(start / kBlock, row);
  }
#if FP4PATCH_INPUT == 32 || FP4PATCH_LANES > 1
  run_suggested(row);
#endif
}

// --- the sweep -------------------------------------------------------------------------------------------------------

static const uint64_t all_inputs = FP4PATCH_INPUT == 32 ? 1ull << 32 : 1ull << 16;
static uint32_t blocks;  // of one turn
static uint32_t turn[kLanes];
static uint32_t turns;
static uint32_t stride = 1;

static atomic_uint next_chunk;
static uint32_t chunks;

static void run_block(uint32_t block, uint32_t by, struct row *row) {
  const uint64_t part = all_inputs / kLanes;
  const uint64_t group = (uint64_t)block * kBlock;
  uint32_t base[kLanes];
  const struct interval *of[kLanes];
  bool uniform = FP4PATCH_INPUT == 32;
  packed_t common = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    base[lane] = (uint32_t)(group + (lane + block + by) % kLanes * part);
    of[lane] = interval_of(base[lane]);
    uniform = uniform && of[lane]->last - base[lane] >= kBlock - 1;
    common |= (packed_t)((packed_t)of[lane]->code << kBits * lane);
  }
  for (uint32_t thread = 0; thread < kBlock; ++thread) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) put(thread, lane, base[lane] + thread);
  }
  if (uniform) {  // a loop of its own becomes vectors
    for (uint32_t thread = 0; thread < kBlock; ++thread) expected[thread] = common;
  } else {
    for (uint32_t thread = 0; thread < kBlock; ++thread) expected[thread] = packed_of(thread);
  }
  run_fast();
  if (uniform && memcmp(output, expected, sizeof expected) == 0) {
    row->inputs += (uint64_t)kBlock * kLanes;
  } else {
    compare(row);
  }
}

static void *work(void *argument) {
  struct row *row = argument;
  const uint64_t all = (uint64_t)blocks * turns;
  for (uint32_t chunk; (chunk = atomic_fetch_add(&next_chunk, 1)) < chunks;) {
    const uint64_t end = all * (chunk + 1) / chunks;
    for (uint64_t at = all * chunk / chunks; at < end; ++at) {
      if (at % stride == 0) run_block((uint32_t)(at % blocks), turn[at / blocks], row);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const unsigned threads = (unsigned)atoi(argv[1]);
  stride = (uint32_t)atoi(argv[2]);
  blocks = (uint32_t)(all_inputs / kLanes / kBlock);
  for (char *at = argv[3]; *at; at += *at == ',') {
    if (turns == kLanes) return 2;
    turn[turns++] = (uint32_t)strtoul(at, &at, 10);
  }
  chunks = blocks < 256 ? blocks : 256;

  struct row found = kNothing;
  find_corners();
  run_corners(&found);
  show("corners", &found);
  struct row row = kNothing;
  pthread_t *workers = calloc(threads, sizeof *workers);
  struct row *shares = calloc(threads, sizeof *shares);
  for (unsigned i = 0; i < threads; ++i) {
    shares[i] = kNothing;
    if (pthread_create(&workers[i], NULL, work, &shares[i]) != 0) return 4;
  }
  for (unsigned i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
    merge(&row, &shares[i]);
  }
  show("sweep", &row);
  printf("end\n");
  return 0;
}
