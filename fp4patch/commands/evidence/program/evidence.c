// Runs every conversion of a kit on this machine's GPU over all its inputs, compares each result there, and writes a JSON
// file. It needs the driver's libcuda.so.1 and the C library, and nothing else: no CUDA toolkit and no Python.
// Compiled with kit.h (what is to run) and cubins.bin (the machine code) beside it; build.sh has the command.
// Exit status: 0 all results are right, 1 some are wrong, 2 it cannot run.
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "conversion.h"

// One file of machine code. A target with the suffix "a" runs on its own GPU, others on later minor versions too.
struct cubin {
  const char *arch;
  int major, minor, suffix;
  size_t at;
  const char *sha256;
};

struct subject {
  const char *tree, *probe, *kernel, *form;  // JSON strings without their quotes
  int cubin, exact;                          // exact: the sign of NaN counts
  struct conversion conversion;
  uint64_t digest;  // the expected one
};

#include "kit.h"

__asm__(".section .rodata\n.balign 64\n.hidden kit_code\n.globl kit_code\nkit_code:\n.incbin \"cubins.bin\"\n.previous\n");
extern const unsigned char kit_code[] __attribute__((visibility("hidden")));

// --- the driver ------------------------------------------------------------------------------------------------------

typedef void *handle;
typedef unsigned long long pointer;

static struct {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int *);
  int (*cuDeviceGetCount)(int *);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetName)(char *, int, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDeviceTotalMem_v2)(size_t *, int);
  int (*cuDevicePrimaryCtxRetain)(handle *, int);
  int (*cuCtxSetCurrent)(handle);
  int (*cuCtxSynchronize)(void);
  int (*cuModuleLoadData)(handle *, const void *);
  int (*cuModuleGetFunction)(handle *, handle, const char *);
  int (*cuModuleUnload)(handle);
  int (*cuMemAlloc_v2)(pointer *, size_t);
  int (*cuMemcpyHtoD_v2)(pointer, const void *, size_t);
  int (*cuMemcpyDtoH_v2)(void *, pointer, size_t);
  int (*cuMemsetD8Async)(pointer, unsigned char, size_t, handle);
  int (*cuLaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
  int (*cuGetErrorString)(int, const char **);
} cuda;

#define FIELD(name) {#name, offsetof(__typeof__(cuda), name)}
static const struct {
  const char *name;
  size_t at;
} symbols[] = {
    FIELD(cuInit), FIELD(cuDriverGetVersion), FIELD(cuDeviceGetCount), FIELD(cuDeviceGet), FIELD(cuDeviceGetName),
    FIELD(cuDeviceGetAttribute), FIELD(cuDeviceTotalMem_v2), FIELD(cuDevicePrimaryCtxRetain), FIELD(cuCtxSetCurrent),
    FIELD(cuCtxSynchronize), FIELD(cuModuleLoadData), FIELD(cuModuleGetFunction), FIELD(cuModuleUnload), FIELD(cuMemAlloc_v2),
    FIELD(cuMemcpyHtoD_v2), FIELD(cuMemcpyDtoH_v2), FIELD(cuMemsetD8Async), FIELD(cuLaunchKernel), FIELD(cuGetErrorString)};

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fputs("error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(2);
}

static const char *reason(int status) {
  const char *text = NULL;
  if (cuda.cuGetErrorString(status, &text) != 0 || !text) text = "unknown error";
  return text;
}

static void must(int status, const char *what) {
  if (status) fail("%s: %s (CUDA error %d)", what, reason(status), status);
}

static void load_driver(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("there is no NVIDIA driver in this machine: %s", dlerror());
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
    void *const found = dlsym(library, symbols[i].name);
    if (!found) fail("the driver's libcuda.so.1 has no %s: it is too old for this GPU", symbols[i].name);
    memcpy((char *)&cuda + symbols[i].at, &found, sizeof found);
  }
}

// --- the report ------------------------------------------------------------------------------------------------------

static char *report;
static size_t report_size, report_room;

static void add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (report_size + (size_t)size + 1 > report_room) {
    report_room = 2 * (report_room + (size_t)size + 1);
    report = (char *)realloc(report, report_room);
    if (!report) fail("there is not enough memory");
  }
  va_start(arguments, format);
  vsnprintf(report + report_size, (size_t)size + 1, format, arguments);
  va_end(arguments);
  report_size += (size_t)size;
}

static void add_text(const char *text) {
  add("\"");
  for (; *text; ++text) {
    const unsigned char one = (unsigned char)*text;
    if (one == '"' || one == '\\') add("\\%c", one);
    else if (one < 0x20 || one > 0x7e) add("\\u%04x", one);
    else add("%c", one);
  }
  add("\"");
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

// The driver's release, 580.95.05, which its library does not state.
static void driver_release(char *to, size_t room) {
  char line[256] = "";
  FILE *const file = fopen("/proc/driver/nvidia/version", "r");
  *to = 0;
  if (!file) return;
  if (fgets(line, sizeof line, file)) {
    for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n")) {
      if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
        snprintf(to, room, "%s", word);
        break;
      }
    }
  }
  fclose(file);
}

// --- one subject -----------------------------------------------------------------------------------------------------

enum { kThreads = 256, kBuffer = 32 << 20, kGuard = 4096 };

static handle fill, compare;
static pointer input, output, found_at;
static unsigned blocks;

static const char *launch(const struct subject *s, handle kernel, uint64_t first, uint32_t records) {
  struct conversion conversion = s->conversion;
  const size_t stored = (size_t)records * output_bytes(&conversion);
  void *filling[] = {&conversion, &first, &records, &input}, *probing[] = {&input, &output};
  void *comparing[] = {&conversion, &first, &records, &output, &found_at};
  int status = cuda.cuLaunchKernel(fill, blocks, 1, 1, kThreads, 1, 1, 0, NULL, filling, NULL);
  // A store that does not happen must show: what is there before is not the result of the chunk before.
  if (!status) status = cuda.cuMemsetD8Async(output, first / records % 2 ? 0x5a : 0xa5, stored + kGuard, NULL);
  if (!status) status = cuda.cuLaunchKernel(kernel, records / kThreads, 1, 1, kThreads, 1, 1, 0, NULL, probing, NULL);
  if (!status) status = cuda.cuLaunchKernel(compare, blocks, 1, 1, kThreads, 1, 1, 0, NULL, comparing, NULL);
  return status ? reason(status) : NULL;
}

static uint32_t value_in(const unsigned char *record, uint32_t bits, uint32_t lane) {
  if (bits == 4) return record[lane / 2] >> 4 * (lane % 2) & 15;
  uint32_t value = 0;
  memcpy(&value, record + lane * (bits / 8), bits / 8);
  return value;
}

// Runs the chunk of the first wrong value again, and adds that value to the report.
static void add_first(const struct subject *s, handle kernel, uint64_t lowest, uint32_t records) {
  const struct conversion *const c = &s->conversion;
  const uint64_t record = lowest / 32, first = record / records * records;
  const uint32_t lane = (uint32_t)(lowest % 32), size = output_bytes(c);
  unsigned char stored[64] = {0};
  if (launch(s, kernel, first, records) || cuda.cuCtxSynchronize()) return;
  if (cuda.cuMemcpyDtoH_v2(stored, output + (record - first) * size, size)) return;
  const int inside = lane < c->lanes;
  add(", \"first\": {\"record\": %llu, \"lane\": %u, \"input\": \"%#x\"", (unsigned long long)record, lane,
      inside ? input_of(c, record, lane) : 0);
  if (c->stochastic) add(", \"random\": %u", random_of(c, record, lane));
  add(", \"expected\": \"%#x\", \"got\": \"%#x\"}", inside ? expected_of(c, record, lane) : 0,
      value_in(stored, stored_bits(c->output), lane));
}

static void add_head(const struct subject *s) {
  add("%s\n    {\"tree\": \"%s\", \"probe\": \"%s\", \"arch\": \"%s\", \"cubin\": \"%s\", \"form\": \"%s\"",
      report[report_size - 1] == '[' ? "" : ",", s->tree, s->probe, cubins[s->cubin].arch, cubins[s->cubin].sha256, s->form);
  printf("  %-24s %-44s %-8s", s->tree, s->probe, cubins[s->cubin].arch);
}

static void add_error(const char *problem) {
  printf(" %s\n", problem);
  add(", \"error\": ");
  add_text(problem);
  add("}");
}

// Adds one subject to the report; returns whether all its results are right. A GPU that reports an error cannot go on.
static int run(const struct subject *s, handle module, int *broken) {
  const struct conversion *const c = &s->conversion;
  const uint64_t all = 1ull << c->space;
  const double began = now();
  struct found found = {0, 0, 0, ~0ull};
  unsigned char guard[kGuard];
  uint32_t records = 1u << 22;
  handle kernel = NULL;
  const char *problem = NULL;
  while (records > all || (uint64_t)records * (input_bytes(c) + output_bytes(c)) > kBuffer) records /= 2;

  add_head(s);
  int status = cuda.cuModuleGetFunction(&kernel, module, s->kernel);
  if (!status) status = cuda.cuMemcpyHtoD_v2(found_at, &found, sizeof found);
  if (status) problem = reason(status);
  for (uint64_t first = 0; first < all && !problem; first += records) problem = launch(s, kernel, first, records);
  if (!problem && ((status = cuda.cuCtxSynchronize()) || (status = cuda.cuMemcpyDtoH_v2(&found, found_at, sizeof found)) ||
                   (status = cuda.cuMemcpyDtoH_v2(guard, output + (uint64_t)records * output_bytes(c), kGuard)))) {
    problem = reason(status);
  }
  if (problem) {
    *broken = status != 0 || cuda.cuCtxSynchronize() != 0;
    add_error(problem);
    return 0;
  }
  int outside = 0;
  for (int i = 1; i < kGuard; ++i) outside |= guard[i] != guard[0];
  const int right = !found.wrong && !(s->exact && found.nan_signs) && found.digest == s->digest && !outside;
  printf(" %s: %llu records of %u, %.2f 10^9 values/s, %llu wrong, digest %s", right ? "right" : "WRONG",
         (unsigned long long)all, c->lanes, 1e-9 * (double)all * c->lanes / (now() - began), (unsigned long long)found.wrong,
         found.digest == s->digest ? "as expected" : "differs");
  if (found.nan_signs) printf(", %llu NaNs keep a sign", (unsigned long long)found.nan_signs);
  printf("%s\n", outside ? ", stores behind its output" : "");
  add(", \"exact\": %s, \"records\": %llu, \"lanes\": %u, \"wrong\": %llu, \"nan_signs\": %llu, \"stray\": %s",
      s->exact ? "true" : "false", (unsigned long long)all, c->lanes, (unsigned long long)found.wrong,
      (unsigned long long)found.nan_signs, outside ? "true" : "false");
  add(", \"digest\": \"%016llx\", \"seconds\": %.3f", (unsigned long long)found.digest, now() - began);
  if (found.wrong) add_first(s, kernel, found.lowest, records);
  add("}");
  fflush(stdout);
  return right;
}

// --- the whole -------------------------------------------------------------------------------------------------------

enum { kMultiprocessors = 16, kMajor = 75, kMinor = 76 };

static int runs_on(const struct cubin *one, int major, int minor) {
  return one->major == major && (one->suffix == 'a' ? one->minor == minor : one->minor <= minor);
}

int main(int argc, char **argv) {
  const char *name = "fp4patch-evidence.json";
  int device = 0;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "-o") && i + 1 < argc) name = argv[++i];
    else if (!strcmp(argv[i], "--device") && i + 1 < argc) device = atoi(argv[++i]);
    else {
      const int help = !strcmp(argv[i], "-h") || !strcmp(argv[i], "--help");
      fprintf(help ? stdout : stderr, "usage: %s [-o FILE.json] [--device N]\n%s\n", argv[0], KIT_TITLE);
      return help ? 0 : 2;
    }
  }
  load_driver();
  int count = 0, cuda_release = 0, major = 0, minor = 0, multiprocessors = 0, gpu = 0;
  int status = cuda.cuInit(0);
  if (!status) status = cuda.cuDeviceGetCount(&count);
  must(status, "the driver finds no GPU");
  if (device < 0 || device >= count) fail("there is no GPU %d: this machine has %d", device, count);
  char gpu_name[256] = "", release[64];
  size_t memory = 0;
  handle context = NULL;
  must(cuda.cuDeviceGet(&gpu, device), "the GPU cannot be used");
  must(cuda.cuDeviceGetName(gpu_name, sizeof gpu_name - 1, gpu), "the GPU has no name");
  must(cuda.cuDeviceGetAttribute(&major, kMajor, gpu), "the GPU states no architecture");
  must(cuda.cuDeviceGetAttribute(&minor, kMinor, gpu), "the GPU states no architecture");
  must(cuda.cuDeviceGetAttribute(&multiprocessors, kMultiprocessors, gpu), "the GPU states no size");
  must(cuda.cuDeviceTotalMem_v2(&memory, gpu), "the GPU states no memory");
  must(cuda.cuDriverGetVersion(&cuda_release), "the driver states no version");
  driver_release(release, sizeof release);
  const struct cubin *checker = NULL;
  for (size_t i = 0; i < sizeof checkers / sizeof checkers[0]; ++i) {
    if (runs_on(&checkers[i], major, minor)) checker = &checkers[i];
  }
  if (!checker) fail("%s is sm_%d%d, and this program has code for %s", gpu_name, major, minor, KIT_ARCHS);
  FILE *const file = fopen(name, "w");
  if (!file) fail("%s cannot be written: name another file with -o", name);
  must(cuda.cuDevicePrimaryCtxRetain(&context, gpu), "the GPU cannot be used");
  must(cuda.cuCtxSetCurrent(context), "the GPU cannot be used");
  handle module = NULL;
  must(cuda.cuModuleLoadData(&module, kit_code + checker->at), "the GPU does not take code for its own architecture");
  must(cuda.cuModuleGetFunction(&fill, module, "fp4patch_fill"), "the program is damaged");
  must(cuda.cuModuleGetFunction(&compare, module, "fp4patch_compare"), "the program is damaged");
  must(cuda.cuMemAlloc_v2(&input, kBuffer), "the GPU has no memory left");
  must(cuda.cuMemAlloc_v2(&output, kBuffer + kGuard), "the GPU has no memory left");
  must(cuda.cuMemAlloc_v2(&found_at, sizeof(struct found)), "the GPU has no memory left");
  blocks = (unsigned)multiprocessors * 8;

  struct utsname machine;
  char finished[32];
  if (uname(&machine)) memset(&machine, 0, sizeof machine);
  const double began = now();
  printf("%s\n%s (sm_%d%d), driver %s\n", KIT_TITLE, gpu_name, major, minor, *release ? release : "unknown");
  add("{\n  \"format\": \"fp4patch-evidence\",\n  \"schema\": 1,\n  \"kit\": %s,\n  \"device\": {\"name\": ", KIT_JSON);
  add_text(gpu_name);
  add(", \"arch\": \"sm_%d%d\", \"multiprocessors\": %d, \"memory\": %llu, \"driver\": ", major, minor, multiprocessors,
      (unsigned long long)memory);
  add_text(release);
  add(", \"cuda\": \"%d.%d\", \"machine\": ", cuda_release / 1000, cuda_release % 1000 / 10);
  add_text(machine.machine);
  add("},\n  \"runs\": [");
  int right = 0, ran = 0, broken = 0;
  const int subject_count = (int)(sizeof subjects / sizeof subjects[0]);
  for (int at = 0, next = 0; at < subject_count && !broken; at = next) {
    const int cubin = subjects[at].cubin;
    for (next = at; next < subject_count && subjects[next].cubin == cubin; ++next) {}
    if (!runs_on(&cubins[cubin], major, minor)) continue;
    module = NULL;
    status = cuda.cuModuleLoadData(&module, kit_code + cubins[cubin].at);
    for (int i = at; i < next && !broken; ++i) {
      ++ran;
      if (!status) {
        right += run(&subjects[i], module, &broken);
        continue;
      }
      add_head(&subjects[i]);
      add_error(reason(status));
    }
    if (module && !broken) cuda.cuModuleUnload(module);
  }
  const time_t when = time(NULL);
  strftime(finished, sizeof finished, "%Y-%m-%dT%H:%M:%SZ", gmtime(&when));
  add("\n  ],\n  \"ended_early\": %s,\n  \"seconds\": %.3f,\n  \"finished\": \"%s\"\n}\n", broken ? "true" : "false", now() - began,
      finished);
  if (fwrite(report, 1, report_size, file) != report_size || fclose(file)) fail("%s cannot be written: the disk is full", name);
  printf("%d of %d conversions are right in %.1f s%s; written to %s\n", right, ran, now() - began,
         broken ? "; the GPU reported an error and could not go on" : "", name);
  return right == ran && ran ? 0 : 1;
}
