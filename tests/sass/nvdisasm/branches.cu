// A loop, a condition, a slow path that is called, double precision and half precision.
#include <cuda_fp16.h>

extern "C" __global__ void probe(float const* in, float* out, int n) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) {
    return;
  }
  float sum = 0;
  for (int k = 0; k < in[i]; ++k) {
    sum += 1.0f / in[k] + __half2float(__float2half(in[k + 1]));
  }
  out[i] = sum;
  reinterpret_cast<double*>(out)[i + n] = static_cast<double>(sum) * sum;
}
