// All types of a format of FP6 by their constructors from double, four values of a byte each, on the device and on the host.

#include <cstdint>

#include "cutlass/float_subbyte.h"

#ifndef FORMAT
#error "FORMAT: float_e2m3 or float_e3m2"
#endif
#define JOINED(a, b) a##b
#define TYPE(format, suffix) JOINED(format, suffix)
using Value = cutlass::TYPE(FORMAT, _t);
using Unpacked = cutlass::detail::TYPE(FORMAT, _unpack8bits_t);
using InSharedMemory = cutlass::detail::TYPE(FORMAT, _unpacksmem_t);

struct alignas(16) Record {
  double value[4];
};

CUTLASS_HOST_DEVICE
uchar4 codes(Record const& in) {
  return {static_cast<uint8_t>(Value(in.value[0]).raw()), static_cast<uint8_t>(Unpacked(in.value[1]).raw()),
          static_cast<uint8_t>(InSharedMemory(in.value[2]).raw()), static_cast<uint8_t>(Value(in.value[3]).raw())};
}

extern "C" __global__ void probe(Record const* source, uchar4* code) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  code[i] = codes(source[i]);
}

#ifndef __CUDA_ARCH__  // several probes are one translation unit for the device
extern "C" void fp4patch_host(void const* all, void* packed, unsigned long long records) {
  for (unsigned long long record = 0; record < records; ++record) {
    double const* in = static_cast<Record const*>(all)[record].value;
    // There, back and there again, so that decoding counts.
    static_cast<uchar4*>(packed)[record] = codes({{float(Value(in[0])), float(Unpacked(in[1])), float(InSharedMemory(in[2])),
                                                   float(Value(in[3]))}});
  }
}
#endif
