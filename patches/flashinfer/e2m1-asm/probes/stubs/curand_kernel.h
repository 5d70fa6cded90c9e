// cuRAND's header, which the compiler's packages do not bring along: the real one where there is one, else nothing, since
// nothing of it is used where FlashInfer converts.
#pragma once
#if __has_include_next(<curand_kernel.h>)
#include_next <curand_kernel.h>
#endif
