// Names of TVM's foreign-function interface in FlashInfer's launchers, which decide about no kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2 };
enum DLDataTypeCode {
  kDLInt, kDLUInt, kDLFloat, kDLBfloat = 4, kDLBool = 6, kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12, kDLFloat4_e2m1fn = 17
};
struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
  bool operator==(DLDataType) const;
  bool operator!=(DLDataType) const;
};

namespace tvm {
namespace ffi {
struct Message {
  template <class T>
  Message const& operator<<(T const&) const { return *this; }
};
struct Shape {};
struct TensorView {
  int ndim() const;
  int64_t numel() const;
  int64_t size(int dimension) const;
  int64_t stride(int dimension) const;
  bool IsContiguous() const;
  void* data_ptr() const;
  DLDevice device() const;
  DLDataType dtype() const;
};
struct Tensor : TensorView {
  template <class... T>
  static Tensor FromEnvAlloc(T...);
};
struct CUDADeviceGuard {
  explicit CUDADeviceGuard(int device);
};
}  // namespace ffi
}  // namespace tvm

void* TVMFFIEnvGetStream(int type, int device);
int TVMFFIEnvTensorAlloc();

#define TVM_FFI_CHECK(...) tvm::ffi::Message()
#define TVM_FFI_ICHECK(...) tvm::ffi::Message()
#define TVM_FFI_ICHECK_EQ(...) tvm::ffi::Message()
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(...)
