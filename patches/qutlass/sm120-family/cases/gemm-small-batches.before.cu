void matmul_host_ada_mxf4_bf16_tn(torch::Tensor const&input, torch::Tensor &out)
{
#if TARGET_CUDA_ARCH == 120
  qutlass_matmul_mxf4_v1<TileShape, WarpShape, kStages>(input, out, input.device());
#else
    TORCH_CHECK(false, "matmul_ada_mxf4_bf16_tn was optimized for sm120");
#endif
}
