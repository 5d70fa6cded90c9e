"""Capabilities of which a list alone builds FlashAttention 3; with CMAKE_ARGS that name a list, each must."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

LIBRARY = "vllm.vllm_flash_attn._vllm_fa3_C"


class Nothing:
    """Stands for every other name of setup.py."""

    def __bool__(self):
        return False

    def __ge__(self, other):
        return False

    def __iter__(self):
        return iter(())

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        return self


class Names(dict):
    def __missing__(self, name):
        return Nothing()


code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec")


def built(archs, cmake_args=""):
    """Return the extensions of a build."""
    asked = SimpleNamespace(environ={"TORCH_CUDA_ARCH_LIST": archs, "CMAKE_ARGS": cmake_args}, name=os.name)
    there = {"os": asked, "re": re, "CMakeExtension": lambda name, **_: name, "ext_modules": []}
    names = Names(
        there,
        _is_cuda=lambda: True,
        CUDA_HOME="/usr/local/cuda",
        Version=float,
        get_nvcc_cuda_version=lambda: 13.0,
        envs=SimpleNamespace(VLLM_USE_PRECOMPILED=False),
    )
    exec(text, there, names)
    return [str(name) for name in names["ext_modules"]]


for capability in capabilities:
    usual = [name for name in built("9.0") if name != LIBRARY]
    for archs in (f"{capability};9.0a", f"9.0+PTX {capability}", "Hopper", ""):
        assert built(archs) == built("9.0"), archs
    assert built(capability, "-DCMAKE_CUDA_ARCHITECTURES=90") == built("9.0"), capability
    assert [name for name in built(capability) if name != LIBRARY] == usual, capability
    assert built(capability) == built(f"{capability}+PTX") == built(f"8.0;{capability}") or capability == "9.0"
    if LIBRARY in built(capability):
        print(capability, end=" ")
