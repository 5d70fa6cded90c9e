// Runs a translated kernel over the inputs that harness.cu makes on a GPU, and digests what it stores in the same way.
// LANES, VALUE, OUT: values of a call, bytes of each, bytes stored. PARAMETERS, BLOCK_SIZE: offsets in constant bank 0.
// Arguments: the stride of groups, and a number of threads; or "sample", and how many outputs to write as they are.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

#include "kernel.inc"

enum { BLOCK = 1024, WORDS = (OUT + 3) / 4 };

static const uint64_t groups = (UINT64_C(1) << 8 * VALUE) / LANES;
static uint64_t stride, next_block, total;

static uint64_t mix(uint64_t z) {  // the finalizer of splitmix64
  z ^= z >> 30;
  z *= UINT64_C(0xbf58476d1ce4e5b9);
  z ^= z >> 27;
  z *= UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

struct memory {
  _Alignas(16) uint8_t constants[0x2000];
  _Alignas(16) uint8_t source[BLOCK * LANES * VALUE];
  _Alignas(16) uint8_t result[BLOCK * OUT];
};

static void run(struct memory *memory, uint64_t first, uint32_t count) {
  const uint64_t source = (uintptr_t)memory->source, result = (uintptr_t)memory->result;
  const uint32_t size = BLOCK;
  memcpy(memory->constants + PARAMETERS, &source, 8);
  memcpy(memory->constants + PARAMETERS + 8, &result, 8);
  memcpy(memory->constants + BLOCK_SIZE, &size, 4);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t group = (first + i) * stride;
    for (uint32_t j = 0; j < LANES; ++j) {
      const uint64_t bits = group + (j + (group >> 10)) % LANES * groups;
      memcpy(memory->source + (i * LANES + j) * VALUE, &bits, VALUE);  // little-endian, as the GPU is
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const struct launch launch = {memory->constants, i, 0, BLOCK, 1};
    kernel(&launch);
  }
}

static void *work(void *unused) {
  struct memory *memory = aligned_alloc(16, sizeof *memory);
  const uint64_t last = (groups + stride - 1) / stride;
  uint64_t own = 0;
  for (uint64_t first; (first = __atomic_fetch_add(&next_block, BLOCK, __ATOMIC_RELAXED)) < last;) {
    const uint32_t count = last - first < BLOCK ? (uint32_t)(last - first) : BLOCK;
    run(memory, first, count);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t words[WORDS] = {0};
      memcpy(words, memory->result + i * OUT, OUT);
      for (uint64_t k = 0; k < WORDS; ++k) {
        own += mix(((first + i) * stride << 32 | words[k]) + k * UINT64_C(0x9e3779b97f4a7c15));
      }
    }
  }
  __atomic_fetch_add(&total, own, __ATOMIC_RELAXED);
  free(memory);
  return unused;
}

int main(int count, char **arguments) {
  if (count != 3) {
    return 2;
  }
  if (strcmp(arguments[1], "sample") == 0) {
    static struct memory memory;
    const uint32_t samples = (uint32_t)atoi(arguments[2]);
    stride = (groups / samples - 1) | 1;
    run(&memory, 0, samples);
    for (uint32_t i = 0; i < samples * OUT; ++i) {
      printf("%02x", memory.result[i]);
    }
    printf("\n");
    return 0;
  }
  stride = strtoull(arguments[1], NULL, 10);
  const int threads = atoi(arguments[2]);
  pthread_t running[64];
  for (int i = 0; i < threads && i < 64; ++i) {
    pthread_create(running + i, NULL, work, NULL);
  }
  for (int i = 0; i < threads && i < 64; ++i) {
    pthread_join(running[i], NULL);
  }
  printf("%016llx\n", (unsigned long long)total);
  return 0;
}
