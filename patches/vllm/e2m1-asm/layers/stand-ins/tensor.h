#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cstdint>
#include <cstdlib>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>
#define STD_TORCH_CHECK(condition, ...) if (!(condition)) { std::fprintf(stderr, "%s\n", #condition), std::abort(); }
#define TORCH_ERROR_CODE_CHECK(call) ((call) == 0 ? void() : std::abort())
#define THO_DISPATCH_SWITCH(type, name, ...) [&] { switch (type) { __VA_ARGS__ default: std::abort(); } }()
#define THO_DISPATCH_CASE(type, ...) case type: { using scalar_t = ScalarOf<type>::Type; __VA_ARGS__(); break; }
inline int aoti_torch_get_current_cuda_stream(int, void** stream) { return *stream = nullptr, 0; }
int torch_get_current_cuda_blas_handle(void** handle);
namespace torch {
namespace headeronly {
using c10::BFloat16;
using c10::Half;
enum class ScalarType { Byte, Int, Long, Half, Float, BFloat16, Float8_e4m3fn };
}  // namespace headeronly
}  // namespace torch
template <torch::headeronly::ScalarType> struct ScalarOf;
template <> struct ScalarOf<torch::headeronly::ScalarType::Half> { using Type = c10::Half; };
template <> struct ScalarOf<torch::headeronly::ScalarType::BFloat16> { using Type = c10::BFloat16; };
template <> struct ScalarOf<torch::headeronly::ScalarType::Float> { using Type = float; };
namespace torch {
namespace stable {
struct Device {
  int index() const { return 0; }
};
struct Tensor {
  void* data = nullptr;
  std::vector<std::int64_t> sizes;
  headeronly::ScalarType type = headeronly::ScalarType::Byte;
  bool is_cuda() const { return true; }
  bool is_contiguous() const { return true; }
  headeronly::ScalarType scalar_type() const { return type; }
  std::int64_t dim() const { return sizes.size(); }
  std::int64_t numel() const { std::int64_t n = 1; for (auto s : sizes) n *= s; return n; }
  std::int64_t size(int d) const { return sizes.at(d); }
  std::int64_t stride(int d) const { std::int64_t n = 1; for (std::size_t i = d + 1; i < sizes.size(); ++i) n *= sizes[i]; return n; }
  void* data_ptr() const { return data; }
  Device device() const { return {}; }
  template <typename T> T const* const_data_ptr() const { return static_cast<T const*>(data); }
  template <typename T> T* mutable_data_ptr() const { return static_cast<T*>(data); }
  int get_device_index() const { return 0; }
};
// Where what a layer allocates begins: 256 bytes apart, and of elements of 8 bytes, the widest that it asks for.
inline std::uint64_t allocated = 0x7000'0000'0000;
inline Tensor empty(std::vector<std::int64_t> sizes, headeronly::ScalarType type, std::nullopt_t, Device) {
  Tensor made{reinterpret_cast<void*>(allocated), sizes, type};
  allocated += (8 * made.numel() + 511) / 256 * 256;
  return made;
}
inline Tensor empty(std::int64_t size, headeronly::ScalarType type, std::nullopt_t none, Device device) {
  return empty(std::vector<std::int64_t>{size}, type, none, device);
}
namespace accelerator { struct DeviceGuard { explicit DeviceGuard(int) {} }; }
}  // namespace stable
}  // namespace torch
