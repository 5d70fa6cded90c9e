#pragma once

inline __device__ uint32_t four_codes(float4 v, uint32_t random) {
  uint32_t out;
  asm("{\n"
      ".reg .b16 codes;\n"
      "cvt.rs.satfinite.e2m1x4.f32 codes, {%4, %3, %2, %1}, %5;\n"
      "cvt.u32.u16 %0, codes;\n"
      "}"
      : "=r"(out)
      : "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(random));
  return out;
}
