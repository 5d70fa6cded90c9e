// What the host code of QuTLASS's GEMMs uses of PyTorch, which decides about no kernel. Of both kinds: its releases up
// to 0.2.0 include ATen, later commits the stable ABI.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

#define TORCH_CHECK(condition, ...) ((condition) ? void() : __builtin_trap())
#define STD_TORCH_CHECK(condition, ...) TORCH_CHECK(condition)
#define TORCH_ERROR_CODE_CHECK(call) ((call) == 0 ? void() : __builtin_trap())

int aoti_torch_get_current_cuda_stream(int device, void** stream);

namespace at {
struct Device {
  int index() const;
};
struct Tensor {
  std::int64_t size(int dimension) const;
  std::int64_t const* sizes() const;
  void* data_ptr() const;
  void const* const_data_ptr() const;
  void* mutable_data_ptr() const;
  int get_device_index() const;
  Device device() const;
};
Device device_of(Tensor const& tensor);
namespace cuda {
struct OptionalCUDAGuard {
  explicit OptionalCUDAGuard(Device device);
};
cudaStream_t getCurrentCUDAStream(int device);
}  // namespace cuda
}  // namespace at

namespace torch {
using at::Device;
using at::Tensor;
namespace stable {
using at::Device;
using at::Tensor;
namespace accelerator {
struct DeviceGuard {
  explicit DeviceGuard(int device);
};
}  // namespace accelerator
}  // namespace stable
}  // namespace torch
