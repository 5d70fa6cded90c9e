"""Capabilities for which get_marlin_input_dtype accepts FP8 activations."""

import sys
from pathlib import Path
from types import SimpleNamespace


class Platform:
    """Stand-in for ``current_platform`` with one compute capability."""

    def __init__(self, capability):
        self.capability = int(capability.replace(".", ""))

    def is_device_capability(self, wanted):
        return self.capability == (wanted if isinstance(wanted, int) else wanted[0] * 10 + wanted[1])

    def is_device_capability_family(self, wanted):
        return self.capability // 10 == wanted // 10


code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec")
for capability in capabilities:
    there = {
        "current_platform": Platform(capability),
        "envs": SimpleNamespace(VLLM_MARLIN_INPUT_DTYPE="fp8"),
        "torch": SimpleNamespace(int8="int8", float8_e4m3fn="fp8"),
        "get__quant_fp8_method": lambda: None,
    }
    exec(text, there)
    try:
        accepted = there["get_marlin_input_dtype"]("layer") == "fp8"
    except ValueError:
        accepted = False
    if accepted:
        print(capability, end=" ")
