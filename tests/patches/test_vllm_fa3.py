"""`vllm/fa3-hopper-only`: the extensions that each release's setup.py builds for a list, before and after.

The statements that choose the extensions are run from the tree unchanged, with substitutes for what they call.
"""

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import Version
from vllm_edits import run

from fp4patch.core.results import Rewritten

pytestmark = pytest.mark.slow
PATCH = "vllm/fa3-hopper-only"
RELEASES = ("0.10.2", "0.12.0", "0.14.1", "0.16.0", "0.20.0", "0.25.1", "0.33.0")
FA3 = "vllm.vllm_flash_attn._vllm_fa3_C"
WITHOUT = ("12.1a", "12.0a;12.1a", "12.0f", "12.0 12.1", "8.0;8.9+PTX", "10.0a;12.0a", "12.1+PTX")
WITH = ("", "9.0", "9.0a;12.1a", "12.1a;9.0a", "12.1a 9.0+PTX", "Hopper", "8.0;Hopper", "All", "Common")

GetTree = Callable[[str, str], Path]


def extensions(setup: str, archs: str, cuda: str, cmake_args: str = "") -> list[str]:
    """The names of the extensions that setup.py asks CMake for, those of CUDA alone."""
    built: list[str] = []
    chooses = [
        node
        for node in ast.parse(setup).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Call) and ast.unparse(node.test) == "_is_cuda()"
    ]
    names = {
        "_is_cuda": lambda: True,
        "CMakeExtension": lambda name, **_: name,
        "CUDA_HOME": "/usr/local/cuda",
        "USE_PRECOMPILED_EXTENSIONS": False,
        "Version": Version,
        "envs": SimpleNamespace(VLLM_USE_PRECOMPILED=False),
        "ext_modules": built,
        "get_nvcc_cuda_version": lambda: Version(cuda),
        "os": SimpleNamespace(environ={"TORCH_CUDA_ARCH_LIST": archs, "CMAKE_ARGS": cmake_args}, name=os.name),
        "re": re,
    }
    assert chooses
    for node in chooses:
        exec(compile(ast.Module([node], []), "setup.py", "exec"), names)  # vLLM's own, of a pinned archive
    return built


@pytest.mark.parametrize("version", RELEASES)
def test_the_library_is_left_out_where_no_gpu_of_the_build_could_load_it(pristine_tree: GetTree, version: str) -> None:
    tree = pristine_tree("vllm", version)
    before = (tree / "setup.py").read_text()
    (edited,) = run(PATCH, tree).files.values()
    assert isinstance(edited.outcomes[0], Rewritten)
    for archs in WITHOUT:
        all_of_them = extensions(before, archs, "13.0")
        assert FA3 in all_of_them
        assert extensions(edited.text, archs, "13.0") == [name for name in all_of_them if name != FA3]
        kept = extensions(edited.text, archs, "13.0", "-DTORCH_CUDA_ARCH_LIST=9.0a")
        assert kept == all_of_them
    for archs in WITH:
        assert extensions(edited.text, archs, "13.0") == extensions(before, archs, "13.0")
        assert FA3 in extensions(edited.text, archs, "12.9")
    assert FA3 not in extensions(edited.text, "9.0a", "12.2")  # upstream's own condition still decides first
