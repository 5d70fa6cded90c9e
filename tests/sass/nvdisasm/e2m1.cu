// One E2M1 conversion, which needs a target with suffix.
extern "C" __global__ void probe(float2 const* in, unsigned char* out) {
  float2 const value = in[threadIdx.x];
  unsigned short packed;
  asm("{\n.reg .b8 byte;\ncvt.rn.satfinite.e2m1x2.f32 byte, %1, %2;\nmov.b16 %0, {byte, 0};\n}"
      : "=h"(packed)
      : "f"(value.y), "f"(value.x));
  out[threadIdx.x] = static_cast<unsigned char>(packed);
}
