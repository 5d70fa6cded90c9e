// Runs all 2^32 float inputs through `unsigned int encode(float)` of subject.inc and compares with the specification.
// For each interval it writes a line: inputs, mismatches, those of the magnitude, the lowest two mismatches.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "subject.inc"

struct Interval {
  uint32_t first, last, code;
};
static const Interval intervals[] = {
#include "intervals.inc"
};

static inline uint32_t encoded(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return encode(value);
}

int main() {
  for (const Interval& interval : intervals) {
    const uint32_t code = interval.code;
    const int count = static_cast<int>(interval.last - interval.first + 1);
    int wrong = 0, wrong_magnitude = 0;
#pragma omp parallel for reduction(+ : wrong, wrong_magnitude)
    for (int i = 0; i < count; ++i) {
      const uint32_t difference = encoded(interval.first + static_cast<uint32_t>(i)) ^ code;
      wrong += difference != 0;
      wrong_magnitude += (difference & ~8u) != 0;
    }
    std::printf("%d %d %d", count, wrong, wrong_magnitude);
    for (int i = 0, kept = 0; i < count && kept < wrong && kept < 2; ++i) {
      const uint32_t bits = interval.first + static_cast<uint32_t>(i), got = encoded(bits);
      if (got != code && ++kept) std::printf(" %08x:%x:%x", bits, code, got);
    }
    std::printf("\n");
  }
}
