// Quantizes an activation and a weight, and multiplies them: vLLM's own kernels and host code, with addresses in place of
// tensors. Their results are bfloat16: the GEMM for half is not compiled.
#include "quantization/fp4/nvfp4_quant_kernels.cu"

#include "cutlass_extensions/common.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#define half_t bfloat16_t
#include "quantization/fp4/nvfp4_scaled_mm_sm120_kernels.cu"

// M N K, and addresses: x, w, scale of x, scale of w, alpha, codes of x, scales of x, codes of w, scales of w, d.
int main(int, char** argv) {
  using torch::headeronly::ScalarType;
  using torch::stable::Tensor;
  long const m = std::atol(argv[1]), n = std::atol(argv[2]), k = std::atol(argv[3]);
  auto up = [](long x, long y) { return (x + y - 1) / y * y; };
  auto tensor = [&](int i, std::vector<std::int64_t> sizes, ScalarType type) {
    return Tensor{reinterpret_cast<void*>(std::strtoull(argv[4 + i], nullptr, 0)), sizes, type};
  };
  long const columns = up(k / 16, 4);
  Tensor x = tensor(0, {m, k}, ScalarType::BFloat16), w = tensor(1, {n, k}, ScalarType::BFloat16);
  Tensor x_scale = tensor(2, {1}, ScalarType::Float), w_scale = tensor(3, {1}, ScalarType::Float), alpha = tensor(4, {1}, ScalarType::Float);
  Tensor xq = tensor(5, {m, k / 2}, ScalarType::Byte), xs = tensor(6, {up(m, 128), columns}, ScalarType::Float8_e4m3fn);
  Tensor wq = tensor(7, {n, k / 2}, ScalarType::Byte), ws = tensor(8, {up(n, 128), columns}, ScalarType::Float8_e4m3fn);
  Tensor d = tensor(9, {m, n}, ScalarType::BFloat16);
  scaled_fp4_quant_sm1xxa(xq, x, xs, x_scale, true);
  scaled_fp4_quant_sm1xxa(wq, w, ws, w_scale, true);
  cutlass_scaled_fp4_mm_sm120a(d, xq, wq, xs, ws, alpha);
}
long get_device_attribute(long attribute, long) {
  int value = 0;
  cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0);
  return value;
}
