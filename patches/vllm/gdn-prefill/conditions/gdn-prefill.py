"""Capabilities for which FlashInfer's kernel is chosen for a head of 128 with CUDA 13 or later.

With a smaller or a larger head, or an earlier CUDA, it must be chosen on SM90 alone, on request and by default alike;
and the kernel in CuteDSL, on request, on SM10x alone.
"""

import __future__

import sys
from pathlib import Path
from types import SimpleNamespace


class Platform:
    """Stand-in for ``current_platform`` with one compute capability and one CUDA runtime."""

    def __init__(self, capability, runtime):
        self.capability, self.runtime = int(capability.replace(".", "")), runtime

    def is_cuda(self):
        return True

    def is_device_capability(self, wanted):
        return self.capability == wanted

    def is_device_capability_family(self, wanted):
        assert wanted % 10 == 0, "a family has the name of its first GPU"
        return self.capability // 10 == wanted // 10

    def get_cuda_runtime_major(self):
        return self.runtime


code, *capabilities = sys.argv[1:]
flags = __future__.annotations.compiler_flag
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec", flags)


def chosen(capability, backend="auto", head=128, runtime=13):
    """Return the kernel that is chosen."""
    there = {"current_platform": Platform(capability, runtime)}
    exec(text, there)
    model = SimpleNamespace(hf_text_config=SimpleNamespace(linear_key_head_dim=head))
    config = SimpleNamespace(additional_config={"gdn_prefill_backend": backend}, model_config=model)
    asked, kernel = there["_resolve_gdn_prefill_backend"](config)
    assert asked == backend
    return kernel


for capability in capabilities:
    usual = "flashinfer" if capability == "9.0" else "triton"
    for backend in ("auto", "flashinfer"):
        for head in (64, 127, 129, 256):
            assert chosen(capability, backend, head=head) == usual, capability
        assert chosen(capability, backend, runtime=11) == chosen(capability, backend, runtime=12) == usual, capability
        for runtime in (14, 15, 16, 20):
            assert chosen(capability, backend, runtime=runtime) == chosen(capability, backend), capability
    assert chosen(capability, "cutedsl") == ("cutedsl" if capability.startswith("10.") else "triton"), capability
    assert chosen(capability, "triton") == "triton", capability
    assert chosen(capability) == chosen(capability, "flashinfer"), capability
    if chosen(capability) == "flashinfer":
        print(capability, end=" ")
