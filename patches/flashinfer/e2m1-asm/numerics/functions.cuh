// FlashInfer's own conversions of floats to E2M1: they take an array by reference, and return the nibbles, value 0 lowest.

#include <cstdarg>
#include <cstring>

#include "quantization.cuh"
#include "tensorrt_llm/common/logger.h"
#include "tensorrt_llm/common/stringUtils.h"
#include "tensorrt_llm/common/tllmException.h"

// What host code in the older releases' headers calls, from source files that are not linked here: no conversion does.
// Inline, so that two trees may stand in one program.
namespace tensorrt_llm::common {
inline Logger* Logger::getLogger() { return nullptr; }
inline void fmtstr_(char const*, fmtstr_allocator, void*, va_list) {}
inline TllmException::TllmException(char const*, std::size_t, char const* message) : std::runtime_error(message) {}
inline TllmException::~TllmException() noexcept {}
}  // namespace tensorrt_llm::common

// The floats as the array that a function wants.
template <class Element, int kElements>
struct As {
  Element values[kElements];
  __device__ explicit As(const float (&v)[sizeof(values) / sizeof(float)]) { memcpy(values, v, sizeof values); }
  __device__ Element (&array())[kElements] { return values; }
};
