// vLLM's own conversions of floats to E2M1: they take an array by reference, and return the nibbles, value 0 lowest.

#include <cstring>

#include "nvfp4.cuh"

using namespace vllm;

// The floats as the array that a function wants.
template <class Element, int kElements>
struct As {
  Element values[kElements];
  __device__ explicit As(const float (&v)[sizeof(values) / sizeof(float)]) { memcpy(values, v, sizeof values); }
  __device__ Element (&array())[kElements] { return values; }
};

// What a function returned as one number: the wide ones return a structure of two words.
template <class Returned>
__device__ unsigned long long word(const Returned& returned) {
  static_assert(sizeof returned <= 8, "sixteen nibbles");
  unsigned long long number = 0;
  memcpy(&number, &returned, sizeof returned);
  return number;
}
