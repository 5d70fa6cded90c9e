// Quantizes an activation and a weight by FlashInfer's kernel, and multiplies them by its GEMM for SM12x, with addresses in
// place of tensors: to 64 rows by its first configuration, with A and B exchanged, else by the one that it takes untuned.
#include "flashinfer/gemm/fp4_gemm_cutlass_template_sm120.h"
// Behind it: the two know different `Int`.
#include "tensorrt_llm/kernels/quantization.cuh"
// What its checks call.
#include "cpp/common/logger.cpp"
#include "cpp/common/stringUtils.cpp"
#include "cpp/common/tllmException.cpp"

namespace flashinfer::gemm {
INSTANTIATE_FP4_GEMM_KERNEL_LAUNCHER(__nv_bfloat16, 128, 32, 128, 1, 1, 1, _1SM, true)
INSTANTIATE_FP4_GEMM_KERNEL_LAUNCHER(__nv_bfloat16, 128, 128, 256, 1, 1, 1, _1SM, false)

template <int kColumns, int kDepth, bool kSwapped, typename... Arguments>
void multiply(Arguments... arguments) {
  using cute::Int;
  genericFp4GemmKernelLauncher<__nv_bfloat16, Int<128>, Int<kColumns>, Int<kDepth>, Int<1>, Int<1>, Int<1>, _1SM, kSwapped>(
      arguments..., 1, CutlassGemmConfig(), nullptr, 0, nullptr, nullptr);
}
}  // namespace flashinfer::gemm

// M N K, and addresses: x, w, scale of x, scale of w, alpha, codes of x, scales of x, codes of w, scales of w, d.
int main(int, char** argv) {
  int const m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  auto at = [&](int i) { return reinterpret_cast<void*>(std::strtoull(argv[4 + i], nullptr, 0)); };
  auto quantize = [&](int rows, void* from, void* scale, void* codes, void* scales) {
    using namespace tensorrt_llm;
    using namespace kernels;
    // The grid is smaller than the rows with their padding, so that a block has several.
    quantize_with_block_size<BlockScaleQuantizationType::FP16_TO_FP4, __nv_bfloat16, 16, false><<<96, std::min(k / 16, 512)>>>(
        1, rows, k, k, static_cast<__nv_bfloat16 const*>(from), static_cast<float const*>(scale),
        static_cast<std::uint32_t*>(codes), static_cast<std::uint32_t*>(scales), QuantizationSFLayout::SWIZZLED_128x4);
  };
  quantize(m, at(0), at(2), at(5), at(6));
  quantize(n, at(1), at(3), at(7), at(8));
  auto* const alpha = static_cast<float const*>(at(4));
  if (m <= 64) {
    flashinfer::gemm::multiply<32, 128, true>(at(9), at(5), at(7), at(6), at(8), alpha, m, n, k);
  } else {
    flashinfer::gemm::multiply<128, 256, false>(at(9), at(5), at(7), at(6), at(8), alpha, m, n, k);
  }
}
