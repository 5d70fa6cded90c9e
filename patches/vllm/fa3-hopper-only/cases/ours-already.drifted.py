if _is_cuda():
    ext_modules.append(CMakeExtension(name="vllm.vllm_flash_attn._vllm_fa2_C"))
    if envs.VLLM_USE_PRECOMPILED or (
        CUDA_HOME and get_nvcc_cuda_version() >= Version("12.3")
    ):
        # FA3 requires CUDA 12.3 or later
        ext_modules.extend(CMakeExtension(name=name) for name in ["vllm.vllm_flash_attn._vllm_fa3_C"] if re.fullmatch(r"((?!9\.)[0-9]+\.[0-9]+[af]?(\+PTX)?[\s;]*)+", os.environ.get("TORCH_CUDA_ARCH_LIST", "")) is None or "CUDA_ARCH" in os.environ.get("CMAKE_ARGS", ""))
