
// FP4 types are available starting CUDA 12+
#if (__CUDACC_VER_MAJOR__ >= 12)
#define CUDA_FP4_ENABLED 1
#endif

#if (defined(CUTLASS_ARCH_MMA_SM100A_ENABLED))
#  define CUDA_PTX_FP4FP6_CVT_ENABLED 1
#endif
#include "cutlass/cutlass.h"
#include "cutlass/exmy_base.h"
