// A libcuda.so.1 for tests without a GPU: it runs the kernels of conversion.h on the host. A probe's kernel converts what
// it finds in its input, by the form that was filled last. FAKE_FAULT selects a fault, FAKE_ARCH the GPU (90: sm_90).
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion.h"

static struct conversion last;
static uint64_t first_record;

static const char *fault(void) { return getenv("FAKE_FAULT") ? getenv("FAKE_FAULT") : ""; }
static int arch(void) { return getenv("FAKE_ARCH") ? atoi(getenv("FAKE_ARCH")) : 90; }

int cuInit(unsigned flags) { return strcmp(fault(), "no-gpu") ? 0 : 100; }
int cuDriverGetVersion(int *to) { return *to = 13000, 0; }
int cuDeviceGetCount(int *to) { return *to = 1, 0; }
int cuDeviceGet(int *to, int at) { return *to = at, 0; }
int cuDeviceGetName(char *to, int room, int gpu) { return snprintf(to, (size_t)room, "Fake \"GPU\""), 0; }
int cuDeviceGetAttribute(int *to, int what, int gpu) {
  return *to = what == 75 ? arch() / 10 : what == 76 ? arch() % 10 : 1, 0;
}
int cuDeviceTotalMem_v2(size_t *to, int gpu) { return *to = 1 << 30, 0; }
int cuDevicePrimaryCtxRetain(void **to, int gpu) { return *to = to, 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **to, const void *image) { return *to = to, 0; }
int cuModuleUnload(void *module) { return 0; }
int cuMemAlloc_v2(unsigned long long *to, size_t size) { return *to = (unsigned long long)malloc(size), 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) { return memcpy((void *)to, from, size), 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size) { return memcpy(to, (void *)from, size), 0; }
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t size, void *stream) {
  return memset((void *)to, value, size), 0;
}
int cuGetErrorString(int status, const char **to) {
  return *to = status == 700 ? "an illegal memory access was encountered" : "no CUDA-capable device is detected", 0;
}
int cuModuleGetFunction(void **to, void *module, const char *name) {
  const int what = !strcmp(name, "fp4patch_fill") ? 1 : !strcmp(name, "fp4patch_compare") ? 2 : 3;
  return *to = (void *)(size_t)what, 0;
}

static uint32_t loaded(const uint8_t *record, uint32_t bits, uint32_t lane) {
  if (bits == 4) return record[lane / 2] >> 4 * (lane % 2) & 15;
  uint32_t value = 0;
  memcpy(&value, record + lane * (bits / 8), bits / 8);
  return value;
}

static void probe(const uint8_t *input, uint8_t *output, uint32_t records) {
  const uint32_t in = stored_bits(last.input), out = stored_bits(last.output), size = output_bytes(&last);
  for (uint32_t at = 0; at < records; ++at) {
    const uint8_t *const record = input + (uint64_t)at * input_bytes(&last);
    uint8_t *const to = output + (uint64_t)at * size;
    if (!strcmp(fault(), "skips") && first_record + at == 12345) continue;
    for (uint32_t lane = 0; lane < last.lanes; ++lane) {
      const uint32_t bits = loaded(record, in, lane);
      uint32_t code;
      if (last.input >= E2M1) {
        code = last.input == E2M1 ? e2m1_value[bits] : last.input == E2M3 ? e2m3_value[bits] : e3m2_value[bits];
        if (last.output == BFLOAT16) code >>= 16;
      } else if (last.stochastic) {
        const uint8_t *const random = record + last.lanes * in / 8 + lane / 4 * 4;
        code = stochastic(widened(last.input, bits), random[lane % 4 == 1 ? 2 : lane % 4 == 2 ? 1 : lane % 4]);
      } else {
        code = nearest(last.output, widened(last.input, bits));
        if (!strcmp(fault(), "signs") && is_nan(widened(last.input, bits)) && bits >> (in - 1)) code |= 8;
        if (!strcmp(fault(), "wrong") && lane == 5 && bits == 0x3a00) code ^= 1;
      }
      if (out == 4) to[lane / 2] = (uint8_t)(lane % 2 ? (to[lane / 2] & 15) | code << 4 : code);
      else memcpy(to + lane * (out / 8), &code, out / 8);
    }
  }
  if (!strcmp(fault(), "stray")) output[(uint64_t)records * size + 99] ^= 1;
}

int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  if ((size_t)kernel == 3) {
    if (!strcmp(fault(), "crashes")) return 700;
    probe(*(const uint8_t **)arguments[0], *(uint8_t **)arguments[1], x * threads);
    return 0;
  }
  const struct conversion *const c = (const struct conversion *)arguments[0];
  const uint64_t first = *(const uint64_t *)arguments[1];
  const uint32_t records = *(const uint32_t *)arguments[2];
  uint8_t *const buffer = *(uint8_t **)arguments[3];
  if ((size_t)kernel == 1) {
    last = *c;
    first_record = first;
    for (uint32_t i = 0; i < records * c->lanes; ++i) fill_lane(c, first, i / c->lanes, i % c->lanes, buffer);
  } else {
    for (uint32_t i = 0; i < records; ++i) compare_record(c, first, i, buffer, *(struct found **)arguments[4]);
  }
  return 0;
}
