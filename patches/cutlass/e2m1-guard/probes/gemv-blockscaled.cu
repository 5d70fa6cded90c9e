// GemvBlockScaled: a block-scaled GEMV of E2M1 operands. Its mainloop decodes both operands and multiplies them as half
// where CUTLASS has the instruction, and value by value as ElementAccumulator elsewhere.

#include "cutlass/cutlass.h"
#include "cutlass/gemm_coord.h"
#include "cutlass/layout/matrix.h"
#include "cutlass/epilogue/threadblock/epilogue_with_scaling_factor.h"
#include "cutlass/gemm/kernel/gemv_blockscaled.h"

using Epilogue = cutlass::epilogue::threadblock::GemvEpilogueWithScalingFactor<
    16, cutlass::gemm::GemmShape<16, 8>, float, float, cutlass::float_e2m1_t, cutlass::float_e2m1_t, cutlass::float_e4m3_t,
    cutlass::layout::ColumnMajor, cutlass::layout::ColumnMajor>;
using Gemv = cutlass::gemm::kernel::GemvBlockScaled<cutlass::float_e2m1_t, cutlass::layout::RowMajor,
                                                    cutlass::float_e2m1_t, cutlass::float_e2m1_t, float, Epilogue, 32>;

extern "C" __global__ void probe(Gemv::Params params) {
  __shared__ Gemv::SharedStorage shared;
  Gemv{}(params, shared);
}
