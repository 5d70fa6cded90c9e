// Names of PyTorch in the host code of vLLM's source files up to 0.22, which decides about no kernel. A dispatch calls
// nothing, so that the only kernel that is compiled is the probe's.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#define TORCH_CHECK(condition, ...) ((condition) ? void() : __builtin_trap())
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) ((void)(type))

namespace torch {
struct Tensor {
  int scalar_type() const;
  std::int64_t dim() const;
  std::int64_t size(int dimension) const;
  std::int64_t stride(int dimension) const;
  template <typename T>
  T* data_ptr() const;
};
}  // namespace torch

namespace at {
namespace cuda {
struct OptionalCUDAGuard {
  explicit OptionalCUDAGuard(int device);
};
cudaStream_t getCurrentCUDAStream();
}  // namespace cuda
}  // namespace at

int device_of(torch::Tensor const& tensor);
