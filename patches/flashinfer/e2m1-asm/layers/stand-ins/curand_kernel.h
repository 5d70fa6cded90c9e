// cuRAND's header, which the compiler's packages do not bring along: the real one where there is one, else the names that
// CUTLASS's tools use to fill tensors, which nothing here does.
#pragma once
#if __has_include_next(<curand_kernel.h>)
#include_next <curand_kernel.h>
#else
struct curandState_t {};
__device__ void curand_init(unsigned long long, unsigned long long, unsigned long long, curandState_t*);
__device__ unsigned curand(curandState_t*);
__device__ float curand_uniform(curandState_t*);
__device__ float curand_normal(curandState_t*);
__device__ double curand_uniform_double(curandState_t*);
__device__ double curand_normal_double(curandState_t*);
#endif
