// Capabilities on which a group of tensors is quantized by the fused kernels of the Hadamard transform. On each other one,
// every tensor of it that has elements must be quantized once, by its own quantizer and into its own output.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

struct Device {
  int major, minor;
};
static Device current;
namespace at::cuda {
static int getCurrentCUDAStream() { return 7; }
static const Device *getCurrentDeviceProperties() { return &current; }
}  // namespace at::cuda
namespace transformer_engine::cuda {
static int sm_arch() { return current.major * 10 + current.minor; }
}  // namespace transformer_engine::cuda

enum class DType { kFloat32, kBFloat16 };
enum { kNVTENVFP44Over6Disabled };
struct TensorWrapper {
  int number;
  size_t elements;
  DType type = DType::kBFloat16;
  std::vector<int> written = {};  // numbers of the inputs
  DType dtype() const { return type; }
  size_t numel() const { return elements; }
  size_t ndim() const { return 2; }
  size_t size(size_t) const { return 128; }
};
struct NVFP4Quantizer {
  int number;
  bool with_rht, with_2d_quantization = false, with_amax_reduction = false, stochastic_rounding = true;
  int nvfp4_4over6_mode = kNVTENVFP44Over6Disabled;
  int get_scaling_mode() const { return 0; }
  void quantize(const TensorWrapper &input, TensorWrapper &output, const std::optional<TensorWrapper> &noop = std::nullopt) {
    if (noop || input.number != number || output.number != number) throw std::runtime_error("tensors are mixed up");
    output.written.push_back(input.number);
  }
};

static int fused, plain;
using Inputs = const std::vector<TensorWrapper> &;
using Outputs = std::vector<TensorWrapper> &;
using Sections = const std::vector<size_t> &;
using Quantizers = const std::vector<NVFP4Quantizer *> &;
static void split_quantize_nvfp4_impl_with_rht_helper(const TensorWrapper &, Inputs, Outputs, Sections, Quantizers, int) { ++fused; }
static void split_quantize_nvfp4_impl_helper(const TensorWrapper &, Inputs, Outputs, Sections, Quantizers, int) { ++plain; }

#define NVTE_CHECK(condition, ...) \
  if (!(condition)) throw std::invalid_argument("refused")
#define NVTE_SCOPED_GIL_RELEASE(block) block

#include "code.inc"

// The inputs that each output was written from, for a group with a tensor that is empty.
static std::vector<std::vector<int>> written(bool with_rht, DType type) {
  const std::vector<size_t> sections = {128, 0, 64};
  std::vector<TensorWrapper> inputs, outputs;
  std::vector<NVFP4Quantizer> each;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back({i, sections[i] * 128, type});
    outputs.push_back({i, sections[i] * 128});
    each.push_back({i, with_rht});
  }
  fused = plain = 0;
  split_quantize_nvfp4_impl({-1, 192 * 128, type}, inputs, outputs, sections, {&each[0], &each[1], &each[2]});
  return {outputs[0].written, outputs[1].written, outputs[2].written};
}

int main(int argc, char **argv) {
  const std::vector<std::vector<int>> nothing(3), one_by_one = {{0}, {}, {2}};
  for (int i = 1; i < argc; ++i) {
    char *minor;
    current.major = static_cast<int>(std::strtol(argv[i], &minor, 10));
    current.minor = std::atoi(minor + 1);
    try {
      if (written(false, DType::kBFloat16) != nothing || fused || plain != 1)
        return std::fputs("without the transform it is not as before", stderr), 1;
      const std::vector<std::vector<int>> found = written(true, DType::kBFloat16);
      if (found != (fused ? nothing : one_by_one) || fused > 1 || plain)
        return std::fputs("not every tensor is quantized once", stderr), 1;
    } catch (const std::exception &error) {
      return std::fputs(error.what(), stderr), 1;
    }
    if (fused) std::printf("%s ", argv[i]);
    try {
      written(true, DType::kFloat32);
      return std::fputs("float32 is not refused", stderr), 1;
    } catch (const std::invalid_argument &) {
    }
  }
}
