"""MLX: its patch on a tree of excerpts, which is compiled and executed.

The package index has no sources of MLX. A whole tree, by hand: ``fp4patch fetch mlx==0.32.1 --git …``, then ``apply``,
``verify`` and ``revert``; docs/evidence.md and the matrix have the results.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases
from command import Said, verify
from few_probes import few_probes
from small_trees import CONVERSION, small_tree

from fp4patch.adapters.vllm import cmake
from fp4patch.catalog.manifest import forget
from fp4patch.proof.toolchain import Toolchain


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of the patch's case."""
    return small_tree("mlx", tmp_path / "mlx")


def test_a_release_without_the_conversion_is_drifted_and_one_with_a_moved_one_is_patched(
    tree: Path, fp4patch: Callable[..., Said]
) -> None:
    moved = tree / "mlx/backend/cuda/device/fp4.cuh"
    moved.parent.mkdir()
    (tree / CONVERSION).rename(moved)
    (tree / CONVERSION).write_text('#include "mlx/backend/cuda/device/fp4.cuh"\n')
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    assert "__CUDA_ARCH_SPECIFIC__" not in moved.read_text()
    assert fp4patch("revert", tree).status == 0
    moved.write_text("")
    assert fp4patch("apply", "--variant", "native", tree).status == 1


def test_the_cutlass_in_the_build_directory_is_patched_with_the_tree(
    tree: Path, tree_copy: object, fp4patch: Callable[..., Said]
) -> None:
    cutlass = tree / "build/_deps/cutlass-src"
    cutlass.parent.mkdir(parents=True)
    tree_copy("cutlass", "4.2.1").rename(cutlass)  # type: ignore[operator]
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    assert "fp4patch" in (cutlass / "include/cutlass/numeric_conversion.h").read_text()


def test_verify_executes_all_inputs_where_the_pristine_side_does_not_compile(
    tree: Path, fp4patch: Callable[..., Said]
) -> None:
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    status, document = verify(tree, "native", "--arch", "sm_120a,sm_120f", "--execute")
    assert (status, document["verdict"], document["problems"]) == (0, "pass", [])
    rows = {(row["probe"].removeprefix("mlx/"), row["arch"]): row for row in document["results"]}
    assert rows["float32-x4", "sm_120a"]["identical"]
    assert rows["float32-x4", "sm_120f"]["before"] is None
    assert rows["float32-x4", "sm_120f"]["after"]["fp4"] == 2
    executed = [ran for ran in document["executed"]["executions"] if ran["side"] == "patched"]
    assert [ran["verdict"] for ran in executed] == ["pass"] * 6
    assert {ran["ran"]["inputs"] for ran in executed} == {1 << 32, 1 << 16}
    assert document["coverage"]["unjudged"] == []


GUARD, SUFFIX = "patches/mlx/family-guard/patch.toml", "patches/mlx/fp4-suffix/patch.toml"


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        (
            GUARD,
            'replace = "&& (__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000)',
            'replace = "&& (__CUDA_ARCH__ >= 1210)',
            "undefined",
        ),
        ("", "low, %2, %1;", "low, %1, %2;", "gives what the variant promises"),
        ("", "float(v.w) * scale", "float(v.w)", "gives what the variant promises"),
        (
            SUFFIX,
            "foreach(MLX_PLAIN_ARCH 120 121)",
            "foreach(MLX_PLAIN_ARCH 121)",
            "12.1, got two targets: -gencode=arch=compute_121a",
        ),
        (SUFFIX, "code=sm_${MLX_PLAIN_ARCH}a", "code=sm_${MLX_PLAIN_ARCH}", "120: -gencode="),
        (SUFFIX, "quantized/fp_quantize.cu", "quantized/affine_quantize.cu", "affine_quantize.cu"),
        (SUFFIX, " APPEND", "", "set_property(SOURCE"),
        (SUFFIX, '${MLX_PLAIN_ARCH}a\\")', 'XX\\")', "120a"),
        (SUFFIX, "(-real)?", "", "120-real"),
    ],
)
def test_verify_finds_a_sabotage(
    file: str,
    old: str,
    new: str,
    found: str,
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fp4patch: Callable[..., Said],
) -> None:
    data = few_probes(tmp_path / "data", {"bfloat16-x4": "mlx"})
    path = data / file if file else tree / CONVERSION
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    forget()
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    said = fp4patch("verify", "--variant", "native", "--arch", "sm_120f", tree)
    forget()
    assert (said.status, found in said.out) == (1, True), said.out


REAL = """cmake_minimum_required(VERSION 3.25)
project(mlx LANGUAGES CXX CUDA)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(mlx)
add_subdirectory(mlx/backend/cuda)
"""
SOURCES = """target_sources(
  mlx PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/quantized/fp_quantize.cu
              ${CMAKE_CURRENT_SOURCE_DIR}/quantized/affine_quantize.cu)
"""


@pytest.mark.slow
@pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake")
def test_cmake_compiles_one_file_for_a_suffix_too(tmp_path: Path, toolchain: Toolchain) -> None:
    """A project of MLX's shape, configured by CMake with CUDA as a language: a library in one directory, its sources
    and the list in another."""
    quantized = tmp_path / "mlx/backend/cuda/quantized"
    quantized.mkdir(parents=True)
    for name in ("fp_quantize.cu", "affine_quantize.cu"):
        (quantized / name).touch()
    (tmp_path / "CMakeLists.txt").write_text(REAL)
    patched = cases("mlx/fp4-suffix")["every-one-from-90-on.cmake"].after
    (quantized.parent / "CMakeLists.txt").write_text(SOURCES + patched)
    command = [cmake(), "-S", tmp_path, "-B", tmp_path / "build", "-DMLX_CUDA_ARCHITECTURES=80-real;120-real;121"]
    command += [f"-DCMAKE_CUDA_COMPILER={toolchain.nvcc}", f"-DCMAKE_CUDA_FLAGS=-L{toolchain.root}/lib"]
    done = subprocess.run([*map(str, command), "-G", "Unix Makefiles"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    commands = json.loads((tmp_path / "build/compile_commands.json").read_text())
    targets = {Path(one["file"]).stem: re.findall(r"arch=compute_(\w+)", one["command"]) for one in commands}
    assert targets == {"fp_quantize": ["80", "120", "121", "120a", "121a"], "affine_quantize": ["80", "120", "121"]}
