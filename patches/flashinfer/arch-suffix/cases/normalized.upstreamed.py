class CompilationContext:
    def __init__(self):
        self.TARGET_CUDA_ARCHS = set()
        for arch in os.environ["FLASHINFER_CUDA_ARCH_LIST"].split(" "):
            major, minor = arch.split(".")
            self.TARGET_CUDA_ARCHS.add(self._normalize_cuda_arch(major, int(minor)))
