// Multiplies FP8 matrices with a scale for each 1 x 128 values of the activation and each 128 x 128 of the weight: the
// kernels and the choice among them are vLLM's, with addresses in place of tensors.
#include "quantization/w8a8/cutlass/c3x/scaled_mm_blockwise_sm120_fp8_dispatch.cuh"

// M N K, and addresses: a, b, scales of a (K / 128 rows of M), scales of b (K / 128 x N / 128, by columns), the result.
int main(int, char** argv) {
  using torch::headeronly::ScalarType;
  using torch::stable::Tensor;
  long const m = std::atol(argv[1]), n = std::atol(argv[2]), k = std::atol(argv[3]);
  auto tensor = [&](int i, std::vector<std::int64_t> sizes, ScalarType type) {
    return Tensor{reinterpret_cast<void*>(std::strtoull(argv[4 + i], nullptr, 0)), sizes, type};
  };
  Tensor a = tensor(0, {m, k}, ScalarType::Float8_e4m3fn), b = tensor(1, {k, n}, ScalarType::Float8_e4m3fn);
  Tensor a_scales = tensor(2, {m, k / 128}, ScalarType::Float), b_scales = tensor(3, {k / 128, n / 128}, ScalarType::Float);
  Tensor d = tensor(4, {m, n}, ScalarType::BFloat16);
  vllm::cutlass_gemm_blockwise_sm120_fp8_dispatch<cutlass::bfloat16_t>(d, a, b, a_scales, b_scales, 1);
}
