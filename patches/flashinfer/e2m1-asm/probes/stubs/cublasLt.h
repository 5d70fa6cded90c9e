// cuBLASLt's header, which the compiler's packages do not bring along: the real one where there is one.
#pragma once
#if __has_include_next(<cublasLt.h>)
#include_next <cublasLt.h>
#else
#include <cublas_v2.h>
#endif
