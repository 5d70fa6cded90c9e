// float to E2M1 by the instruction where the target that is being compiled for has it, and by half_pair elsewhere: on
// other GPUs, and on the host. Both give the same nibble for every input.
//
// cvt.rn.satfinite.e2m1x2.f32 exists on architecture- and family-specific targets of SM100 and later (sm_100a, sm_120f,
// sm_121a and so on), and on no target without a suffix. __CUDA_ARCH_FAMILY_SPECIFIC__ tells them apart from CUDA 12.9
// on; in 12.8 the macros of the single targets do. -DFP4PATCH_FORCE_SOFTWARE takes half_pair everywhere.
#if !defined(FP4PATCH_FORCE_SOFTWARE)
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#if __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300
#define FP4PATCH_E2M1_INSTRUCTION 1
#endif
#elif defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define FP4PATCH_E2M1_INSTRUCTION 1
#endif
#endif

// CUTLASS 4.7's own name for this decision, from which its conversions to E2M1 in this header follow.
#if !defined(FP4PATCH_E2M1_INSTRUCTION)
#undef CUTLASS_E2M1_HW_ENCODE
#endif

namespace fp4patch_e2m1 {

// v: float, half_t or bfloat16_t, or anything that is indexed and gives these. Value 0 is in the lowest nibble.

template <class Value>
CUTLASS_HOST_DEVICE
unsigned int x1(Value const & v) {
#if defined(FP4PATCH_E2M1_INSTRUCTION)
  unsigned int out;
  asm("{\n"
      ".reg .b8 pair;\n"
      "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;\n"
      "cvt.u32.u8 %0, pair;\n"
      "}"
      : "=r"(out) : "f"(0.0f), "f"(static_cast<float>(v)));
  return out;
#else
  return ::fp4patch_half_pair::e2m1(static_cast<float>(v));
#endif
}

template <class Values>
CUTLASS_HOST_DEVICE
unsigned char x2(Values const & v) {
  float const v0 = static_cast<float>(v[0]), v1 = static_cast<float>(v[1]);
#if defined(FP4PATCH_E2M1_INSTRUCTION)
  unsigned int out;
  asm("{\n"
      ".reg .b8 pair;\n"
      "cvt.rn.satfinite.e2m1x2.f32 pair, %2, %1;\n"
      "cvt.u32.u8 %0, pair;\n"
      "}"
      : "=r"(out) : "f"(v0), "f"(v1));
  return static_cast<unsigned char>(out);
#else
  return ::fp4patch_half_pair::e2m1_x2(v0, v1);
#endif
}

template <class Values>
CUTLASS_HOST_DEVICE
unsigned short x4(Values const & v) {
  float const v0 = static_cast<float>(v[0]), v1 = static_cast<float>(v[1]), v2 = static_cast<float>(v[2]),
              v3 = static_cast<float>(v[3]);
#if defined(FP4PATCH_E2M1_INSTRUCTION)
  unsigned short out;
  asm("{\n"
      ".reg .b8 low, high;\n"
      "cvt.rn.satfinite.e2m1x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32 high, %4, %3;\n"
      "mov.b16 %0, {low, high};\n"
      "}"
      : "=h"(out) : "f"(v0), "f"(v1), "f"(v2), "f"(v3));
  return out;
#else
  return ::fp4patch_half_pair::e2m1_x4(v0, v1, v2, v3);
#endif
}

template <class Values>
CUTLASS_HOST_DEVICE
unsigned int x8(Values const & v) {
  float const v0 = static_cast<float>(v[0]), v1 = static_cast<float>(v[1]), v2 = static_cast<float>(v[2]),
              v3 = static_cast<float>(v[3]), v4 = static_cast<float>(v[4]), v5 = static_cast<float>(v[5]),
              v6 = static_cast<float>(v[6]), v7 = static_cast<float>(v[7]);
#if defined(FP4PATCH_E2M1_INSTRUCTION)
  unsigned int out;
  asm("{\n"
      ".reg .b8 byte0, byte1, byte2, byte3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 byte0, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32 byte1, %4, %3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 byte2, %6, %5;\n"
      "cvt.rn.satfinite.e2m1x2.f32 byte3, %8, %7;\n"
      "mov.b32 %0, {byte0, byte1, byte2, byte3};\n"
      "}"
      : "=r"(out) : "f"(v0), "f"(v1), "f"(v2), "f"(v3), "f"(v4), "f"(v5), "f"(v6), "f"(v7));
  return out;
#else
  return ::fp4patch_half_pair::e2m1_x8(v0, v1, v2, v3, v4, v5, v6, v7);
#endif
}

// Array<float_e2m1_t, N> <= Array<Source, N>
template <class Source, int N>
CUTLASS_HOST_DEVICE
::cutlass::Array<::cutlass::float_e2m1_t, N> array(::cutlass::Array<Source, N> const & source) {
  using Result = ::cutlass::Array<::cutlass::float_e2m1_t, N>;
  constexpr int kPerItem = Result::kElementsPerStoredItem;  // 8, 4 or 2: the widest that divides N, if any does
  static_assert(kPerItem == 8 || kPerItem == 4 || kPerItem == 2, "CUTLASS stores whole words, halves or bytes");
  Result result;
  auto *items = reinterpret_cast<typename Result::Storage *>(&result);

  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < N / kPerItem; ++i) {
    float values[8];  // the first kPerItem of them
    CUTLASS_PRAGMA_UNROLL
    for (int k = 0; k < kPerItem; ++k) {
      values[k] = static_cast<float>(source[static_cast<size_t>(i * kPerItem + k)]);
    }
    if constexpr (kPerItem == 8) {
      items[i] = x8(values);
    }
    else if constexpr (kPerItem == 4) {
      items[i] = x4(values);
    }
    else {
      items[i] = x2(values);
    }
  }
  if constexpr (N % 2 != 0) {
    items[N / 2] = static_cast<unsigned char>(x1(source[N - 1]));
  }
  return result;
}

} // namespace fp4patch_e2m1
