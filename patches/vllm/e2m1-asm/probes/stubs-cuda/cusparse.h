// cuSPARSE's header, which the compiler's packages do not bring along: the real one where there is one, else the
// names that PyTorch's headers speak of.
#pragma once
#if __has_include_next(<cusparse.h>)
#include_next <cusparse.h>
#else
typedef struct cusparseContext* cusparseHandle_t;
enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS };
#endif
