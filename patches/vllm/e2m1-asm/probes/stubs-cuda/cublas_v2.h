// cuBLAS's header, which the compiler's packages do not bring along: the real one where there is one, else the
// names that PyTorch's headers speak of.
#pragma once
#if __has_include_next(<cublas_v2.h>)
#include_next <cublas_v2.h>
#else
typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
#endif
