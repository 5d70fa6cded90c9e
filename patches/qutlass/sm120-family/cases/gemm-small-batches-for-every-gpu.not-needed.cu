void matmul_host_ada_mxf4_bf16_tn(torch::Tensor const&input, torch::Tensor &out)
{
  qutlass_matmul_mxf4_v1<TileShape, WarpShape, kStages>(input, out, input.device());
}
