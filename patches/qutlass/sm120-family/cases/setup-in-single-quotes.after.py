def get_cuda_arch_flags():
    return [
        '-gencode', f"arch=compute_{cc}a,code=sm_{cc}a" if cc // 10 == 12 else "arch=compute_120a,code=sm_120a",
        '-gencode', 'arch=compute_100a,code=sm_100a',
    ]
