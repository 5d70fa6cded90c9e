#include "cutlass/arch/mma.h"
#include "cutlass/numeric_types.h"

namespace cutlass::arch {

template <>
struct Mma<gemm::GemmShape<16, 8, 64>, 32, cutlass::float_e2m1_t, layout::RowMajor, cutlass::float_e2m1_t,
           layout::ColumnMajor, float, layout::RowMajor, OpMultiplyAddSaturate> {
  using FragmentA = Array<cutlass::float_e2m1_t, 32>;
  using FragmentB = Array<cutlass::float_e2m1_t, 16>;
  using FragmentC = Array<float, 4>;

  CUTLASS_HOST_DEVICE
  void operator()(FragmentC &d, FragmentA const &a, FragmentB const &b, FragmentC const &c,
                  cutlass::float_ue8m0_t* ascale, cutlass::float_ue8m0_t* bscale) const {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1200) && (__CUDA_ARCH__ < 1300)
    uint32_t const * A = reinterpret_cast<uint32_t const *>(&a);
    uint32_t const * B = reinterpret_cast<uint32_t const *>(&b);
    float const *C = reinterpret_cast<float const *>(&c);
    float *D       = reinterpret_cast<float *>(&d);
    asm volatile(
      "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13}, {%14}, {0, 0}, {%15}, {0, 0};"
      : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]),
        "f"(C[0]), "f"(C[1]), "f"(C[2]), "f"(C[3]), "r"(*(uint32_t*)ascale), "r"(*(uint32_t*)bscale));
#else
    CUTLASS_UNUSED(d);
    assert(0);
#endif
  }
};

}  // namespace cutlass::arch
