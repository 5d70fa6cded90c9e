// Capabilities for which a kernel behind enable_sm120_only is compiled: the struct, for each __CUDA_ARCH__.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#define CUTLASS_DEVICE
#define printf(...) static_cast<void>(0)  // what stops a kernel on another GPU
#define asm(text) static_cast<void>(0)
#define JOINED(a, b) a##b
#define AT_(number) JOINED(at_, number)
#define AT(number) AT_(number)

static bool ran;
static std::set<int> found;
struct Kernel {
  template <typename... Args>
  void operator()(Args &&...) {
    ran = true;
  }
};
static bool add(int number) {
  if (ran) found.insert(number);
  return ran = false;
}

#define __CUDA_ARCH__ 750
#include "gate.inc"
#define __CUDA_ARCH__ 800
#include "gate.inc"
#define __CUDA_ARCH__ 860
#include "gate.inc"
#define __CUDA_ARCH__ 870
#include "gate.inc"
#define __CUDA_ARCH__ 890
#include "gate.inc"
#define __CUDA_ARCH__ 900
#include "gate.inc"
#define __CUDA_ARCH__ 1000
#include "gate.inc"
#define __CUDA_ARCH__ 1030
#include "gate.inc"
#define __CUDA_ARCH__ 1100
#include "gate.inc"
#define __CUDA_ARCH__ 1200
#include "gate.inc"
#define __CUDA_ARCH__ 1210
#include "gate.inc"
#define __CUDA_ARCH__ 1300
#include "gate.inc"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    char *minor;
    const long major = std::strtol(argv[i], &minor, 10);
    if (found.count(static_cast<int>(major * 100 + std::atol(minor + 1) * 10))) std::fputs(argv[i], stdout), std::fputs(" ", stdout);
  }
}
