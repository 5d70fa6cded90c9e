// The functions of ptx.cuh that convert; they were in nvfp4_transpose.cuh before 2.10. A thread has a record of its values
// and behind them the random words, one for four values. So that scales that change places show, half of the values and
// their scale are negative, which is exact.

#include "common/common.h"
#include "common/util/ptx.cuh"

#if __has_include("common/util/nvfp4_transpose.cuh")
#include "common/util/nvfp4_transpose.cuh"
namespace functions = transformer_engine::nvfp4_transpose;
#else
namespace functions = transformer_engine::ptx;
#endif
