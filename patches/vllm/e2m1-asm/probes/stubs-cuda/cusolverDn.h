// cuSOLVER's header, which the compiler's packages do not bring along: the real one where there is one, else the
// names that PyTorch's headers speak of.
#pragma once
#if __has_include_next(<cusolverDn.h>)
#include_next <cusolverDn.h>
#else
typedef struct cusolverDnContext* cusolverDnHandle_t;
#endif
