class CompilationContext:
    def __init__(self):
        self.TARGET_CUDA_ARCHS = set()
        if "FLASHINFER_CUDA_ARCH_LIST" in os.environ:
            for arch in os.environ["FLASHINFER_CUDA_ARCH_LIST"].split(" "):
                major, minor = arch.split(".")
                major = int(major)
                self.TARGET_CUDA_ARCHS.add((int(major), str(minor)))
        else:
            for device in range(torch.cuda.device_count()):
                major, minor = torch.cuda.get_device_capability(device)
                if major >= 9:
                    minor = str(minor) + "a"
                self.TARGET_CUDA_ARCHS.add((int(major), str(minor)))
