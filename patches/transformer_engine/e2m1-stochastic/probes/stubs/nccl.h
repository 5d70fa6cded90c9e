// A stand-in, as cublas_v2.h is.
#pragma once

enum ncclResult_t { ncclSuccess };
inline char const* ncclGetErrorString(ncclResult_t) { return ""; }
