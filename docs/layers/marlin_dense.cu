// Marlin for dense layers, of NVFP4 weights and bfloat16: the kernels that vLLM's host code takes for up to 64 tokens.
#include "quantization/marlin/kernel.h"
#include "quantization/marlin/marlin_template.h"

// Threads, and blocks of 16 in m, n and k; 8 rows of m; 4 stages; a scale for 16 values of k.
#define KERNEL(threads, m, n, k, rows_8)                                                                              \
  template __global__ void Marlin<vllm::kBFloat16.id(), vllm::kFE2M1f.id(), vllm::kBFloat16.id(), vllm::kFE4M3fn.id(), \
                                  threads, m, n, k, rows_8, 4, 1, false>(MARLIN_KERNEL_PARAMS);
#define FEW_ROWS(rows_8)         \
  KERNEL(256, 1, 8, 8, rows_8) \
  KERNEL(128, 1, 8, 4, rows_8) \
  KERNEL(128, 1, 4, 8, rows_8)
#define MORE_ROWS(m)               \
  KERNEL(256, m, 16, 4, false) \
  KERNEL(128, m, 8, 4, false)  \
  KERNEL(128, m, 4, 8, false)
namespace MARLIN_NAMESPACE_NAME {
FEW_ROWS(true)
FEW_ROWS(false)
MORE_ROWS(2)
MORE_ROWS(3)
MORE_ROWS(4)
}  // namespace MARLIN_NAMESPACE_NAME
