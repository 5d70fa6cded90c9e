// Capabilities for which each block scale of V keeps its place, for each target of each of them. For all others it must
// have the place where the kernels of SM100 look for it.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#define __device__
#define __forceinline__ inline
#define JOINED(a, b) a##b
#define AT_(number) JOINED(at_, number)
#define AT(number) AT_(number)

enum Order { TOKENS, SWIZZLED, NEITHER };
static std::map<int, std::set<Order>> found;

// Scale s of token t is in a tile of four tokens and all scales: the token counts fastest there, the group of scales slowest.
static Order order(int (*offset)(int, int, int)) {
  bool tokens = true, swizzled = true;
  for (int scales : {4, 8, 16, 32}) {
    for (int t = 0; t < 64; ++t) {
      for (int s = 0; s < scales; ++s) {
        const int at = offset(t, s, scales);
        tokens = tokens && at == t * scales + s;
        swizzled = swizzled && at == t / 4 * 4 * scales + s * 4 + t % 4;
      }
    }
  }
  return tokens ? TOKENS : swizzled ? SWIZZLED : NEITHER;
}

static bool add(int number, Order order) {
  found[number].insert(order);
  return true;
}

#include "targets.inc"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    char *minor;
    const long major = std::strtol(argv[i], &minor, 10);
    const std::set<Order> &each = found[static_cast<int>(major * 100 + std::atol(minor + 1) * 10)];
    if (each.size() != 1) return std::fputs("not the same for each target of a GPU", stderr), 1;
    if (each.count(NEITHER)) return std::fputs("an order that no kernel reads", stderr), 1;
    if (each.count(TOKENS)) std::fputs(argv[i], stdout), std::fputs(" ", stdout);
  }
}
