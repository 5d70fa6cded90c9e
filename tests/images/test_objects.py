"""The object files that the image's build compiles first, on a real vLLM, before anything is compiled."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fp4patch.catalog.manifest import data_root, load
from fp4patch.proof.toolchain import find_toolchain

SCRIPT = data_root() / "dockerfiles" / "fp4_objects.py"
GENCODE = "-gencode arch=compute_{0},code=sm_{0}"
LIBRARY = """
#include "cutlass/numeric_conversion.h"
extern "C" __global__ void scaled_mm(const float* a, float* b) { b[threadIdx.x] = 2 * a[threadIdx.x]; }
"""
"""Includes the library's conversions, and uses none: as vLLM's kernels for older GPUs do."""


@dataclass(frozen=True)
class Run:
    """What the script printed and wrote."""

    status: int
    names: list[str]
    errors: str
    record: dict[str, dict[str, Any]]
    """Rows of the record by the name of the source's file."""


@pytest.fixture(scope="module")
def tree(pristine_tree: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is compiled of a vLLM, of these tests' own: some add a source."""
    upstream, copy = pristine_tree("vllm", "0.33.0"), tmp_path_factory.mktemp("objects") / "vllm"
    for folder in ("csrc", "cmake"):
        shutil.copytree(upstream / folder, copy / folder)
    for name in {"CMakeLists.txt", "PKG-INFO", "setup.py", *load().target("vllm").marks}:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(upstream / name, copy / name)
    return copy


def configured(build: Path, options: str, *sources: Path) -> Path:
    """A build directory with a further command for each source file, as CMake writes them for Ninja."""
    build.mkdir(exist_ok=True)
    commands = build / "compile_commands.json"
    entries = json.loads(commands.read_text()) if commands.exists() else []
    entries += [
        {
            "directory": str(build),
            "command": f"nvcc {options} -isystem {find_toolchain().root}/include -x cu -c {source} -o {source.stem}.o",
            "file": str(source),
            "output": f"{source.stem}.o",
        }
        for source in sources
    ]
    commands.write_text(json.dumps(entries))
    return build


def run(build: Path, gpus: str, *trees: Path) -> Run:
    record = build / "record.json"
    command = [sys.executable, *map(str, (SCRIPT, build, gpus, record, *trees))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = json.loads(record.read_text()) if record.exists() else []
    return Run(done.returncode, done.stdout.split(), done.stderr, {Path(row["source"]).name: row for row in rows})


def test_names_the_object_files_that_convert_and_writes_what_they_see(
    tree: Path, tmp_path: Path, pristine_tree: Callable[[str, str], Path]
) -> None:
    cutlass = pristine_tree("cutlass", "4.5.0")
    sources = [*(tree / "csrc/quantization").rglob("*.cu"), *(tree / "csrc").rglob("fused_minimax_m3*.cu")]
    sources = [source for source in sources if source.name != "marlin.cu"]  # includes what CMake generates
    folders = f"-I{tree}/csrc -I{cutlass}/include -I{cutlass}/tools/util/include"
    build = configured(tmp_path / "build", f"{folders} {GENCODE.format('121a')}", *sources)
    made = run(build, "sm_121", tree)
    assert made.status == 0, made.errors
    assert {
        "nvfp4_quant_kernels.cu",
        "nvfp4_experts_quant.cu",
        "activation_nvfp4_quant_fusion_kernels.cu",
        "fused_minimax_m3_qknorm_rope_kv_insert_kernel.cu",
    } <= set(made.record)
    assert all(row["converts"] and row["architectures"] == ["sm_121a"] for row in made.record.values())
    seen = made.record["nvfp4_quant_kernels.cu"]["sees"]
    assert [Path(path).name for path in seen] == ["nvfp4_utils.cuh"]
    assert made.names == sorted(row["name"] for row in made.record.values())
    assert 4 <= len(made.names) < len(sources) / 4


RUNS = {
    GENCODE.format("120a"): False,
    GENCODE.format("121"): False,
    GENCODE.format("89"): False,
    "-gencode arch=compute_121a,code=compute_121a": False,
    GENCODE.format("100a"): True,  # meant for another family
    GENCODE.format("120f"): True,
    "--generate-code=arch=compute_121a,code=[compute_121a,sm_121a]": True,
    "-arch=sm_121f": True,
}
"""Options of the compiler, and whether nothing is wrong with them in a build for GB10."""


def test_each_conversion_is_to_run_on_each_gpu(tree: Path, tmp_path: Path) -> None:
    source = next((tree / "csrc").rglob("nvfp4_quant_kernels.cu"))
    for number, options in enumerate(RUNS):
        case = Path(shutil.copy(source, source.with_name(f"case{number}.cu")))
        configured(tmp_path / "all", f"-I{tree}/csrc {options}", case)
        if RUNS[options]:
            configured(tmp_path / "right", f"-I{tree}/csrc {options}", case)
    family = configured(tmp_path / "family", f"-I{tree}/csrc {GENCODE.format('120f')}", source)
    wrong, right = (run(tmp_path / build, "sm_121", tree) for build in ("all", "right"))
    assert run(family, "sm_120,sm_121", tree).status == 0
    for number in range(len(RUNS)):
        source.with_name(f"case{number}.cu").unlink()
    assert (wrong.status, wrong.names) == (1, [])
    refused = [f"case{number}.cu is compiled for" in wrong.errors for number in range(len(RUNS))]
    assert refused == [not is_right for is_right in RUNS.values()]
    assert (right.status, right.names) == (0, [f"case{n}.o" for n, is_right in enumerate(RUNS.values()) if is_right])


@pytest.mark.parametrize(("arch", "status"), [("89", 0), ("121", 1)])
def test_a_source_for_older_gpus_that_includes_a_header_that_converts_is_not_lost(
    tree: Path, tmp_path: Path, pristine_tree: Callable[[str, str], Path], arch: str, status: int
) -> None:
    cutlass = pristine_tree("cutlass", "4.5.0")
    ours = tree / "csrc" / "ours.cu"
    ours.write_text(LIBRARY)
    build = configured(tmp_path / "build", f"-I{cutlass}/include {GENCODE.format(arch)}", ours)
    made = run(build, "sm_121", tree, cutlass)
    ours.unlink()
    assert made.status == status, made.errors
    assert (made.record["ours.cu"]["converts"], made.record["ours.cu"]["itself"]) == (True, False)


def test_a_build_without_fp4_files_is_refused(tree: Path, tmp_path: Path) -> None:
    source = next((tree / "csrc").rglob("layernorm_kernels.cu"))
    made = run(configured(tmp_path / "build", f"-I{tree}/csrc {GENCODE.format('121a')}", source), "sm_121", tree)
    assert made.status == 1
    assert "this build leaves the FP4 kernels out" in made.errors


def test_an_include_that_no_directory_has_is_found(
    tree: Path, tmp_path: Path, pristine_tree: Callable[[str, str], Path]
) -> None:
    """A CUTLASS of headers alone, under vLLM's MLA kernel, which includes two files of examples/."""
    cutlass, examples = pristine_tree("cutlass", "4.5.0"), tmp_path / "examples"
    mla = next((tree / "csrc").rglob("sm100_cutlass_mla_kernel.cu"))
    folders = f"-I{tree}/csrc -I{cutlass}/include -I{examples}/77_blackwell_fmha -I{examples}/common"
    build = configured(tmp_path / "build", f"{folders} {GENCODE.format('100a')}", mla)
    made = run(build, "sm_100", tree, cutlass)
    assert made.status == 1
    assert "includes gather_tensor.hpp, which is not there; of its directories, there is no" in made.errors
    assert "includes common/pow_2.hpp" in made.errors
    for name in ("common/gather_tensor.hpp", "77_blackwell_fmha/common/pow_2.hpp"):
        (examples / name).parent.mkdir(parents=True, exist_ok=True)
        (examples / name).touch()
    assert "which is not there" not in run(build, "sm_100", tree, cutlass).errors
