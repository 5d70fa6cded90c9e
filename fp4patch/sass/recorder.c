/* Stands in for the CUDA runtime in a host program: it records the launches of kernels, and runs none.
 *
 * Linked to objects that nvcc compiled, in place of libcudart. Writes to the file that SASS_LAUNCHES names, for each
 * launch: a line "name gx gy gz bx by bz shared", then a line with the bytes of each parameter in hexadecimal. The sizes
 * of the parameters come from SASS_PARAMETERS, a file with a line for each kernel: "name size size ...". Memory that is
 * set is a line "= address value bytes", with an empty one behind it.
 * Tensor maps are in the driver's form (tensor_map.h).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_map.h"

typedef struct {
  unsigned x, y, z;
} dim3;

enum { kMost = 4096 };
static struct {
  const void *function;
  const char *name;
} kernels[kMost];
static int kernel_count;

void **__cudaRegisterFatBinary(void *unused) {
  static void *handle;
  (void)unused;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **unused) { (void)unused; }
void __cudaUnregisterFatBinary(void **unused) { (void)unused; }
void __cudaRegisterVar(void) {}
char __cudaInitModule(void **unused) { return (void)unused, 1; }
void __cudaRegisterFunction(void **handle, const char *function, char *unused, const char *name) {
  (void)handle, (void)unused;
  if (kernel_count == kMost) abort();
  kernels[kernel_count].function = function;
  kernels[kernel_count++].name = name;
}

static struct {
  dim3 grid, block;
  size_t shared;
  void *stream;
} pushed;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
  pushed.grid = grid, pushed.block = block, pushed.shared = shared, pushed.stream = stream;
  return 0;
}
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *(void **)stream = pushed.stream;
  return 0;
}

static int launched(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared) {
  const char *name = NULL;
  for (int i = 0; i < kernel_count; ++i) name = kernels[i].function == function ? kernels[i].name : name;
  FILE *sizes = fopen(getenv("SASS_PARAMETERS"), "r"), *out = fopen(getenv("SASS_LAUNCHES"), "a");
  if (!name || !sizes || !out) abort();
  static char line[1 << 16];
  char *rest = NULL;
  while (fgets(line, sizeof line, sizes)) {
    rest = strchr(line, ' ');
    if (rest && strlen(name) == (size_t)(rest - line) && memcmp(line, name, (size_t)(rest - line)) == 0) break;
    rest = NULL;
  }
  if (!rest) fprintf(stderr, "no parameters of %s are known\n", name), abort();
  fprintf(out, "%s %u %u %u %u %u %u %zu\n", name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
  for (int i = 0; *rest && *rest != '\n'; ++i) {
    const unsigned long size = strtoul(rest, &rest, 10);
    for (unsigned long byte = 0; byte < size; ++byte) fprintf(out, "%02x", ((const uint8_t *)arguments[i])[byte]);
    fputc(' ', out);
  }
  fputc('\n', out);
  fclose(sizes);
  return fclose(out);
}
int __cudaGetKernel(const void **kernel, const void *function) {
  *kernel = function;
  return 0;
}
int __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  (void)stream;
  return launched(kernel, grid, block, arguments, shared);
}
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
int cudaMemsetAsync(void *at, int value, size_t bytes, void *stream) {
  (void)stream;
  FILE *out = fopen(getenv("SASS_LAUNCHES"), "a");
  if (!out) abort();
  fprintf(out, "= %llu %d %zu\n\n", (unsigned long long)(uintptr_t)at, value & 255, bytes);
  return fclose(out);
}
struct config {
  dim3 grid, block;
  size_t shared;
};
int cudaLaunchKernelExC(const struct config *config, const void *kernel, void **arguments) {
  return launched(kernel, config->grid, config->block, arguments, config->shared);
}

/* The device: a GB10 with few multiprocessors, so that a grid of one block for each stays small. */
enum { kSharedOptin = 97, kMultiprocessors = 16, kMajor = 75, kMinor = 76, kThreads = 1, kSharedBlock = 8, kSharedMultiprocessor = 81 };
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case kSharedOptin: *value = 101376; break;
    case kSharedMultiprocessor: *value = 102400; break;
    case kSharedBlock: *value = 49152; break;
    case kMultiprocessors: *value = getenv("SASS_PROCESSORS") ? atoi(getenv("SASS_PROCESSORS")) : 48; break;
    case kMajor: *value = 12; break;
    case kMinor: *value = 1; break;
    case kThreads: *value = 1024; break;
    case 39: *value = 1536; break;
    default: *value = 0;
  }
  return 0;
}
int cudaGetDevice(int *device) { return *device = 0; }
int cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int cudaFuncSetAttribute(const void *function, int attribute, int value) { return (void)function, (void)attribute, (void)value, 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
const char *cudaGetErrorString(int error) { return (void)error, "error"; }
int cudaDriverGetVersion(int *version) { return *version = 13000, 0; }
int cudaStreamSynchronize(void *stream) { return (void)stream, 0; }
int cudaDeviceSynchronize(void) { return 0; }
/* What a program names and must not call: there is no memory of a device here. */
static int refused(const char *name) { fprintf(stderr, "%s is not supported here\n", name), abort(); }
int cudaMemcpy(void) { return refused("cudaMemcpy"); }
int cudaPointerGetAttributes(void) { return refused("cudaPointerGetAttributes"); }
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads, size_t shared, unsigned flags) {
  (void)function, (void)threads, (void)shared, (void)flags;
  return *blocks = 1, 0;
}

static int encode_tiled(uint8_t *bytes, unsigned type, uint32_t rank, void *address, const uint64_t *sizes,
                        const uint64_t *strides, const uint32_t *box, const uint32_t *steps, unsigned interleave,
                        unsigned swizzle, unsigned promotion, unsigned fill) {
  /* A map's numbers of the types of a CUtensorMapDataType: TF32 is a float's, with a bit. */
  static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8, 13, 14, 15};
  struct tensor_map map = {(uint64_t)(uintptr_t)address};
  if (type >= sizeof types || rank - 1 > 4) return 1;
  map.rank = rank, map.type = types[type], map.tf32 = type == 11 || type == 12;
  map.interleave = interleave, map.swizzle = swizzle, map.promotion = promotion, map.fill = fill;
  for (uint32_t d = 0; d < rank; ++d) {
    map.sizes[d] = sizes[d], map.box[d] = box[d], map.steps[d] = steps[d];
    if (d) map.strides[d] = strides[d - 1];
  }
  tensor_map_write(&map, bytes);
  return 0;
}
int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags, int *found) {
  (void)version, (void)flags;
  *function = strcmp(name, "cuTensorMapEncodeTiled") == 0 ? (void *)encode_tiled : NULL;
  if (found) *found = *function ? 0 : 1;
  return *function ? 0 : 1;
}
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *found) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, found);
}
