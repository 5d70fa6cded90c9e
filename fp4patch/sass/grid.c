// Runs a whole grid of a kernel that was translated from machine code: blocks on all processors, warps in turn, and in a
// warp its threads one after the other, until they wait for each other.
// Compiled beside kernel.inc (translated for a grid, named SASS_KERNEL), runtime.h and mma.h, with:
//   SASS_SHARED  address at which a kernel's own shared memory begins
//   SASS_STACK   where constant bank 0 has the end of local memory; SASS_LOCAL (bytes of a thread) if the kernel uses it
//   SASS_PARAMETERS  address in constant bank 0 of the parameters
// Run as: grid LAUNCH RESULT THREADS
//   LAUNCH  numbers of 32 bits: grid x, y, z; block x, y, z; reciprocal (0 exact, 1 up, 2 down, 3 any); poison; bytes of
//           shared memory, of which so many are the kernel's own; 1 if what nothing wrote there may be read; 1 if races are looked for; how many bytes of
//           constant bank 0 follow, and these; how many arrays; of each its address and how many bytes it has (64 bits each), 1 if the kernel may write it, and
//           its bytes
//   RESULT  gets the arrays that may be written, one after another, and the lines (32 bits) of the conversions to E2M1
//           that were executed
// What a kernel must not do ends it with status 3 and a line on standard output, which names a line of kernel.inc and the
// thread. Threads that all wait end it with status 4, and a line for each place of each warp.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWarp = 32, kNamed = 16, kWarps = 32 };

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
#define SASS_LOST sass_stray(launch, "return", lane->at, 4, __LINE__)
// A thread that jumps back often lets others run: it may wait for what they store.
#define SASS_BACKWARD(place)               \
  do {                                     \
    if (++lane->jumps % kJumps == 0) SASS_WAIT(place, SASS_YIELD); \
  } while (0)
#define SASS_WAIT(place, what) \
  do {                         \
    lane->kind = what;         \
    lane->at = 0x##place;      \
    lane->line = __LINE__;     \
    goto suspend;              \
    resume_##place:;           \
  } while (0)
enum { SASS_SOURCES = 16, SASS_RESULTS = 4, kJumps = 4096, kIdle = 4096 };

// What a thread waits for. Up to SASS_YIELD other warps must do something.
enum {
  SASS_RUNNING, SASS_BARRIER, SASS_MBARRIER, SASS_YIELD,
  SASS_SHFL_UP, SASS_SHFL_DOWN, SASS_SHFL_BFLY, SASS_SHFL_IDX, SASS_VOTE, SASS_MATCH, SASS_ELECT, SASS_WARPSYNC, SASS_PICK,
  SASS_REDUX_ADD, SASS_REDUX_MIN, SASS_REDUX_MAX, SASS_REDUX_MIN_S32, SASS_REDUX_MAX_S32, SASS_REDUX_AND, SASS_REDUX_OR,
  SASS_REDUX_XOR, SASS_MMA, SASS_IMMA, SASS_LDSM, SASS_LDSM_T, SASS_STSM, SASS_STSM_T, SASS_MOVM, SASS_TENSOR_LOAD,
  SASS_TENSOR_STORE, SASS_NEXT_WORK, SASS_BULK_LOAD, SASS_BULK_STORE,
};

struct lane;
struct block;
struct launch;
__attribute__((noreturn)) static void sass_stray(const struct launch *launch, const char *what, uint64_t address,
                                                 unsigned bytes, int line);

#include "runtime.h"
#include "mma.h"
#include "tensor_map.h"

// One block of threads. `known` has for each byte of shared memory whether something wrote it.
struct block {
  uint32_t place[3], threads, idle;
  uint64_t events;
  uint8_t *shared, *known, *local;
  struct lane *lanes;
  struct launch *launches;
  struct {
    uint32_t arrived, expected;
  } named[kNamed];
  struct races *races;
};

__attribute__((noreturn)) static void sass_stray(const struct launch *launch, const char *what, uint64_t address,
                                                 unsigned bytes, int line) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  const struct launch none = {0}, *at = launch ? launch : &none;
  printf("stray %s of %u bytes at %#llx\nline %d block %u %u %u thread %u %u %u\n", what, bytes,
         (unsigned long long)address, line, at->ctaid_x, at->ctaid_y, at->ctaid_z, at->tid_x, at->tid_y, at->tid_z);
  fflush(stdout);
  _Exit(3);
}

// --- races -----------------------------------------------------------------------------------------------------------

// Two accesses of different warps to a byte of shared memory, one of them a store, are a race unless one is ordered behind
// the other: by a barrier, an mbarrier, or atomic operations on a word. Vector clocks of warps, as of FastTrack (Flanagan
// and Freund, PLDI 2009); what the threads of one warp do is not told apart. Here they run one after the other, but on a
// GPU side by side: until all wait, each one counts for itself how often it told others what was done.
typedef uint32_t times[kWarps];
struct races {
  times now[kWarps], named[kNamed];
  uint32_t ahead[kWarps * kWarp];
  times *words; /* of each word of shared memory: what was known to those who arrived at it */
  struct access {
    uint32_t stored, storer, store_line, load_line;
    times loaded;
  } * bytes;
};
static void join(uint32_t *to, const uint32_t *from) {
  for (int i = 0; i < kWarps; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}
static uint32_t warp_of(const struct launch *launch) { return (uint32_t)(launch - launch->block->launches) / kWarp; }
// What a warp did until now is known to who acquires the clock later.
static void released(const struct launch *launch, uint32_t *clock) {
  struct races *races = launch->block->races;
  const uint32_t warp = warp_of(launch), mine = races->now[warp][warp] + races->ahead[launch - launch->block->launches]++;
  join(clock, races->now[warp]);
  clock[warp] = mine > clock[warp] ? mine : clock[warp];
}
// All threads of a warp wait.
static void settle(struct races *races, uint32_t warp) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < kWarp; ++i) {
    uint32_t *ahead = &races->ahead[warp * kWarp + i];
    most = *ahead > most ? *ahead : most, *ahead = 0;
  }
  races->now[warp][warp] += most;
}
static void acquired(const struct launch *launch, const uint32_t *clock) {
  join(launch->block->races->now[warp_of(launch)], clock);
}
__attribute__((noreturn)) static void race(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line,
                                           uint32_t other, uint32_t warp) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  printf("race of a %s shared memory of %u bytes at %#x\nline %d block %u %u %u thread %u %u %u\nbehind line %u warp %u\n",
         store ? "store to" : "load from", bytes, address, line, launch->ctaid_x, launch->ctaid_y, launch->ctaid_z,
         launch->tid_x, launch->tid_y, launch->tid_z, other, warp);
  fflush(stdout);
  _Exit(3);
}
static void accessed(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line) {
  struct races *races = launch->block->races;
  const uint32_t warp = warp_of(launch), *now = races->now[warp];
  const uint32_t mine = now[warp] + races->ahead[launch - launch->block->launches];
  for (uint32_t i = 0; i < bytes; ++i) {
    struct access *at = &races->bytes[address - SASS_SHARED + i];
    if (at->storer != warp && at->stored > now[at->storer]) race(launch, address, bytes, store, line, at->store_line, at->storer);
    if (!store) {
      if (mine > at->loaded[warp]) at->loaded[warp] = mine;
      at->load_line = (uint32_t)line;
      continue;
    }
    for (uint32_t other = 0; other < kWarps; ++other) {
      if (other != warp && at->loaded[other] > now[other]) race(launch, address, bytes, store, line, at->load_line, other);
    }
    if (at->storer == warp && at->stored > mine) continue;  // by a thread that is ahead
    at->stored = mine, at->storer = warp, at->store_line = (uint32_t)line;
  }
}

// --- memory ----------------------------------------------------------------------------------------------------------

struct array {
  uint64_t address, bytes;
  uint32_t writable;
  uint8_t *content;
};
static struct array arrays[64];
static uint32_t array_count;
// The parameters can be read by generic addresses, too: as tensor maps are.
static uint8_t bank[0x2000];
static const uint64_t kBankAt = UINT64_C(0x7eff) << 32;

static uint8_t *global(const struct launch *launch, uint64_t address, uint64_t bytes, int store, int line) {
  for (uint32_t i = 0; i < array_count; ++i) {
    const uint64_t at = address - arrays[i].address;
    if (at < arrays[i].bytes && bytes <= arrays[i].bytes - at && (!store || arrays[i].writable)) return arrays[i].content + at;
  }
  if (!store && address - kBankAt <= sizeof bank - bytes) return bank + (address - kBankAt);
  sass_stray(launch, store ? "store" : "load", address, (unsigned)bytes, line);
}
static uint8_t *aligned_global(const struct launch *launch, uint64_t address, unsigned bytes, int store, int line) {
  if (address % bytes != 0) sass_stray(launch, store ? "store" : "load", address, bytes, line);
  return global(launch, address, bytes, store, line);
}
static uint64_t checked_aligned(const struct launch *launch, uint64_t address, uint32_t bytes, int line) {
  if (address % bytes != 0) sass_stray(launch, "misaligned access", address, bytes, line);
  return address;
}

// From sm_90 on the first KB of shared memory is the system's own: a kernel's variables begin behind it.
static uint32_t shared_bytes, unwritten, find_races;
static uint8_t *unordered_place(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line) {
  const uint32_t at = address - SASS_SHARED;
  if (at >= shared_bytes || bytes > shared_bytes - at) {
    sass_stray(launch, store ? "store to shared memory" : "load from shared memory", address, bytes, line);
  }
  uint8_t *known = launch->block->known + at;
  if (store) {
    memset(known, 1, bytes);
  } else if (!unwritten && memchr(known, 0, bytes)) {
    sass_stray(launch, "load from shared memory that nothing wrote", address, bytes, line);
  }
  return launch->block->shared + at;
}
static uint8_t *shared_place(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line) {
  uint8_t *place = unordered_place(launch, address, bytes, store, line);
  if (launch->block->races) accessed(launch, address, bytes, store, line);
  return place;
}
static uint8_t *aligned_shared(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line) {
  checked_aligned(launch, address, bytes, line);
  return shared_place(launch, address, bytes, store, line);
}
// The same of a word by which warps tell each other something.
static uint8_t *synchronizing(const struct launch *launch, uint32_t address, uint32_t bytes, int store, int line) {
  checked_aligned(launch, address, bytes, line);
  return unordered_place(launch, address, bytes, store, line);
}

// Local memory of each thread, below the address that constant bank 0 gives for the stack.
#ifndef SASS_LOCAL
#define SASS_LOCAL 0
#endif
static uint32_t constant(uint32_t offset) {
  uint32_t word;
  memcpy(&word, bank + offset, sizeof word);
  return word;
}
static uint8_t *local_place(const struct launch *launch, uint32_t address, uint32_t bytes, int line) {
  const uint32_t at = address - constant(SASS_STACK) + SASS_LOCAL;
  if (at > SASS_LOCAL - bytes || at % bytes != 0) sass_stray(launch, "access to local memory", address, bytes, line);
  return launch->block->local + (launch - launch->block->launches) * (size_t)SASS_LOCAL + at;
}

// A store that changes something is an event: a thread that waits may go on.
#define MEMORY(bits)                                                                                                     \
  static uint##bits##_t global_load_##bits(const struct launch *launch, uint64_t address, int line) {                    \
    return *(const uint##bits##_t *)aligned_global(launch, address, bits / 8, 0, line);                                  \
  }                                                                                                                      \
  static void global_store_##bits(const struct launch *launch, uint64_t address, uint##bits##_t value, int line) {       \
    uint##bits##_t *place = (uint##bits##_t *)aligned_global(launch, address, bits / 8, 1, line);                        \
    launch->block->events += *place != value;                                                                            \
    *place = value;                                                                                                      \
  }                                                                                                                      \
  static uint##bits##_t shared_load_##bits(const struct launch *launch, uint32_t address, int line) {                    \
    return *(const uint##bits##_t *)aligned_shared(launch, address, bits / 8, 0, line);                                  \
  }                                                                                                                      \
  static void shared_store_##bits(const struct launch *launch, uint32_t address, uint##bits##_t value, int line) {       \
    uint##bits##_t *place = (uint##bits##_t *)aligned_shared(launch, address, bits / 8, 1, line);                        \
    launch->block->events += *place != value;                                                                            \
    *place = value;                                                                                                      \
  }                                                                                                                      \
  static uint##bits##_t local_load_##bits(const struct launch *launch, uint32_t address, int line) {                     \
    return *(const uint##bits##_t *)local_place(launch, address, bits / 8, line);                                        \
  }                                                                                                                      \
  static void local_store_##bits(const struct launch *launch, uint32_t address, uint##bits##_t value, int line) {        \
    *(uint##bits##_t *)local_place(launch, address, bits / 8, line) = value;                                             \
  }
MEMORY(8)
MEMORY(16)
MEMORY(32)
#undef MEMORY

// Atomic operations, one at a time. Each gives the value before it.
enum { SASS_ADD, SASS_MIN, SASS_MAX, SASS_MIN_S32, SASS_MAX_S32, SASS_AND, SASS_OR, SASS_XOR, SASS_EXCH, SASS_CAS,
       SASS_ADD_F32, SASS_ADD_F16, SASS_ADD_BF16 };
static uint32_t combined(int kind, uint32_t old, uint32_t a, uint32_t b) {
  switch (kind) {
    case SASS_ADD: return old + a;
    case SASS_MIN: return a < old ? a : old;
    case SASS_MAX: return a > old ? a : old;
    case SASS_MIN_S32: return (int32_t)a < (int32_t)old ? a : old;
    case SASS_MAX_S32: return (int32_t)a > (int32_t)old ? a : old;
    case SASS_AND: return old & a;
    case SASS_OR: return old | a;
    case SASS_XOR: return old ^ a;
    case SASS_EXCH: return a;
    case SASS_CAS: return old == a ? b : old;
    case SASS_ADD_F32: return sass_flush(sass_fadd(sass_flush(old), sass_flush(a)));
    case SASS_ADD_F16: return sass_hadd2(old, a);
    default: return sass_bfma2(old, 0x3f803f80u, a);
  }
}
static uint32_t changed(const struct launch *launch, uint32_t *place, int kind, uint32_t a, uint32_t b) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  const uint32_t old = *place;
  *place = combined(kind, old, a, b);
  launch->block->events += *place != old;
  pthread_mutex_unlock(&one);
  return old;
}
static uint32_t global_atomic(const struct launch *launch, uint64_t address, uint32_t kind, uint32_t a, uint32_t b, int line) {
  return changed(launch, (uint32_t *)aligned_global(launch, address, 4, 1, line), (int)kind, a, b);
}
static uint32_t shared_atomic(const struct launch *launch, uint32_t address, uint32_t kind, uint32_t a, uint32_t b, int line) {
  synchronizing(launch, address, 4, 0, line);
  struct races *races = launch->block->races;
  if (races) acquired(launch, races->words[(address - SASS_SHARED) / 4]);
  uint32_t *place = (uint32_t *)aligned_shared(launch, address, 4, 1, line);
  if (races) released(launch, races->words[(address - SASS_SHARED) / 4]);
  return changed(launch, place, (int)kind, a, b);
}
// cp.async: what is not copied is zero.
static void copy_async(const struct launch *launch, uint32_t to, uint64_t from, uint32_t bytes, uint32_t copied, int line) {
  uint8_t *place = aligned_shared(launch, to, bytes, 1, line);
  launch->block->events++;
  memset(place, 0, bytes);
  if (copied) memcpy(place, aligned_global(launch, from, bytes, 0, line), bytes);
}

// --- mbarriers -------------------------------------------------------------------------------------------------------

// A word of 64 bits, as SYNCS.EXCH gives it its first value: arrivals that are missing (2^20 minus them) from bit 1, bytes
// that are missing from bit 21 (22 bits, with sign), arrivals of the next phase (2^20 minus them) from bit 43, and the
// phase in bit 63.
enum { kField = 0xfffff };
static uint64_t *mbarrier(const struct launch *launch, uint32_t address, int line) {
  synchronizing(launch, address, 8, 0, line);
  return (uint64_t *)synchronizing(launch, address, 8, 1, line);
}
static uint64_t mbarrier_exchange(const struct launch *launch, uint32_t address, uint64_t value, int line) {
  uint64_t *word = (uint64_t *)synchronizing(launch, address, 8, 1, line);
  *word = value;
  launch->block->events++;
  return 0;
}
static uint64_t mbarrier_changed(const struct launch *launch, uint32_t address, uint32_t arrivals, int32_t bytes, int line) {
  uint64_t *word = mbarrier(launch, address, line);
  if (launch->block->races) released(launch, launch->block->races->words[(address - SASS_SHARED) / 4]);
  const uint64_t before = *word;
  uint32_t missing = (uint32_t)(0x100000 - (before >> 1 & kField)) & kField;
  const uint64_t next = before >> 43 & kField;
  const int64_t tx = (int64_t)(before << 21) >> 42;
  if (arrivals > missing) sass_stray(launch, "mbarrier with more arrivals than it expects", address, 8, line);
  missing -= arrivals;
  int64_t left = tx + bytes;
  uint64_t phase = before >> 63, pending = (0x100000 - missing) & kField;
  if (missing == 0 && left == 0) phase ^= 1, pending = next;
  *word = phase << 63 | next << 43 | ((uint64_t)left & 0x3fffff) << 21 | pending << 1;
  launch->block->events++;
  return before;
}
static uint32_t mbarrier_done(const struct launch *launch, uint32_t address, uint32_t state, int line) {
  const uint32_t done = (uint32_t)(*mbarrier(launch, address, line) >> 63) != state >> 31;
  if (done && launch->block->races) acquired(launch, launch->block->races->words[(address - SASS_SHARED) / 4]);
  return done;
}

// Each instruction is a line of kernel.inc: which of those that convert to E2M1 or E4M3 were executed.
static uint8_t converted[1 << 20];
#define sass_to_e2m1(x) (converted[__LINE__] = 1, sass_to_e2m1(x))
#define sass_to_e4m3(x) (converted[__LINE__] = 1, sass_to_e4m3(x))

// Within the documented error, and the same for every target: flushed, rounded once from double precision.
static inline uint32_t sass_rsq(uint32_t x) { return sass_flush(sass_result((float)(1 / sqrt(sass_single(sass_flush(x)))))); }
static inline uint32_t sass_ex2(uint32_t x) { return sass_flush(sass_result((float)exp2(sass_single(sass_flush(x))))); }
// Powers of two, from 2^-127 on: rounded up, the largest for what is beyond it, 255 for NaN.
static inline uint32_t to_ue8m0(const struct launch *launch, uint32_t x, int line) {
  if (x > 0x80000000u && !sass_is_nan(x)) sass_stray(launch, "negative number as a power of two", x, 4, line);
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
static inline uint32_t sass_leading(uint32_t x) { return x ? 31 - (uint32_t)__builtin_clz(x) : ~0u; }
static inline uint32_t sass_leading_zeros(uint32_t x) { return x ? (uint32_t)__builtin_clz(x) : ~0u; }
static inline uint32_t sass_popc(uint32_t x) { return (uint32_t)__builtin_popcount(x); }
static inline uint32_t sass_reversed(uint32_t x) {
  uint32_t result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}

#define sass_load_8(launch, address) global_load_8(launch, address, __LINE__)
#define sass_load_16(launch, address) global_load_16(launch, address, __LINE__)
#define sass_load_32(launch, address) global_load_32(launch, address, __LINE__)
#define sass_store_8(launch, address, value) global_store_8(launch, address, value, __LINE__)
#define sass_store_16(launch, address, value) global_store_16(launch, address, value, __LINE__)
#define sass_store_32(launch, address, value) global_store_32(launch, address, value, __LINE__)
#define sass_shared_load_8(launch, address) shared_load_8(launch, address, __LINE__)
#define sass_shared_load_16(launch, address) shared_load_16(launch, address, __LINE__)
#define sass_shared_load_32(launch, address) shared_load_32(launch, address, __LINE__)
#define sass_shared_store_8(launch, address, value) shared_store_8(launch, address, value, __LINE__)
#define sass_shared_store_16(launch, address, value) shared_store_16(launch, address, value, __LINE__)
#define sass_shared_store_32(launch, address, value) shared_store_32(launch, address, value, __LINE__)
#define sass_local_load_8(launch, address) local_load_8(launch, address, __LINE__)
#define sass_local_load_16(launch, address) local_load_16(launch, address, __LINE__)
#define sass_local_load_32(launch, address) local_load_32(launch, address, __LINE__)
#define sass_local_store_8(launch, address, value) local_store_8(launch, address, value, __LINE__)
#define sass_local_store_16(launch, address, value) local_store_16(launch, address, value, __LINE__)
#define sass_local_store_32(launch, address, value) local_store_32(launch, address, value, __LINE__)
#undef sass_aligned
#define sass_aligned(launch, address, bytes) checked_aligned(launch, address, bytes, __LINE__)
#define sass_shared_aligned(launch, address, bytes) (uint32_t)checked_aligned(launch, address, bytes, __LINE__)
#define sass_local_aligned(launch, address, bytes) (uint32_t)checked_aligned(launch, address, bytes, __LINE__)
#define sass_global_atomic(launch, address, kind, a, b) global_atomic(launch, address, kind, a, b, __LINE__)
#define sass_shared_atomic(launch, address, kind, a, b) shared_atomic(launch, address, kind, a, b, __LINE__)
#define sass_copy_async(launch, to, from, bytes, copied) copy_async(launch, to, from, bytes, copied, __LINE__)
#define sass_mbarrier_exchange(launch, address, value) mbarrier_exchange(launch, address, value, __LINE__)
#define sass_mbarrier_changed(launch, address, arrivals, bytes) mbarrier_changed(launch, address, arrivals, bytes, __LINE__)
#define sass_mbarrier_done(launch, address, state) mbarrier_done(launch, address, state, __LINE__)
#define sass_to_ue8m0(launch, x) to_ue8m0(launch, x, __LINE__)
#define sass_named_arrive(launch, number, threads) named_arrive(launch, number, threads, __LINE__)
#define sass_problem(launch, what) sass_stray(launch, what, 0, 0, __LINE__)
#define sass_constant(launch, offset) constant(offset)
static uint32_t sass_bank(uint32_t offset) { return offset <= sizeof bank - 4 ? constant(offset) : hashed(poison ^ offset); }
// Constant bank 2, which kernel.inc defines.
#define sass_own_constant(launch, at) own_constant(launch, sass_own, SASS_OWN, at, __LINE__)
static uint32_t own_constant(const struct launch *launch, const uint32_t *words, uint32_t bytes, uint32_t at, int line) {
  if (at % 4 || at >= bytes) sass_stray(launch, "load of a constant", at, 4, line);
  return words[at / 4];
}
static void named_arrive(const struct launch *launch, uint32_t number, uint32_t threads, int line) {
  if (number >= kNamed) sass_stray(launch, "barrier", number, 0, line);
  launch->block->named[number].arrived++;
  launch->block->named[number].expected = threads;
  if (launch->block->races) released(launch, launch->block->races->named[number]);
  launch->block->events++;
}
#include "kernel.inc"

// --- what warps do together ------------------------------------------------------------------------------------------

struct group {
  struct lane *lanes;
  const struct launch *launches;
  uint32_t mask;
};
#define EACH(group, i) (uint32_t i = 0; i < kWarp; ++i) if ((group)->mask >> i & 1)

// PTX ISA, shfl.sync: which lane each one reads, and whether that is inside its segment. Of a lane that does not take
// part nothing is known.
static void shuffle(const struct group *group) {
  uint32_t values[kWarp];
  for (uint32_t i = 0; i < kWarp; ++i) values[i] = group->mask >> i & 1 ? group->lanes[i].source[0] : hashed(poison + i);
  for EACH(group, i) {
    struct lane *lane = &group->lanes[i];
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
}

static void vote(const struct group *group) {
  uint32_t ballot = 0;
  for EACH(group, i) ballot |= (group->lanes[i].source[0] != 0) << i;
  for EACH(group, i) {
    uint32_t *result = group->lanes[i].result;
    result[0] = ballot, result[1] = ballot != 0, result[2] = ballot == group->mask, result[3] = result[2] || ballot == 0;
  }
}

static void match(const struct group *group) {
  for EACH(group, i) {
    uint32_t same = 0;
    for EACH(group, j) same |= (group->lanes[j].source[0] == group->lanes[i].source[0]) << j;
    group->lanes[i].result[0] = same;
    group->lanes[i].result[1] = same == group->mask;
    group->lanes[i].result[2] = same == group->mask ? same : 0;
  }
}

static void reduce(const struct group *group, const struct lane *first) {
  static const int kinds[] = {SASS_ADD, SASS_MIN, SASS_MAX, SASS_MIN_S32, SASS_MAX_S32, SASS_AND, SASS_OR, SASS_XOR};
  uint32_t total = first->source[0];
  for EACH(group, i) {
    if (&group->lanes[i] != first) total = combined(kinds[first->kind - SASS_REDUX_ADD], total, group->lanes[i].source[0], 0);
  }
  for EACH(group, i) group->lanes[i].result[0] = total;
}

// The value of the first thread for which a condition holds; of the first one of all if it holds for none.
static void pick(const struct group *group, const struct lane *first) {
  const struct lane *from = first;
  for EACH(group, i) {
    if (group->lanes[i].source[0]) {
      from = &group->lanes[i];
      break;
    }
  }
  const uint32_t value = from->source[1];
  for EACH(group, i) group->lanes[i].result[0] = value;
}

static void whole(const struct group *group, const struct lane *first, const char *what) {
  if (group->mask != ~0u) {
    sass_stray(&group->launches[first - group->lanes], what, first->at, 0, (int)first->line);
  }
}

static void multiply(const struct group *group, const struct lane *first) {
  whole(group, first, "product of matrices by a part of a warp");
  sass_words given[kWarp], results[kWarp];
  for (int i = 0; i < kWarp; ++i) memcpy(given[i], group->lanes[i].source, sizeof given[i]);
  const uint32_t *how = first->source + 12;
  if (first->kind == SASS_IMMA) {
    sass_multiply_integers(how[0], how[1] & 1, how[1] >> 1 & 1, how[1] >> 2 & 1, given, results);
  } else {
    const struct sass_mma mma = {.k = how[0] & 255, .bits = how[0] >> 8 & 255, .parts = how[0] >> 16, .a = how[1] & 255,
                                 .b = how[1] >> 8 & 255, .c = how[1] >> 16, .aligned = how[2] & 255, .kept = how[2] >> 8 & 255};
    const uint32_t select = how[3];
    const struct sass_scales scales = {.count = how[2] >> 16 & 255, .e8m0 = how[2] >> 24, .byte_a = select & 3,
                                       .thread_a = select >> 2 & 1, .byte_b = select >> 3 & 3, .thread_b = select >> 5 & 3,
                                       .at = 10};
    sass_multiply(&mma, scales.count ? &scales : NULL, given, results);
  }
  for (int i = 0; i < kWarp; ++i) memcpy(group->lanes[i].result, results[i], sizeof group->lanes[i].result);
}

// Matrices of 8 x 8 values of 16 bits (PTX ISA, ldmatrix, stmatrix, movmatrix): thread t has row t / 4, values 2 (t % 4)
// and the next; of a transposed one, column and row exchanged.
static void matrices(const struct group *group, const struct lane *first) {
  whole(group, first, "matrices by a part of a warp");
  const int kind = (int)first->kind, load = kind == SASS_LDSM || kind == SASS_LDSM_T;
  const int transposed = kind == SASS_LDSM_T || kind == SASS_STSM_T || kind == SASS_MOVM;
  const uint32_t count = kind == SASS_MOVM ? 1 : first->source[1];
  for (uint32_t m = 0; m < count; ++m) {
    uint16_t rows[8][8], out[8][8];
    for (uint32_t row = 0; load && row < 8; ++row) {
      const uint32_t lane = 8 * m + row;
      memcpy(rows[row], aligned_shared(&group->launches[lane], group->lanes[lane].source[0], 16, 0, (int)first->line), 16);
    }
    for (uint32_t t = 0; !load && t < kWarp; ++t) {
      const uint32_t word = group->lanes[t].source[kind == SASS_MOVM ? 0 : 2 + m];
      rows[t / 4][t % 4 * 2] = (uint16_t)word, rows[t / 4][t % 4 * 2 + 1] = (uint16_t)(word >> 16);
    }
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) out[i][j] = transposed ? rows[j][i] : rows[i][j];
    }
    for (uint32_t t = 0; (load || kind == SASS_MOVM) && t < kWarp; ++t) {
      group->lanes[t].result[m] = out[t / 4][t % 4 * 2] | (uint32_t)out[t / 4][t % 4 * 2 + 1] << 16;
    }
    for (uint32_t row = 0; kind != SASS_MOVM && !load && row < 8; ++row) {
      const uint32_t lane = 8 * m + row;
      memcpy(aligned_shared(&group->launches[lane], group->lanes[lane].source[0], 16, 1, (int)first->line), out[row], 16);
    }
  }
}

// Bits of an element of these types (PTX ISA, tensormap.replace); 0 for those that a copy converts, or that are padded.
static uint32_t element_bits(const struct tensor_map *map) {
  static const uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 0, 64, 16, 0, 0, 4, 0, 0};
  return map->tf32 ? 0 : bits[map->type];
}

// clusterlaunchcontrol.try_cancel: no block is taken from the grid, since each begins by itself.
static void next_work(const struct group *group, const struct lane *first) {
  const struct launch *launch = &group->launches[first - group->lanes];
  memset(aligned_shared(launch, first->source[0], 16, 1, (int)first->line), 0, 16);
  mbarrier_changed(launch, first->source[1], 0, -16, (int)first->line);
}

// One line of a box at a time, between global and shared memory; zeros are what lies outside of the tensor. The bytes of
// a line are permuted in groups of 16 as the swizzle says: address bits from 4 on, with those from 7 on.
static void tensor(const struct group *group, const struct lane *first) {
  const struct launch *launch = &group->launches[first - group->lanes];
  const int line = (int)first->line, load = first->kind == SASS_TENSOR_LOAD;
  const uint64_t map_at = first->source[2] | (uint64_t)first->source[3] << 32;
  struct tensor_map map;
  if (!tensor_map_read(&map, global(launch, map_at, kMapBytes, 0, line))) {
    sass_stray(launch, "tensor map that is none", map_at, kMapBytes, line);
  }
  const uint32_t bits = element_bits(&map);
  int plain = bits && !map.interleave && !map.fill;
  for (uint32_t d = 0; d < map.rank; ++d) plain &= map.steps[d] == 1;
  if (!plain) sass_stray(launch, "tensor of a kind that is not executed", map.address, map.type, line);
  if (first->source[4] != map.rank) sass_stray(launch, "tensor of another rank", map.address, map.rank, line);
  const int32_t *at = (const int32_t *)first->source + 5;
  // Measured on an H200: anything else is an illegal instruction there.
  if ((int64_t)at[0] * bits / 8 % 16) sass_stray(launch, "tensor's line that does not begin at a multiple of 16 bytes", (uint64_t)(int64_t)at[0], 0, line);
  for (uint32_t d = 0; !load && d < map.rank; ++d) {
    if (at[d] < 0) sass_stray(launch, "store before the begin of a tensor", (uint64_t)(int64_t)at[d], 0, line);
  }
  uint32_t lines = 1;
  for (uint32_t d = 1; d < map.rank; ++d) lines *= map.box[d];
  const uint32_t bytes = map.box[0] * bits / 8;
  for (uint32_t number = 0; number < lines; ++number) {
    uint64_t place = map.address;
    int inside = 1;
    for (uint32_t d = 1, rest = number; d < map.rank; rest /= map.box[d++]) {
      const int64_t index = (int64_t)at[d] + rest % map.box[d];
      inside &= index >= 0 && index < (int64_t)map.sizes[d];
      place += (uint64_t)index * map.strides[d];
    }
    for (uint32_t byte = 0; byte < bytes; ++byte) {
      const int64_t index = (int64_t)at[0] * bits / 8 + byte;
      // A store writes whole groups of 16 bytes, also beyond the end of a line: measured on an H200.
      const int there = inside && index >= 0 && (load ? index : index / 16 * 16) < (int64_t)(map.sizes[0] * bits / 8);
      uint32_t to = first->source[0] + number * bytes + byte;
      to ^= (to >> 7 & ((1u << map.swizzle) - 1)) << 4;
      if (load) {
        *shared_place(launch, to, 1, 1, line) = there ? *global(launch, place + (uint64_t)index, 1, 0, line) : 0;
      } else if (there) {
        *global(launch, place + (uint64_t)index, 1, 1, line) = *shared_place(launch, to, 1, 0, line);
      }
    }
  }
  launch->block->events++;
  if (load) mbarrier_changed(launch, first->source[1], 0, -(int32_t)(lines * bytes), line);
}

static void bulk(const struct group *group, const struct lane *first) {
  const struct launch *launch = &group->launches[first - group->lanes];
  const int line = (int)first->line, load = first->kind == SASS_BULK_LOAD;
  const uint32_t bytes = first->source[4];
  const uint64_t place = first->source[2] | (uint64_t)first->source[3] << 32;
  if (bytes % 16 || place % 16 || first->source[0] % 16) sass_stray(launch, "misaligned copy", place, bytes, line);
  uint8_t *inner = shared_place(launch, first->source[0], bytes, load, line), *outer = global(launch, place, bytes, !load, line);
  memcpy(load ? inner : outer, load ? outer : inner, bytes);
  launch->block->events++;
  if (load) mbarrier_changed(launch, first->source[1], 0, -(int32_t)bytes, line);
}

static void together(struct lane *lanes, const struct launch *launches, uint32_t mask) {
  const struct group group = {lanes, launches, mask};
  struct lane *first = &lanes[__builtin_ctz(mask)];
  switch (first->kind) {
    case SASS_SHFL_UP: case SASS_SHFL_DOWN: case SASS_SHFL_BFLY: case SASS_SHFL_IDX: shuffle(&group); break;
    case SASS_VOTE: vote(&group); break;
    case SASS_MATCH: match(&group); break;
    case SASS_ELECT:
      for EACH(&group, i) lanes[i].result[0] = &lanes[i] == first, lanes[i].result[1] = (uint32_t)(first - lanes);
      break;
    case SASS_WARPSYNC: break;
    case SASS_PICK: pick(&group, first); break;
    case SASS_MMA: case SASS_IMMA: multiply(&group, first); break;
    case SASS_LDSM: case SASS_LDSM_T: case SASS_STSM: case SASS_STSM_T: case SASS_MOVM: matrices(&group, first); break;
    case SASS_TENSOR_LOAD: case SASS_TENSOR_STORE: tensor(&group, first); break;
    case SASS_NEXT_WORK: next_work(&group, first); break;
    case SASS_BULK_LOAD: case SASS_BULK_STORE: bulk(&group, first); break;
    default: reduce(&group, first);
  }
  for EACH(&group, i) lanes[i].kind = SASS_RUNNING;
}

// --- warps, blocks and the grid --------------------------------------------------------------------------------------

// Threads run until each has ended or waits. Those that wait for their warp at the lowest address go on first, together;
// but not while one waits for other warps, unless nothing else can be done. Returns whether something was done.
static int run_warp(struct block *block, struct lane *lanes, const struct launch *launches, uint32_t count, int alone) {
  for (int done = 0;; ++done) {
    uint32_t lowest = ~0u, elsewhere = 0;
    if (block->races) settle(block->races, warp_of(launches));
    for (uint32_t i = 0; i < count; ++i) {
      if (!lanes[i].done && lanes[i].kind == SASS_RUNNING) {
        SASS_KERNEL(&launches[i], &lanes[i]);
        block->events += lanes[i].done;
        done += lanes[i].kind != SASS_YIELD && lanes[i].kind != SASS_MBARRIER;
      }
      if (lanes[i].done) continue;
      if (lanes[i].kind <= SASS_YIELD) {
        elsewhere = 1;
      } else if (lanes[i].at < lowest) {
        lowest = lanes[i].at;
      }
    }
    if (lowest == ~0u || (elsewhere && !alone)) return done;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < count; ++i) {
      mask |= (uint32_t)(!lanes[i].done && lanes[i].kind > SASS_YIELD && lanes[i].at == lowest) << i;
    }
    together(lanes, launches, mask);
    alone = 0;
  }
}

// Lets those go on that wait for something that has happened.
static int wake(struct block *block) {
  int woken = 0;
  uint32_t waiting[kNamed] = {0}, left = 0;
  for (uint32_t warp = 0; block->races && warp < kWarps; ++warp) settle(block->races, warp);
  for (uint32_t i = 0; i < block->threads; ++i) {
    struct lane *lane = &block->lanes[i];
    if (lane->done) continue;
    ++left;
    if (lane->kind == SASS_BARRIER) {
      if (lane->source[0] >= kNamed) sass_stray(&block->launches[i], "barrier", lane->source[0], 0, (int)lane->line);
      ++waiting[lane->source[0]];
      if (block->races) join(block->races->named[lane->source[0]], block->races->now[i / kWarp]);
    }
  }
  for (uint32_t i = 0; i < block->threads; ++i) {
    struct lane *lane = &block->lanes[i];
    if (lane->done) continue;
    int goes = lane->kind == SASS_YIELD;
    if (lane->kind == SASS_BARRIER) {
      const uint32_t number = lane->source[0], expected = lane->source[1] ? lane->source[1] : left;
      goes = waiting[number] + block->named[number].arrived >= expected;
      woken += goes;
    } else if (lane->kind == SASS_MBARRIER) {
      goes = (int)mbarrier_done(&block->launches[i], lane->source[0], lane->source[1], (int)lane->line);
      lane->result[0] = 1;
      woken += goes;
    }
    if (goes && lane->kind == SASS_BARRIER) {
      block->named[lane->source[0]].expected = ~0u;
      if (block->races) {
        acquired(&block->launches[i], block->races->named[lane->source[0]]);
        block->races->now[i / kWarp][i / kWarp]++;
      }
    }
    if (goes) lane->kind = SASS_RUNNING;
  }
  for (int number = 0; number < kNamed; ++number) {
    if (block->named[number].expected == ~0u) block->named[number].arrived = 0, block->named[number].expected = 0;
  }
  return woken;
}

static void start(struct block *block, const uint32_t *grid, const uint32_t *size, uint32_t number) {
  const uint32_t place[3] = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
  memcpy(block->place, place, sizeof place);
  block->threads = size[0] * size[1] * size[2];
  block->idle = 0, block->events = 0;
  memset(block->named, 0, sizeof block->named);
  for (uint32_t i = 0; i < block->threads; ++i) {
    memset(&block->lanes[i], 0, sizeof block->lanes[i]);
    for (uint32_t r = 0; r < SASS_REGISTERS; ++r) block->lanes[i].registers[r] = hashed(poison ^ (i * SASS_REGISTERS + r));
    block->launches[i] = (struct launch){.tid_x = i % size[0], .tid_y = i / size[0] % size[1], .tid_z = i / size[0] / size[1],
                                         .ctaid_x = place[0], .ctaid_y = place[1], .ctaid_z = place[2], .laneid = i % kWarp,
                                         .block = block};
  }
  for (size_t i = 0; i < block->threads * (size_t)SASS_LOCAL; ++i) block->local[i] = (uint8_t)hashed(poison - (uint32_t)i);
  for (uint32_t i = 0; i < shared_bytes; ++i) block->shared[i] = (uint8_t)hashed(poison + i);
  memset(block->known, 0, shared_bytes);
  if (!block->races) return;
  memset(block->races->now, 0, sizeof block->races->now), memset(block->races->named, 0, sizeof block->races->named);
  memset(block->races->ahead, 0, sizeof block->races->ahead);
  memset(block->races->words, 0, (shared_bytes / 4 + 1) * sizeof *block->races->words);
  memset(block->races->bytes, 0, shared_bytes * sizeof *block->races->bytes);
  for (uint32_t warp = 0; warp < kWarps; ++warp) block->races->now[warp][warp] = 1;
}

// Everything that can be done for now. Returns whether the block has ended.
static int run_block(struct block *block) {
  for (;;) {
    const uint64_t before = block->events;
    int done = 0, left = 0;
    for (int alone = 0; alone < 2 && !done; ++alone) {
      for (uint32_t i = 0; i < block->threads; i += kWarp) {
        const uint32_t count = block->threads - i < kWarp ? block->threads - i : kWarp;
        done += run_warp(block, block->lanes + i, block->launches + i, count, alone);
      }
      done += wake(block);
    }
    for (uint32_t i = 0; i < block->threads; ++i) left += !block->lanes[i].done;
    if (left == 0) return 1;
    if (done == 0 && block->events == before) {
      // Time passes: a thread that tries to wait for an mbarrier is told that it is not ready.
      for (uint32_t i = 0; i < block->threads; ++i) {
        struct lane *lane = &block->lanes[i];
        if (!lane->done && lane->kind == SASS_MBARRIER) lane->result[0] = 0, lane->kind = SASS_RUNNING;
      }
      ++block->idle;
      return 0;
    }
    block->idle = 0;
  }
}

static struct {
  uint32_t grid[3], size[3], blocks, next, running, idle;
  uint64_t events;
  pthread_mutex_t one;
} work = {.one = PTHREAD_MUTEX_INITIALIZER};

static void *allocated(size_t bytes) {
  void *found = aligned_alloc(1024, (bytes + 1024) / 1024 * 1024);
  if (!found) abort();
  return found;
}

static struct block *next_block(struct block *block) {
  pthread_mutex_lock(&work.one);
  const uint32_t number = work.next < work.blocks ? work.next++ : ~0u;
  work.events += number != ~0u;
  pthread_mutex_unlock(&work.one);
  if (number == ~0u) return NULL;
  if (!block) {
    const size_t threads = work.size[0] * work.size[1] * work.size[2];
    block = allocated(sizeof *block);
    block->shared = allocated(shared_bytes), block->known = allocated(shared_bytes);
    block->local = allocated(threads * SASS_LOCAL), block->races = NULL;
    if (find_races) {
      block->races = allocated(sizeof *block->races);
      block->races->words = allocated((shared_bytes / 4 + 1) * sizeof *block->races->words);
      block->races->bytes = allocated(shared_bytes * sizeof *block->races->bytes);
    }
    block->lanes = allocated(threads * sizeof *block->lanes), block->launches = allocated(threads * sizeof *block->launches);
  }
  start(block, work.grid, work.size, number);
  return block;
}

static void stuck(struct block **blocks, uint32_t count) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  for (uint32_t b = 0; b < count; ++b) {
    const struct block *block = blocks[b];
    for (uint32_t i = 0; block && i < block->threads; ++i) {
      const struct lane *lane = &block->lanes[i];
      if (lane->done) continue;
      uint32_t same = 0, before = 0;
      for (uint32_t j = i / kWarp * kWarp; j < block->threads && j / kWarp == i / kWarp; ++j) {
        const int as_this = !block->lanes[j].done && block->lanes[j].at == lane->at;
        before += as_this && j < i, same += (uint32_t)as_this;
      }
      if (before == 0) printf("stuck block %u %u %u warp %u threads %u at %#x\n", block->place[0], block->place[1], block->place[2], i / kWarp, same, lane->at);
    }
  }
  fflush(stdout);
  _Exit(4);
}

// A processor's blocks: one that only waits lets the next one begin.
static void *run_blocks(void *unused) {
  enum { kMost = 1 << 16 };
  struct block **blocks = calloc(kMost, sizeof *blocks);
  uint32_t count = 0;
  uint64_t seen = 0;
  uint32_t idle = 0;
  for (;;) {
    uint32_t running = 0, waits = 0;
    uint64_t events = 0;
    for (uint32_t b = 0; b < count; ++b) {
      while (blocks[b] && run_block(blocks[b])) {
        struct block *next = next_block(blocks[b]);
        blocks[b] = next;
        events++;
      }
      if (blocks[b]) running++, waits += blocks[b]->idle > 8, events += blocks[b]->events;
    }
    if (running == waits && count < kMost) {
      struct block *next = next_block(NULL);
      if (next) {
        blocks[count++] = next;
        continue;
      }
    }
    if (running == 0) break;
    pthread_mutex_lock(&work.one);
    if (events != seen) work.events++;
    seen = events;
    const uint64_t all = work.events;
    pthread_mutex_unlock(&work.one);
    static _Thread_local uint64_t last;
    idle = all == last ? idle + 1 : 0;
    last = all;
    if (idle > kIdle) stuck(blocks, count);
    if (idle > 64) sched_yield();
  }
  return unused;
}

static void take(FILE *file, void *to, uint64_t bytes) {
  if (fread(to, 1, bytes, file) != bytes) exit(2);
}

int main(int argc, char **argv) {
  uint32_t head[12];
  FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  take(file, head, sizeof head);
  reciprocal = head[6], poison = head[7], shared_bytes = head[8], unwritten = head[9], find_races = head[10];
  if (head[11] > sizeof bank) return 2;
  take(file, bank, head[11]);
  take(file, &array_count, sizeof array_count);
  if (array_count > sizeof arrays / sizeof arrays[0]) return 2;
  for (uint32_t i = 0; i < array_count; ++i) {
    take(file, &arrays[i].address, 8), take(file, &arrays[i].bytes, 8), take(file, &arrays[i].writable, 4);
    arrays[i].content = allocated(arrays[i].bytes);
    take(file, arrays[i].content, arrays[i].bytes);
  }
  fclose(file);
  memcpy(work.grid, head, sizeof work.grid), memcpy(work.size, head + 3, sizeof work.size);
  work.blocks = head[0] * head[1] * head[2];
  uint32_t processors = (uint32_t)atoi(argv[3]);
  if (processors > work.blocks) processors = work.blocks;
  pthread_t threads[256];
  for (uint32_t i = 1; i < processors && i < 256; ++i) pthread_create(&threads[i], NULL, run_blocks, NULL);
  run_blocks(NULL);
  for (uint32_t i = 1; i < processors && i < 256; ++i) pthread_join(threads[i], NULL);
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
