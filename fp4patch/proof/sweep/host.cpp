// Runs every one of 2^32 float inputs through an encoder, as this compiler builds it for this machine's processor, and
// compares with the specification's intervals. Three texts are compiled in:
//   FP4PATCH_ENCODER    the header under test
//   FP4PATCH_ENCODE     the name of its function: unsigned encode(float)
//   FP4PATCH_INTERVALS  lines {first, last, code, class} that together cover 0 to 0xffffffff
// It writes one line for each class: class, inputs, mismatches, mismatches of the magnitude, then the first mismatches
// as input:expected:got, all but the counts in hexadecimal.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include FP4PATCH_ENCODER

namespace {

struct Interval {
  uint32_t first, last, code, input_class;
};

constexpr Interval intervals[] = {
#include FP4PATCH_INTERVALS
};
constexpr unsigned classes = 6;
constexpr unsigned kept = 4;
constexpr uint32_t block = 1u << 16;

struct Mismatch {
  uint32_t input, expected, got;
};

struct Found {
  uint64_t inputs = 0, mismatches = 0, magnitudes = 0;
  std::vector<Mismatch> first;
};

inline uint32_t encode(uint32_t input) {
  float x;
  std::memcpy(&x, &input, sizeof x);
  return FP4PATCH_ENCODE(x);
}

// One stretch inside one interval. The first loop is what the compiler vectorizes; the second runs where it must.
void sweep(uint32_t first, uint32_t count, uint32_t code, Found& found) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i) {
    wrong += encode(first + i) != code;
  }
  found.inputs += count;
  found.mismatches += wrong;
  if (wrong == 0) {
    return;
  }
  uint32_t magnitudes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    magnitudes += ((encode(first + i) ^ code) & ~8u) != 0;
  }
  found.magnitudes += magnitudes;
  for (uint32_t i = 0; i < count && found.first.size() < kept; ++i) {
    const uint32_t got = encode(first + i);
    if (got != code) {
      found.first.push_back({first + i, code, got});
    }
  }
}

struct Stretch {
  uint32_t first, count, code, input_class;
};

}  // namespace

int main() {
  std::vector<Stretch> work;
  for (const Interval& interval : intervals) {
    for (uint64_t at = interval.first; at <= interval.last; at += block) {
      const uint64_t left = uint64_t{interval.last} - at + 1;
      work.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(left < block ? left : block), interval.code,
                      interval.input_class});
    }
  }
  // Each thread takes one run of neighbouring stretches, so that its first mismatches are the lowest of its run.
  const unsigned hardware = std::thread::hardware_concurrency();
  const size_t threads = hardware != 0 ? hardware : 1;
  std::vector<std::vector<Found>> found(threads, std::vector<Found>(classes));
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (size_t i = work.size() * t / threads; i < work.size() * (t + 1) / threads; ++i) {
        sweep(work[i].first, work[i].count, work[i].code, found[t][work[i].input_class]);
      }
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  for (unsigned c = 0; c < classes; ++c) {
    Found all;
    for (const std::vector<Found>& part : found) {
      all.inputs += part[c].inputs;
      all.mismatches += part[c].mismatches;
      all.magnitudes += part[c].magnitudes;
      all.first.insert(all.first.end(), part[c].first.begin(), part[c].first.end());
    }
    std::printf("%u %llu %llu %llu", c, static_cast<unsigned long long>(all.inputs),
                static_cast<unsigned long long>(all.mismatches), static_cast<unsigned long long>(all.magnitudes));
    for (size_t i = 0; i < all.first.size() && i < kept; ++i) {
      std::printf(" %08x:%x:%x", all.first[i].input, all.first[i].expected, all.first[i].got);
    }
    std::printf("\n");
  }
  return 0;
}
