// A copy of fp32_vec_to_e2m1 in another header, one overload alone.

#include "copies.cuh"

#if !defined(FUNCTION) || !defined(ELEMENT) || !defined(ELEMENTS)
#error "FUNCTION: its name; ELEMENT and ELEMENTS: the array that it takes; a single one by value"
#endif

using Array = ELEMENT[ELEMENTS];
using Packed = std::conditional_t<sizeof(Array) == 8, uint8_t, uint32_t>;

extern "C" __global__ void probe(Array const* source, Packed* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Array array;
#pragma unroll
  for (int k = 0; k < ELEMENTS; ++k) {
    array[k] = source[i][k];
  }
#if ELEMENTS == 1
  packed[i] = FUNCTION(*array);
#else
  packed[i] = FUNCTION(array);
#endif
}
