def gen_moe_utils_module() -> JitSpec:
    """The MoE utilities: [10] in this text does not count."""
    nvcc_flags = ["-DENABLE_FP4"]
    nvcc_flags += current_compilation_context.get_nvcc_flags_list(
        supported_major_versions=[9, 10], map_sm107_to_100f=True
    )
    return gen_jit_spec("moe_utils", [], extra_cuda_cflags=nvcc_flags)
