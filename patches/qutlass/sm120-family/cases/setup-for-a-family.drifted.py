def get_cuda_arch_flags():
    return [
        "-gencode", "arch=compute_120f,code=sm_120f",
        "-gencode", "arch=compute_100a,code=sm_100a",
    ]
