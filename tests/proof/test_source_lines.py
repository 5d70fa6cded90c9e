"""Lines that a compiler read, and those of which it made code; the code is the same as without this information."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.proof import machine_code
from fp4patch.proof.source_lines import HOST_WITH_LINES, WITH_LINES, SourceLines, source_lines
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.text import opened

HEADER = """\
#pragma once
__device__ inline float twice(float x) {
  return x + x;
}
__device__ inline float never(float x) {
  return x - "\f\f"[0];
}
#if __CUDA_ARCH__ < 900
__device__ inline float old(float x) {
  return x * 7.0f;
}
#endif
__device__ inline float by_way_of(float x) {
  return twice(x);
}
__device__ __noinline__ float called(float x) {
  asm volatile("{\\n"
               "}\\n");
  return sqrtf(x);
}
#define THRICE(x) ((x) * 3.0f)
"""
TWICE = range(2, 5)
NEVER = range(5, 8)
OLD = range(9, 12)
BY_WAY_OF = range(13, 16)
CALLED = range(16, 21)
KERNELS = """\
#include "a header.h"
extern "C" __global__ void one(float* x) { *x = by_way_of(*x); }
extern "C" __global__ void __launch_bounds__(64) two(float* x) {
  *x = called(*x);
  *x = THRICE(*x);
}
"""


def compiled(folder: Path, toolchain: Toolchain, *flags: str) -> Path:
    """Compile the kernels in a directory; return the cubin, beside which the compiler's other files are."""
    (folder / "a tree").mkdir(parents=True)
    (folder / "a tree/a header.h").write_text(HEADER)
    (folder / "kernels.cu").write_text(KERNELS)
    command = [str(toolchain.nvcc), *toolchain.flags, "-arch=sm_121a", "-cubin", "-O3", f"-I{folder}/a tree", *flags]
    command += ["-keep", "-keep-dir", str(folder), f"{folder}/kernels.cu", "-o", f"{folder}/kernels.cubin"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "kernels.cubin"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> SourceLines:
    folder = tmp_path_factory.mktemp("kernels")
    compiled(folder, toolchain, *WITH_LINES)
    return source_lines(folder / "kernels.cpp1.ii", folder / "kernels.ptx", folder / "a tree", ["a header.h", "b.h"])


def test_a_function_has_code_where_it_was_inlined_or_is_called_and_nowhere_else(lines: SourceLines) -> None:
    made = {
        kernel: [lines.of(kernel).compiles("a header.h", [f]) for f in (TWICE, BY_WAY_OF, CALLED, NEVER, OLD)]
        for kernel in ("one", "two")
    }
    assert made == {"one": [True, True, False, False, False], "two": [False, False, True, False, False]}
    assert lines.compiles("a header.h", [OLD, CALLED])
    assert not lines.compiles("b.h", [range(1, 100)])


def test_what_the_preprocessor_left_out_is_another_matter_than_what_nobody_calls(lines: SourceLines) -> None:
    assert {f: lines.reads("a header.h", [f]) for f in (TWICE, NEVER, OLD)} == {TWICE: True, NEVER: True, OLD: False}
    assert not lines.reads("b.h", [OLD])


def test_host_code_has_lines_too_also_where_it_was_inlined(tmp_path: Path, toolchain: Toolchain) -> None:
    header = "inline int called(int x) {\n  return x * 3;\n}\ninline int never(int x) {\n  return x * 5;\n}\n"
    (tmp_path / "a.h").write_text(header)
    (tmp_path / "host.cu").write_text('#include "a.h"\nextern "C" int f(int x) { return called(x); }\n')
    command = [str(toolchain.nvcc), *toolchain.flags, "-arch=sm_121a", "-c", "-O3", *HOST_WITH_LINES]
    command += [f"-I{tmp_path}", f"{tmp_path}/host.cu", "-o", f"{tmp_path}/probe.out"]
    subprocess.run(command, check=True, capture_output=True)
    lines = source_lines(tmp_path / "probe.ii", tmp_path / "probe.s", tmp_path, ["a.h"])
    assert lines.compiles("a.h", [range(1, 4)])
    assert lines.reads("a.h", [range(5, 6)])
    assert not lines.compiles("a.h", [range(4, 7)])


def test_the_code_is_the_same_as_without_and_so_is_the_cubin_of_lines_elsewhere(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = compiled(tmp_path / "a", toolchain).read_bytes()
    with_lines = compiled(tmp_path / "b", toolchain, *WITH_LINES).read_bytes()
    monkeypatch.setitem(globals(), "HEADER", f"// one more line\n{HEADER}")
    moved = compiled(tmp_path / "c", toolchain, *WITH_LINES).read_bytes()
    assert machine_code.code_digest(without) == machine_code.code_digest(with_lines)
    assert with_lines == moved
    assert sections(with_lines) == sections(without)


def sections(cubin: bytes) -> list[str]:
    with opened(cubin) as file:
        names = [file.name(section) for section in file.sections]
    assert ".text.one" in names
    return names


def test_what_was_refused_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.ii").write_text('# 1 "/tree/a.h"\nint x;\n')
    assert source_lines(tmp_path / "a.ii", tmp_path / "a.ptx", Path("/tree"), ["a.h"]) == SourceLines()
