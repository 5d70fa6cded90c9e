// Capabilities for which a kernel behind enable_sm120_only is compiled: the struct, for each target of each of them.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#define CUTLASS_DEVICE
#define printf(...) static_cast<void>(0)  // what stops a kernel on another GPU
#define asm(text) static_cast<void>(0)
#define JOINED(a, b) a##b
#define AT_(number) JOINED(at_, number)
#define AT(number) AT_(number)

static bool ran;
static std::map<int, std::set<bool>> found;
struct Kernel {
  template <typename... Args>
  void operator()(Args &&...) {
    ran = true;
  }
};
static bool add(int number) {
  found[number].insert(ran);
  return ran = false;
}

#include "targets.inc"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    char *minor;
    const long major = std::strtol(argv[i], &minor, 10);
    const std::set<bool> &each = found[static_cast<int>(major * 100 + std::atol(minor + 1) * 10)];
    if (each.size() != 1) return std::fputs("not the same for each target of a GPU", stderr), 1;
    if (*each.begin()) std::fputs(argv[i], stdout), std::fputs(" ", stdout);
  }
}
