// Marlin for experts, of weights with 4 bits and bfloat16: the kernels that vLLM's host code takes for ROWS tokens a block.
#include "moe/marlin_moe_wna16/kernel.h"
#include "moe/marlin_moe_wna16/marlin_template.h"

// Threads, and blocks of 16 in m, n and k; 8 rows of m; 4 stages; a scale for 128 values of k.
#define KERNEL(threads, n, k)                                                                                              \
  template __global__ void Marlin<vllm::kBFloat16.id(), vllm::kU4B8.id(), vllm::kBFloat16.id(), vllm::kBFloat16.id(), \
                                  threads, (ROWS + 15) / 16, n, k, ROWS == 8, 4, 8, false>(MARLIN_KERNEL_PARAMS);
namespace MARLIN_NAMESPACE_NAME {
#if ROWS > 16
KERNEL(256, 16, 4)
#else
KERNEL(256, 8, 8)
#endif
KERNEL(128, 8, 4)
KERNEL(128, 4, 8)
}  // namespace MARLIN_NAMESPACE_NAME
