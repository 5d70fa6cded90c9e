// 0.18 and 0.20
struct cutlass_3x_gemm_sm120_custom {
  using GemmKernel =
      enable_sm120_family<cutlass::gemm::kernel::GemmUniversal<
          Shape<int, int, int, int>, Mainloop, Epilogue, void>>;
};
