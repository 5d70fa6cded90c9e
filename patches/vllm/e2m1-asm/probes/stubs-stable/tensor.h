// Names of PyTorch's stable ABI in the host code of vLLM's source files, which decides about no kernel. A dispatch calls
// nothing, so that the only kernel that is compiled is the probe's.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <optional>
#include <string>

#define STD_TORCH_CHECK(condition, ...) ((condition) ? void() : __builtin_trap())
#define TORCH_ERROR_CODE_CHECK(call) ((call) == 0 ? void() : __builtin_trap())
#define THO_DISPATCH_SWITCH(type, name, ...) ((void)(type))

int aoti_torch_get_current_cuda_stream(int device, void** stream);
int torch_get_current_cuda_blas_handle(void** handle);

namespace torch {
namespace headeronly {
using c10::BFloat16;
using c10::Half;
enum class ScalarType { Byte, Long, Half, Float, BFloat16, Float8_e4m3fn };
}  // namespace headeronly

namespace stable {
struct Tensor {
  bool is_cuda() const;
  bool is_contiguous() const;
  headeronly::ScalarType scalar_type() const;
  std::int64_t dim() const;
  std::int64_t numel() const;
  std::int64_t size(int dimension) const;
  std::int64_t stride(int dimension) const;
  void* data_ptr() const;
  template <typename T>
  T const* const_data_ptr() const;
  template <typename T>
  T* mutable_data_ptr() const;
  int get_device_index() const;
};
namespace accelerator {
struct DeviceGuard {
  explicit DeviceGuard(int device);
};
}  // namespace accelerator
}  // namespace stable
}  // namespace torch
