// A stand-in: TransformerEngine's headers mark ranges for a profiler, in host code.
#pragma once

inline int nvtxRangePush(char const*) { return 0; }
inline int nvtxRangePop() { return 0; }
