// An NVFP4 GEMM as the SM120 collectives make it: E2M1 operands with a UE4M3 scale for every 16, float accumulators,
// and an epilogue that quantizes to E2M1 with scales of its own. In the manner of CUTLASS's example 79b.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

using Operand = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Tile = cute::Shape<cute::_128, cute::_128, cute::_128>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    cutlass::bfloat16_t, Row, 8, cutlass::float_e2m1_t, Row, 32,
    cutlass::epilogue::collective::EpilogueScheduleAuto,
    cutlass::epilogue::fusion::LinCombBlockScaleFactor<16, cutlass::float_e2m1_t, float, cutlass::float_ue4m3_t, Row,
                                                       cutlass::bfloat16_t>>::CollectiveOp;

using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Operand, Row, 32, Operand, Column, 32, float, Tile,
    Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::KernelTmaWarpSpecializedPingpong>::CollectiveOp;

using Gemm = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, void>;

extern "C" __global__ void __launch_bounds__(Gemm::MaxThreadsPerBlock, 1)
    probe(__grid_constant__ typename Gemm::Params const parameters) {
  extern __shared__ char shared[];
  Gemm{}(parameters, shared);
}
