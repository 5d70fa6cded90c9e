// cuSOLVER's header, which the compiler's packages do not bring along: the real one where there is one, else the
// names that PyTorch's headers speak of.
#pragma once
#if __has_include_next(<cusolver_common.h>)
#include_next <cusolver_common.h>
#else
enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS };
#endif
