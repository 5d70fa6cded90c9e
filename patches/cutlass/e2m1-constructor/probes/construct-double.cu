// TYPE(double), one value: the constructors that round a double once.

#include <cstdint>

#include "cutlass/float_subbyte.h"

#ifndef TYPE
#error "TYPE: the type constructed, cutlass::float_e2m1_t or cutlass::detail::float_e2m1_unpacksmem_t"
#endif

#ifndef __CUDA_ARCH__  // several probes are one translation unit for the device
// Host code: two values in a byte; there, back and there again, so that decoding counts.
extern "C" void fp4patch_host(double const* all, uint8_t* packed, unsigned long long records) {
  for (unsigned long long record = 0; record < records; ++record) {
    double const low = float(TYPE(all[2 * record])), high = float(TYPE(all[2 * record + 1]));
    packed[record] = TYPE(low).raw() | TYPE(high).raw() << 4;
  }
}
#endif

extern "C" __global__ void probe(double const* source, uint8_t* codes) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  codes[i] = TYPE(source[i]).raw();
}
