// Stands in for PyTorch's header of this name, of which vLLM's FP4 header only uses the type as a tag.
#pragma once

namespace c10 {
struct alignas(2) Half {
  unsigned short x;
};
}  // namespace c10

namespace at {
using c10::Half;
}
