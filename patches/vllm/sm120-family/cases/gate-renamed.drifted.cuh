// Not a release: a gate that the patch does not know
struct cutlass_3x_gemm_sm120 {
  using GemmKernel = enable_sm120_exactly<cutlass::gemm::kernel::GemmUniversal<
      Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue, void>>;
};
