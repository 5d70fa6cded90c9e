"""Capabilities from 12.0 on for which FlashInfer's own function makes the module of the MoE utilities.

Those of SM10x must have it in every release, and each the flags of its own GPU beside the module's. Older ones have it
in some releases, and are not printed.
"""

import __future__

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

OTHERS = {"-DTLLM_GEN_EXPORT_INTERFACE", "-DENABLE_BF16", "-DENABLE_FP8", "-DENABLE_FP4"}
sys.modules |= {
    name: MagicMock()  # what the function imports to download headers
    for name in (
        "flashinfer",
        *(f"flashinfer.{part}" for part in ("jit", "artifacts", "jit.cubin_loader", "jit.fused_moe")),
    )
}

code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec", __future__.annotations.compiler_flag)
for capability in capabilities:
    target = f"-gencode=arch=compute_{capability.replace('.', '')}a"

    def flags_of(supported_major_versions, *, capability=capability, target=target, **_):
        """Return the flag of the GPU, as CompilationContext does; it raises for a GPU of another major version."""
        if int(capability.partition(".")[0]) not in supported_major_versions:
            raise RuntimeError("No supported CUDA architectures found")
        return [target]

    there = {
        "__package__": "flashinfer.jit",
        "jit_env": MagicMock(),
        "current_compilation_context": SimpleNamespace(get_nvcc_flags_list=flags_of),
        "gen_jit_spec": lambda name, _sources, *, extra_cuda_cflags, **_: (name, extra_cuda_cflags),
    }
    exec(text, there)
    try:
        name, flags = there["gen_moe_utils_module"]()
    except RuntimeError:
        assert not capability.startswith("10."), "no module for SM10x"
        continue
    assert name == "moe_utils"
    assert {*flags} == {*OTHERS, target}, flags
    assert len(flags) == len({*flags}), flags
    if float(capability) >= 12:
        print(capability, end=" ")
