"""Host code of a probe runs on every input, and a wrong one is found; made by the host's compiler alone."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.catalog.probe import Executes
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.executor import execute
from fp4patch.proof.execution.result import Execution
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[2] / "encoders"
SOURCE = """
#include "half_pair.cuh"
extern "C" void fp4patch_host(void const* all, void* packed, unsigned long long records) {{
  auto const* in = static_cast<unsigned short const*>(all);
  for (unsigned long long i = 0; i < records; ++i) {{
    using namespace fp4patch_half_pair;
    float const v0 = number(in[2 * i] << 16), v1 = number(in[2 * i + 1] << 16);
    static_cast<unsigned char*>(packed)[i] = {code};
  }}
}}
"""


def run(tmp_path: Path, toolchain: Toolchain, code: str) -> Execution:
    (tmp_path / "probe.cpp").write_text(SOURCE.format(code=code))
    command = ["g++", "-O2", "-w", f"-I{ENCODERS}", "-c", "probe.cpp", "-o", "probe.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    does = Executes(input="bfloat16", lanes=2)
    content = (tmp_path / "probe.o").read_bytes()
    subject = ProbeCode("lib/two", does, Arch(12, 1, "a"), "patched", content, None, Promise.EXACT)
    (execution,) = execute([subject], toolchain=toolchain, store=Store(tmp_path / "cache"))
    return execution


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("e2m1_x2(v0, v1)", Verdict.PASS),
        ("e2m1_x2(v1, v0)", Verdict.FAIL),
        ("e2m1_x2(v0, v1) ^ (in[2 * i + 1] == 0x3f12 ? 0x10 : 0)", Verdict.FAIL),
    ],
)
def test_host_code_is_right_for_every_input_or_fails(
    tmp_path: Path, toolchain: Toolchain, code: str, verdict: Verdict
) -> None:
    first, again = run(tmp_path, toolchain, code), run(tmp_path, toolchain, code)
    assert first.verdict is again.verdict is verdict
    assert first.ran == again.ran
    assert first.ran.inputs > 1 << 16


def test_host_code_that_cannot_be_linked_or_crashes_is_a_failure(tmp_path: Path, toolchain: Toolchain) -> None:
    for code, problem in (("missing(v0)", "cannot be linked"), ("*(volatile char*)0", "did not run to its end")):
        declared = "unsigned char missing(float);" if "missing" in code else ""
        (tmp_path / "half_pair.cuh").write_text(f'{declared}\n#include "{ENCODERS}/half_pair.cuh"\n')
        found = run(tmp_path, toolchain, code)
        assert problem in found.problem
        assert found.verdict is Verdict.FAIL
