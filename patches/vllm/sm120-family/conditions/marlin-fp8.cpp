// Capabilities on which Marlin accepts FP8 activations when it runs. The code is that of marlin_mm, from its query of the
// capability to its test of FP8.
#include <cstdio>
#include <cstdlib>

namespace vllm {
enum Type { kFloat16, kS8, kFE4M3fn };
}
enum Attribute { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
static int capability[2], asked;  // all other devices are GPUs of 7.5
static void cudaDeviceGetAttribute(int *value, Attribute attribute, int device) {
  *value = device == asked ? capability[attribute] : attribute == cudaDevAttrComputeCapabilityMajor ? 7 : 5;
}
#define TORCH_CHECK(condition, ...) \
  if (!(condition)) return false
#define STD_TORCH_CHECK TORCH_CHECK

static bool accepted(const int dev) {
  const vllm::Type a_type = vllm::kFE4M3fn;
#include "code.inc"
  return true;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    char *minor;
    capability[0] = static_cast<int>(std::strtol(argv[i], &minor, 10));
    capability[1] = std::atoi(minor + 1);
    const bool first = accepted(asked = 0);
    if (accepted(asked = 5) != first) return std::fputs("not the same for each device", stderr), 1;
    if (first) std::printf("%s ", argv[i]);
  }
}
