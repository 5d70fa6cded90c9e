#pragma once

// cvt.rn.satfinite.e2m1x2.f32 d, a, b; puts a in the high nibble.
inline __device__ uint32_t e2m1_to_half2(uint8_t code) {
  uint32_t out;
  asm("{\n"
      ".reg .b8 b;\n"
      "cvt.u8.u32 b, %1;\n"
      "cvt.rn.f16x2.e2m1x2 %0, b;\n"
      "}"
      : "=r"(out)
      : "r"(static_cast<uint32_t>(code)));
  return out;
}
