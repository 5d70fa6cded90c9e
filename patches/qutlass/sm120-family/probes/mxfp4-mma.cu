// The multiplication of the MXFP4 GEMM for small batches, as its warp tile calls it.

#include "cutlass/cutlass.h"
#include "cutlass/arch/mma.h"
#include "cutlass_extensions/arch/mma_mx_sm120.h"

using Mma = cutlass::arch::Mma<cutlass::gemm::GemmShape<16, 8, 64>, 32, cutlass::float_e2m1_t,
                               cutlass::layout::RowMajor, cutlass::float_e2m1_t, cutlass::layout::ColumnMajor, float,
                               cutlass::layout::RowMajor, cutlass::arch::OpMultiplyAddSaturate>;

extern "C" __global__ void probe(Mma::FragmentC* result, Mma::FragmentA const* a, Mma::FragmentB const* b,
                                 Mma::FragmentC const* c, cutlass::float_ue8m0_t* a_scale,
                                 cutlass::float_ue8m0_t* b_scale) {
  Mma{}(result[threadIdx.x], a[threadIdx.x], b[threadIdx.x], c[threadIdx.x], a_scale, b_scale);
}
