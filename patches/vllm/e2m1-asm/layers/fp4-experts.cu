// Quantizes the tokens of experts, and multiplies them with the experts' weights: vLLM's own kernels and host code, with
// addresses in place of tensors. The weights are quantized before, as those of a checkpoint.
#include "quantization/fp4/nvfp4_experts_quant.cu"
#undef CHECK_TH_CUDA
#undef CHECK_CONTIGUOUS
#undef CHECK_INPUT
#define ENABLE_NVFP4_SM120 1
#include "quantization/fp4/nvfp4_blockwise_moe_kernel.cu"

// Rows N K, the number of experts, rows of all scales, and addresses: x, global scales, offsets of the experts' rows, and
// of their scales, sizes of the products, codes and scales of the weights, alphas; codes of x, scales of x, d; and memory
// for what the host code allocates.
int main(int, char** argv) {
  using torch::headeronly::ScalarType;
  using torch::stable::Tensor;
  auto number = [&](int i) { return std::strtoull(argv[1 + i], nullptr, 0); };
  long const m = number(0), n = number(1), k = number(2), experts = number(3), rows = number(4);
  auto tensor = [&](int i, std::vector<std::int64_t> sizes, ScalarType type) {
    return Tensor{reinterpret_cast<void*>(number(5 + i)), sizes, type};
  };
  Tensor x = tensor(0, {m, k}, ScalarType::BFloat16), scales = tensor(1, {experts}, ScalarType::Float);
  Tensor offsets = tensor(2, {experts + 1}, ScalarType::Int), offsets_of_scales = tensor(3, {experts + 1}, ScalarType::Int);
  Tensor sizes = tensor(4, {experts, 3}, ScalarType::Int), alphas = tensor(7, {experts}, ScalarType::Float);
  Tensor w = tensor(5, {experts, n, k / 2}, ScalarType::Byte);
  Tensor w_scales = tensor(6, {experts, n, k / 16}, ScalarType::Float8_e4m3fn);
  Tensor xq = tensor(8, {m, k / 2}, ScalarType::Byte), xs = tensor(9, {rows, k / 64}, ScalarType::Int);
  Tensor d = tensor(10, {m, n}, ScalarType::BFloat16);
  torch::stable::allocated = number(16);
  scaled_fp4_experts_quant_sm1xxa(xq, xs, x, scales, offsets, offsets_of_scales);
  // As vLLM's Python has them: scales of four values as one number, and the offsets without the last one.
  Tensor bytes = tensor(9, {rows, k / 16}, ScalarType::Float8_e4m3fn), begins = tensor(2, {experts}, ScalarType::Int);
  Tensor begins_of_scales = tensor(3, {experts}, ScalarType::Int);
  cutlass_fp4_group_mm(d, xq, w, bytes, w_scales, alphas, sizes, begins, begins_of_scales);
}
long get_device_attribute(long attribute, long) {
  int value = 0;
  cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0);
  return value;
}
