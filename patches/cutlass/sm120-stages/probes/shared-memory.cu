// Grouped NVFP4 GEMMs as TensorRT-LLM and FlashInfer compile them for experts, with stages that CUTLASS chooses. A kernel
// whose shared memory is larger than SM12x has cannot be launched: it does not compile here. The stages of those that
// fitted are asserted too.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Operand = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Half = cutlass::bfloat16_t;

// An epilogue with more tensors in shared memory, as fused ones have.
template <class Epilogue, int more> struct With : Epilogue {
  struct TensorStorage : Epilogue::TensorStorage {
    alignas(128) char others[more];
  };
  struct SharedStorage {
    TensorStorage tensors;
    typename Epilogue::PipelineStorage pipeline;
  };
};
template <class Epilogue> struct With<Epilogue, 0> : Epilogue {};

template <bool grouped, class Tile, class C, class D, int more = 0> struct Kernel {
  using RowOf = cute::conditional_t<grouped, Row *, Row>;
  using ColumnOf = cute::conditional_t<grouped, Column *, Column>;
  using Schedule = cute::conditional_t<grouped, cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong,
                                       cutlass::gemm::KernelTmaWarpSpecializedPingpong>;
  using Problem = cute::conditional_t<grouped, cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>,
                                      cute::Shape<int, int, int, int>>;
  static constexpr int align = 128 / cutlass::sizeof_bits<D>::value;
  using Epilogue = With<typename cutlass::epilogue::collective::CollectiveBuilder<
                            cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
                            cutlass::epilogue::collective::EpilogueTileAuto, float, float, C, RowOf, align, D, RowOf,
                            align, cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp,
                        more>;
  static constexpr int epilogue = sizeof(typename Epilogue::SharedStorage);
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Operand, RowOf, 32, Operand, ColumnOf, 32, float,
      Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<epilogue>, Schedule>::CollectiveOp;
  using Gemm = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue, void>;
  static constexpr int bytes = sizeof(typename Gemm::SharedStorage), stages = Mainloop::DispatchPolicy::Stages;
};

template <class K, int epilogue, int stages, int bytes>
constexpr bool has = K::epilogue == epilogue && K::stages == stages && K::bytes == bytes && K::bytes <= 101376;

template <int M, int N, int K> using Tile = cute::Shape<cute::Int<M>, cute::Int<N>, cute::Int<K>>;

// The kernels that do not fit with the stages that CUTLASS chose: three, and 102,400 bytes.
static_assert(has<Kernel<true, Tile<128, 256, 128>, void, Half, 8192>, 17408, 2, 74752>);
static_assert(has<Kernel<true, Tile<256, 128, 128>, void, Half, 8192>, 17408, 2, 74752>);
// Those that fit keep their stages and their bytes.
static_assert(has<Kernel<true, Tile<128, 128, 128>, Half, Half>, 13312, 4, 89088>);
static_assert(has<Kernel<true, Tile<128, 128, 256>, Half, Half>, 13312, 2, 89088>);
static_assert(has<Kernel<true, Tile<256, 128, 128>, Half, Half>, 13312, 3, 98304>);
static_assert(has<Kernel<true, Tile<128, 256, 128>, Half, Half>, 13312, 3, 98304>);
static_assert(has<Kernel<true, Tile<128, 256, 128>, void, float>, 18432, 2, 74752>);
static_assert(has<Kernel<true, Tile<128, 256, 128>, void, Half, 7168>, 16384, 3, 101376>);
static_assert(has<Kernel<false, Tile<128, 256, 128>, Half, Half>, 13312, 3, 97280>);
static_assert(has<Kernel<false, Tile<128, 256, 128>, void, Half, 8192>, 17408, 3, 101376>);

extern "C" __global__ void probe(int *result) { *result = Kernel<true, Tile<128, 256, 128>, void, Half, 8192>::bytes; }
