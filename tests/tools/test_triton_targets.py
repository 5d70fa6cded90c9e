"""The table of torchao's conversions by GPU, with a stand-in for Triton, whose package takes 700 MB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "triton_targets.py"

# As torchao has it: functions inside a condition, beside others of the same name where there is no Triton.
TORCHAO = """
import torch
from torch.utils._triton import has_triton

if has_triton():
    import triton
    import triton.language as tl

    @triton.jit
    def another(x):
        return torch.nothing(x)

    @triton.jit
    def convert_8xfp32_to_4xfp4_packed(x_pairs):
        return tl.inline_asm_elementwise("cvt.rn.satfinite.e2m1x2.f32", x_pairs)

    @triton.jit
    def convert_8xfp32_to_4xfp4_packed_rs(x_pairs, rbits):
        return tl.inline_asm_elementwise("cvt.rs.satfinite.e2m1x4.f32", x_pairs, rbits)

else:

    def convert_8xfp32_to_4xfp4_packed(*args, **kwargs):
        raise RuntimeError
"""
# It runs each kernel, so that a wrong call of a function is an error, and refuses as ptxas does.
TRITON = {
    "__init__.py": """
from triton import language

def jit(function):
    return function

def compile(source, target):
    assert source.signature == {"values": "*fp32", "random": "*u32", "packed": "*u8"}
    assert (target.backend, target.warp_size) == ("cuda", 32)
    language.statements.clear()
    source.fn(0, 0, 0)
    if "cvt.rs" in " ".join(language.statements) and target.arch >= 120:
        raise RuntimeError(f"Internal Triton PTX codegen error\\n`ptxas` stderr:\\nptxas k.ptx, line 40; error   : "
                           f"Feature '.rs' not supported on .target 'sm_{target.arch}a'\\nptxas fatal : aborted")
""",
    "language.py": """
statements = []
def arange(start, end): return 0
def load(address): return address
def store(address, value): assert value == "packed"
def inline_asm_elementwise(text, *values):
    statements.append(text)
    assert len(values) == 1 + ("cvt.rs" in text) and len(values[0]) == 2
    return "packed"
""",
    "compiler.py": """
class ASTSource:
    def __init__(self, fn, signature, constexprs):
        self.fn, self.signature = fn, signature
""",
    "backends/__init__.py": "",
    "backends/compiler.py": """
from collections import namedtuple
GPUTarget = namedtuple("GPUTarget", "backend arch warp_size")
""",
}


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    for name, text in TRITON.items():
        (tmp_path / "packages/triton" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "packages/triton" / name).write_text(text)
    return tmp_path / "packages"


def run(text: str, packages: Path) -> subprocess.CompletedProcess[str]:
    file = packages.parent / "hadamard_utils.py"
    file.write_text(text)
    command = [sys.executable, str(SCRIPT), str(file)]
    return subprocess.run(command, env={"PYTHONPATH": str(packages)}, capture_output=True, text=True, check=False)


def test_each_function_has_its_line_for_each_gpu_and_a_refusal_is_ptxas_own(packages: Path) -> None:
    done = run(TORCHAO, packages)
    assert (done.returncode, done.stderr) == (0, "")
    nearest, stochastic = "convert_8xfp32_to_4xfp4_packed", "convert_8xfp32_to_4xfp4_packed_rs"
    refused = "ptxas k.ptx, line 40; error   : Feature '.rs' not supported on .target 'sm_{}a'"
    assert done.stdout.splitlines() == [
        *(f"{gpu} {name}: compiled" for gpu in (100, 103) for name in (nearest, stochastic)),
        f"120 {nearest}: compiled",
        f"120 {stochastic}: {refused.format(120)}",
        f"121 {nearest}: compiled",
        f"121 {stochastic}: {refused.format(121)}",
    ]


def test_a_release_without_the_function_is_named_and_no_result(packages: Path) -> None:
    done = run(TORCHAO.replace("packed_rs(", "packed_by_hand("), packages)
    assert done.returncode == 1
    assert f"{packages.parent / 'hadamard_utils.py'} has no convert_8xfp32_to_4xfp4_packed_rs" in done.stderr
