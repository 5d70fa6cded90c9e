"""Capabilities for which FlashInfer's own function gives the module of fused MoE the flag, and code.

All else that the function returns must be as in every release: the flags that choose kernels, and the name.
"""

import __future__

import sys
from pathlib import Path
from types import SimpleNamespace

GDC = "-DCUTLASS_ENABLE_GDC_FOR_SM100=1"
OTHERS = {
    "-DCOMPILE_BLACKWELL_TMA_GEMMS",
    "-DCOMPILE_BLACKWELL_SM120_TMA_GROUPED_GEMMS",
    "-DENABLE_BF16",
    "-DENABLE_FP8",
    "-DENABLE_FP4",
    "-DUSING_OSS_CUTLASS_MOE_GEMM",
}

code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec", __future__.annotations.compiler_flag)
for capability in capabilities:
    target = f"-gencode=arch=compute_{capability.replace('.', '')}a"

    def flags_of(supported_major_versions, capability=capability, target=target):
        """Return the flag of the GPU, as CompilationContext does; it raises for a GPU of another major version."""
        if int(capability.partition(".")[0]) not in supported_major_versions:
            raise RuntimeError("No supported CUDA architectures found")
        return [target]

    there = {
        "current_compilation_context": SimpleNamespace(get_nvcc_flags_list=flags_of),
        "gen_cutlass_fused_moe_module": lambda flags, name, _fast: (flags, name),
    }
    exec(text, there)
    try:
        usual, fast = (there["gen_cutlass_fused_moe_sm120_module"](use_fast_build=fast) for fast in (False, True))
    except RuntimeError:
        continue
    assert usual == fast, "a fast build has other flags"
    flags, name = usual
    assert name == "120"
    assert {*flags} - {GDC} == {*OTHERS, target}, flags
    assert len(flags) == len({*flags}), flags
    if GDC in flags:
        print(capability, end=" ")
