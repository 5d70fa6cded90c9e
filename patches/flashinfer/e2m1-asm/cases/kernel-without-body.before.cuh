template <class Type>
__global__ void
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)
__launch_bounds__(512, 4) quantize_with_block_size(
#else
quantize_with_block_size(
#endif
    Type const* in, uint32_t* out) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)
  asm volatile("griddepcontrol.wait;");
  out[threadIdx.x] = cvt_warp_fp16_to_fp4(in[threadIdx.x]);
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
