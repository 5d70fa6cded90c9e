// Both types of a format of FP6 in turn, four values of a byte each: to it (ENCODE) or from it, by constructor and by
// operator float. The arrays of CUTLASS loop over these where the target has no instruction.

#include <cstdint>

#include "cutlass/float_subbyte.h"

#ifndef FORMAT
#error "FORMAT: float_e2m3 or float_e3m2"
#endif
#define JOINED(a, b) a##b
#define TYPE(format, suffix) JOINED(format, suffix)
using Value = cutlass::TYPE(FORMAT, _t);
using Unpacked = cutlass::detail::TYPE(FORMAT, _unpack8bits_t);

#if defined(ENCODE)
extern "C" __global__ void probe(float4 const* source, uchar4* code) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 const in = source[i];
  code[i] = make_uchar4(Value(in.x).raw(), Unpacked(in.y).raw(), Value(in.z).raw(), Unpacked(in.w).raw());
}
#else
extern "C" __global__ void probe(uchar4 const* code, float4* decoded) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uchar4 const in = code[i];
  decoded[i] = make_float4(float(Value::bitcast(in.x)), float(Unpacked::bitcast(in.y)), float(Value::bitcast(in.z)),
                           float(Unpacked::bitcast(in.w)));
}
#endif
