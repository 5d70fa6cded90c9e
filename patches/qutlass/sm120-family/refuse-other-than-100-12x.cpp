#if !(TARGET_CUDA_ARCH == 100 || (TARGET_CUDA_ARCH >= 120 && TARGET_CUDA_ARCH < 130))
#error "QuTLASS has no kernels for this TARGET_CUDA_ARCH: it must be 100, 120 or 121"
#endif
