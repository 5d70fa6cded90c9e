// vLLM's own fusion kernel, and a kernel that shows what its first half gives: silu(x) * y as half or bfloat16, which
// the second half then quantizes. run.py defines the names of that release of vLLM.
#include "activation_nvfp4_quant_fusion_kernels.cu"

#if FP4PATCH_PACKED_BY_WIDTH
template <class T> using Packed = vllm::PackedVec<T, CVT_FP4_PACK16>;
#else
template <class T> using Packed = vllm::PackedVec<T>;
#endif

namespace {

// x and y: count vectors each; out: the same. One thread a vector.
template <class T>
__global__ void activate(Packed<T> const* x, Packed<T> const* y, Packed<T>* out, int64_t count) {
  int64_t const i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    Packed<T> gate = x[i], up = y[i];
    out[i] = vllm::FP4PATCH_ACTIVATE<T>(gate, up);
  }
}

template <class T>
void run(void const* x, void const* y, void* out, int64_t values) {
  int64_t const count = values / (sizeof(Packed<T>) / sizeof(T));
  activate<T><<<(count + 255) / 256, 256>>>(
      static_cast<Packed<T> const*>(x), static_cast<Packed<T> const*>(y), static_cast<Packed<T>*>(out), count);
}

}  // namespace

void fp4patch_activate(void const* x, void const* y, void* out, int64_t values, bool bfloat16) {
  bfloat16 ? run<__nv_bfloat16>(x, y, out, values) : run<half>(x, y, out, values);
}
