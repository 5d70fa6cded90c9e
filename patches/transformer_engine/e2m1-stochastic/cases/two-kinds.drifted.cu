void both(float a, float b, unsigned int r, unsigned short &low, unsigned int &high) {
  asm("{.reg .b8 c; cvt.rn.satfinite.e2m1x2.f32 c, %2, %3; cvt.u32.u8 %1, c;"
      " cvt.rs.satfinite.e2m1x4.f32 %0, {%2, %3, %2, %3}, %4;}"
      : "=h"(low), "=r"(high)
      : "f"(a), "f"(b), "r"(r));
}
