// 0.10.2 to 0.14.1
struct cutlass_3x_gemm_sm120 {
  using GemmKernel = cutlass::gemm::kernel::GemmUniversal<
      Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue, void>;
};
