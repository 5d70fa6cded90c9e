// Runs every one of 2^32 float inputs, as this compiler builds them for this machine's processor, through the functions
// named in FP4PATCH_SUBJECTS, and compares with the specification's intervals. Compiled in, as in device.cu:
//   FP4PATCH_SUBJECTS   a text that includes what it needs and, for each subject, has one line
//                       FP4PATCH_SUBJECT(index, name, lanes, expression of `const float (&v)[lanes]`)
//                       whose value is the packed nibbles, lane 0 lowest
//   FP4PATCH_NAMES      a text of one line FP4PATCH_RUN(index, name, lanes) for each subject
//   FP4PATCH_INTERVALS  lines {first, last, code, class} that together cover 0 to 0xffffffff
// The argument, if there is one, is the number of threads. For each subject it writes "subject <name>", "seconds <s>",
// then one line for each class: class, inputs, mismatches, mismatches of the magnitude, and the lowest mismatches as
// input:expected:got, all but the counts in hexadecimal.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#define FP4PATCH_SUBJECT(index, name, lanes, expression)                                             \
  struct Fp4patchSubject##index {                                                                    \
    static inline unsigned long long encode(const float (&v)[lanes]) {                               \
      return static_cast<unsigned long long>(expression);                                            \
    }                                                                                                \
  };
#include FP4PATCH_SUBJECTS
#undef FP4PATCH_SUBJECT

// Named: nvcc calls an unnamed one differently in every run, and the name reaches the program.
namespace fp4patch_sweep {

struct Interval {
  uint32_t first, last, code, input_class;
};

constexpr Interval intervals[] = {
#include FP4PATCH_INTERVALS
};
constexpr int classes = 6;
constexpr size_t kept = 4;
constexpr uint64_t block = 1u << 16;

const Interval& of(uint32_t input) {
  const Interval* found = intervals;
  while (input > found->last) {
    ++found;
  }
  return *found;
}

struct Mismatch {
  uint32_t input, expected, got;
};

struct Found {
  uint64_t inputs = 0, mismatches = 0, magnitudes = 0;
  std::vector<Mismatch> first;  // the lowest, ascending

  void keep(const Mismatch& mismatch) {
    if (first.size() == kept && mismatch.input > first.back().input) {
      return;
    }
    const auto later = [](const Mismatch& a, const Mismatch& b) { return a.input < b.input; };
    first.insert(std::upper_bound(first.begin(), first.end(), mismatch, later), mismatch);
    if (first.size() > kept) {
      first.pop_back();
    }
  }
};

// Lane i takes its inputs from another part of the 2^32 than its neighbours, so that lanes that change places show.
template <class Subject, int lanes>
struct Sweep {
  using Word = typename std::conditional<lanes <= 8, uint32_t, uint64_t>::type;
  static constexpr uint64_t part = (uint64_t{1} << 32) / lanes;

  // Neighbouring calls of which each lane keeps to one interval: what they must return is one word.
  struct Stretch {
    uint32_t first, count;
    Word expected;
    uint32_t classes[lanes];
  };

  static uint32_t input(uint32_t at, int lane) { return at + static_cast<uint32_t>(lane * part); }

  static inline Word encode(uint32_t at) {
    float v[lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      const uint32_t bits = at + static_cast<uint32_t>(lane * part);
      std::memcpy(&v[lane], &bits, sizeof bits);
    }
    return static_cast<Word>(Subject::encode(v));
  }

  static std::vector<Stretch> stretches() {
    std::set<uint64_t> cuts{part};
    for (const Interval& interval : intervals) {
      cuts.insert(interval.first % part);
    }
    for (uint64_t at = 0; at < part; at += block) {
      cuts.insert(at);
    }
    std::vector<Stretch> all;
    for (auto cut = cuts.begin(); *cut != part; ++cut) {
      Stretch one{static_cast<uint32_t>(*cut), static_cast<uint32_t>(*std::next(cut) - *cut), 0, {}};
      for (int lane = 0; lane < lanes; ++lane) {
        const Interval& interval = of(input(one.first, lane));
        one.expected |= static_cast<Word>(interval.code) << 4 * lane;
        one.classes[lane] = interval.input_class;
      }
      all.push_back(one);
    }
    return all;
  }

  // The first loop is what the compiler vectorizes; the second runs where it must.
  static void run(const Stretch& stretch, std::vector<Found>& found) {
    for (uint32_t input_class : stretch.classes) {
      found[input_class].inputs += stretch.count;
    }
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < stretch.count; ++i) {
      wrong += encode(stretch.first + i) != stretch.expected;
    }
    if (wrong == 0) {
      return;
    }
    for (uint32_t i = 0; i < stretch.count; ++i) {
      const Word word = encode(stretch.first + i);
      for (int lane = 0; lane < lanes; ++lane) {
        // The last lane keeps what stands above it: nothing may.
        const uint32_t mask = lane == lanes - 1 ? ~0u : 15u;
        const uint32_t got = static_cast<uint32_t>(word >> 4 * lane) & mask;
        const uint32_t expected = static_cast<uint32_t>(stretch.expected >> 4 * lane) & mask;
        if (got != expected) {
          Found& here = found[stretch.classes[lane]];
          here.mismatches += 1;
          here.magnitudes += ((got ^ expected) & ~8u) != 0;
          here.keep({input(stretch.first + i, lane), expected, got});
        }
      }
    }
  }
};

template <class Subject, int lanes>
void run(const char* name, size_t threads) {
  const auto began = std::chrono::steady_clock::now();
  const auto work = Sweep<Subject, lanes>::stretches();
  std::vector<std::vector<Found>> found(threads, std::vector<Found>(classes));
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (size_t i = t; i < work.size(); i += threads) {
        Sweep<Subject, lanes>::run(work[i], found[t]);
      }
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf("subject %s\nseconds %.3f\n", name, seconds.count());
  for (int c = 0; c < classes; ++c) {
    Found all;
    for (const std::vector<Found>& part : found) {
      all.inputs += part[c].inputs;
      all.mismatches += part[c].mismatches;
      all.magnitudes += part[c].magnitudes;
      for (const Mismatch& mismatch : part[c].first) {
        all.keep(mismatch);
      }
    }
    std::printf("%d %llu %llu %llu", c, static_cast<unsigned long long>(all.inputs),
                static_cast<unsigned long long>(all.mismatches), static_cast<unsigned long long>(all.magnitudes));
    for (const Mismatch& mismatch : all.first) {
      std::printf(" %08x:%x:%x", mismatch.input, mismatch.expected, mismatch.got);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace fp4patch_sweep

int main(int argc, char** argv) {
  const unsigned hardware = std::thread::hardware_concurrency();
  const size_t threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : hardware != 0 ? hardware : 1;
#define FP4PATCH_RUN(index, name, lanes) fp4patch_sweep::run<Fp4patchSubject##index, lanes>(name, threads);
#include FP4PATCH_NAMES
#undef FP4PATCH_RUN
  return 0;
}
