// Calls a function that the host's compiler made of a probe: host RECORDS BYTES-IN BYTES-OUT < values > results.
#include <stdio.h>
#include <stdlib.h>

void fp4patch_host(const void *values, void *packed, unsigned long long records);

// The object file registers its device code, which is not used.
void **__cudaRegisterFatBinary(void *all) { return (void **)all; }
void __cudaRegisterFatBinaryEnd(void **all) { (void)all; }
void __cudaUnregisterFatBinary(void **all) { (void)all; }
void __cudaRegisterVar(void) {}
void __cudaRegisterFunction(void) {}
// A kernel beside the host code is not launched.
void __cudaPopCallConfiguration(void) { abort(); }
void __cudaLaunchKernel(void) { abort(); }
void __cudaGetKernel(void) { abort(); }

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const size_t records = strtoull(argv[1], NULL, 10), in = strtoull(argv[2], NULL, 10), out = strtoull(argv[3], NULL, 10);
  unsigned char *values = aligned_alloc(64, (records * in + 63) / 64 * 64), *packed = malloc(records * out);
  if (!values || !packed || fread(values, in, records, stdin) != records) return 2;
  fp4patch_host(values, packed, records);
  return fwrite(packed, out, records, stdout) != records;
}
