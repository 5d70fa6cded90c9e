// Declarations for the software path, which does not compile with them: a probe takes the instruction or fails.

#pragma once

#include <cstdint>

namespace cutlass {

struct float_e2m1_t;

template <class, int>
struct Array;

template <class, class, int>
struct NumericArrayConverter;

}  // namespace cutlass
