# 0.12 to 0.20: the layout is upstream's
def get_marlin_input_dtype(prefix: str | None = None):
    if envs.VLLM_MARLIN_INPUT_DTYPE.lower() == "fp8":
        if not current_platform.is_device_capability(
            89
        ) and not (current_platform.is_device_capability(120) or current_platform.is_device_capability(121)):
            raise ValueError("Marlin W4A8-FP8 only support SM89 or SM120 device")
