// GemvEpilogueWithScalingFactor: scales sixteen accumulators to E2M1, two to a thread, with a conversion of its own.
// Each block has accumulators of its own, so that one launch takes many of them.

#include <cstdint>

#include "cutlass/cutlass.h"
#include "cutlass/gemm_coord.h"
#include "cutlass/layout/matrix.h"
#include "cutlass/epilogue/threadblock/epilogue_with_scaling_factor.h"

using Epilogue = cutlass::epilogue::threadblock::GemvEpilogueWithScalingFactor<
    16, cutlass::gemm::GemmShape<16, 8>, float, float, cutlass::float_e2m1_t, cutlass::float_e2m1_t, cutlass::float_e4m3_t,
    cutlass::layout::ColumnMajor, cutlass::layout::ColumnMajor>;

extern "C" __global__ void probe(Epilogue::Params params, float const* accumulators) {
  __shared__ Epilogue::SharedStorage shared;
  Epilogue epilogue(params, shared);
  unsigned int const block = blockIdx.z * gridDim.x + blockIdx.x;
  epilogue(accumulators[block * 16 + threadIdx.y], cutlass::float_e2m1_t{}, blockIdx.z);
}
