// cuBLASLt's header, which the compiler's packages do not bring along: the real one where there is one, else the
// names that PyTorch's headers speak of.
#pragma once
#if __has_include_next(<cublasLt.h>)
#include_next <cublasLt.h>
#else
typedef struct cublasLtContext* cublasLtHandle_t;
#endif
