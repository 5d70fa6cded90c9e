// One of our own encoders, eight values a thread: what the patches put into other people's sources.
// ENCODER: half_pair, predicate_sum or threshold, whose header is on the include path.

#define STRING(x) #x
#define HEADER(x) STRING(x.cuh)
#define JOIN(x) fp4patch_##x
#define SPACE(x) JOIN(x)
#include HEADER(ENCODER)

extern "C" __global__ void probe(float4 const* source, unsigned int* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 const a = source[2 * i], b = source[2 * i + 1];
  packed[i] = SPACE(ENCODER)::e2m1_x8(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
}
