// What inline PTX does with its operands before it converts them to E2M1, for the software in its place: parts of
// an operand as floats, and products. Every operation is rounded as the instruction rounds it, whatever -use_fast_math
// says.
//
// This text is pasted into other headers, at global scope: it includes nothing, and its guard makes a second copy
// harmless.
#ifndef FP4PATCH_OPERANDS_CUH
#define FP4PATCH_OPERANDS_CUH

#if defined(__CUDACC__)
#define FP4PATCH_FN __host__ __device__ __forceinline__
#else
#define FP4PATCH_FN inline __attribute__((always_inline))
#endif

namespace fp4patch_operands {

FP4PATCH_FN float number(unsigned int u) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(u);
#else
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
#endif
}

// 32 bits of an operand, the nth from the lowest, as a float.
FP4PATCH_FN float single(unsigned long long operand, int nth) {
  return number(static_cast<unsigned int>(operand >> 32 * nth));
}

// cvt.f32.bf16 of 16 bits of an operand, the nth from the lowest: exact.
FP4PATCH_FN float bfloat16(unsigned long long operand, int nth) {
  return number(static_cast<unsigned int>(operand >> 16 * nth) << 16);
}

// mul.rn.f32: to nearest, subnormal numbers kept.
FP4PATCH_FN float mul(float a, float b) {
#if defined(__CUDA_ARCH__)
  float product;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
  return product;
#else
  return a * b;
#endif
}

// fma.rn.f32 with the addend +0: as mul, but a product of -0 becomes +0.
FP4PATCH_FN float mul_plus_zero(float a, float b) {
#if defined(__CUDA_ARCH__)
  float sum;
  asm("fma.rn.f32 %0, %1, %2, 0f00000000;" : "=f"(sum) : "f"(a), "f"(b));
  return sum;
#else
  return a * b + 0.0f;
#endif
}

}  // namespace fp4patch_operands

#undef FP4PATCH_FN
#endif  // FP4PATCH_OPERANDS_CUH
