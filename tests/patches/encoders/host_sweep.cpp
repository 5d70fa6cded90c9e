// Runs all 2^32 float inputs through `unsigned int encode(float)` of subject.inc and compares with the specification.
// For each class of inputs it writes a line: class, inputs, mismatches, those of the magnitude, the lowest mismatches.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "subject.inc"

struct Interval {
  uint32_t first, last, code, input_class;
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
  unsigned long long inputs[6] = {}, mismatches[6] = {}, magnitudes[6] = {};
  char first[6][128] = {};
  for (const Interval& interval : intervals) {
    const uint32_t code = interval.code, cls = interval.input_class;
    const int count = static_cast<int>(interval.last - interval.first + 1);
    int wrong = 0, wrong_magnitude = 0;
#pragma omp parallel for reduction(+ : wrong, wrong_magnitude)
    for (int i = 0; i < count; ++i) {
      const uint32_t difference = encoded(interval.first + static_cast<uint32_t>(i)) ^ code;
      wrong += difference != 0;
      wrong_magnitude += (difference & ~8u) != 0;
    }
    inputs[cls] += static_cast<unsigned>(count);
    mismatches[cls] += static_cast<unsigned>(wrong);
    magnitudes[cls] += static_cast<unsigned>(wrong_magnitude);
    for (int i = 0, kept = 0; i < count && kept < wrong && kept < 2; ++i) {
      const uint32_t bits = interval.first + static_cast<uint32_t>(i), got = encoded(bits);
      if (got != code && ++kept && std::strlen(first[cls]) < 100) {
        std::sprintf(first[cls] + std::strlen(first[cls]), " %08x:%x:%x", bits, code, got);
      }
    }
  }
  for (int cls = 0; cls < 6; ++cls) {
    std::printf("%d %llu %llu %llu%s\n", cls, inputs[cls], mismatches[cls], magnitudes[cls], first[cls]);
  }
}
