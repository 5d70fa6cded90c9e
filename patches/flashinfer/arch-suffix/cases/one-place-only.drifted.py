class CompilationContext:
    def __init__(self):
        major, minor = "12.1".split(".")
        self.TARGET_CUDA_ARCHS.add((int(major), str(minor)))
