def get_cuda_arch_flags():
    return [
        '-gencode', 'arch=compute_120a,code=sm_120a',
        '-gencode', 'arch=compute_100a,code=sm_100a',
    ]
