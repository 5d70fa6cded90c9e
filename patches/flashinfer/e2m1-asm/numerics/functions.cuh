// FlashInfer's own conversions of floats to E2M1: they take an array by reference, and return the nibbles, value 0 lowest.

#include <cstring>

#include "quantization.cuh"

// The floats as the array that a function wants.
template <class Element, int kElements>
struct As {
  Element values[kElements];
  __device__ explicit As(const float (&v)[sizeof(values) / sizeof(float)]) { memcpy(values, v, sizeof values); }
  __device__ Element (&array())[kElements] { return values; }
};
