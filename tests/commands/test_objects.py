"""`fp4patch objects` on a real vLLM: which object files a conversion reaches, before it is compiled."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cubins import compile_cuda, targets

from fp4patch.commands import main
from fp4patch.commands.objects.run import architectures
from fp4patch.core.arch import Arch
from fp4patch.proof.toolchain import Toolchain, find_toolchain

GENCODE = "-gencode arch=compute_{0},code=sm_{0}"


def configured(tree: Path, build: Path, *archs: str) -> Path:
    """A build directory with a command for each source file of the tree, as CMake writes them for Ninja."""
    flags = " ".join(GENCODE.format(arch) for arch in archs)
    build.mkdir()
    sources = sorted((tree / "csrc").rglob("*.cu"))
    entries = [
        {
            "directory": str(build),
            "command": f"nvcc -I{tree}/csrc -isystem /opt/torch/include {flags} -x cu -c {source} -o {source.stem}.o",
            "file": str(source),
            "output": f"{source.stem}.o",
        }
        for source in sources
    ]
    (build / "compile_commands.json").write_text(json.dumps(entries))
    return build


@pytest.fixture(scope="module")
def tree(pristine_tree: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vLLM of these tests' own: some add a source."""
    left_out = shutil.ignore_patterns("*.so", "*.json", "benchmarks", "tests")
    copy = tmp_path_factory.mktemp("objects") / "vllm"
    return Path(shutil.copytree(pristine_tree("vllm", "0.33.0"), copy, ignore=left_out))


def test_names_the_object_files_that_convert_or_see_a_patch(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = configured(tree, tmp_path / "build", "121a")
    assert main.run(["objects", "--build", str(build), "--for", "sm_121", "--json", str(tree)]) == 0
    found = {Path(o["source"]).name: o for o in json.loads(capsys.readouterr().out)["objects"]}
    assert {
        "nvfp4_quant_kernels.cu",
        "nvfp4_experts_quant.cu",
        "activation_nvfp4_quant_fusion_kernels.cu",
        "fused_minimax_m3_qknorm_rope_kv_insert_kernel.cu",
    } <= set(found)
    assert all(o["converts"] and o["architectures"] == ["sm_121a"] for o in found.values())
    assert found["nvfp4_quant_kernels.cu"]["sees"] == ["csrc/quantization/fp4/nvfp4_utils.cuh"]
    assert len(found) < len(list((tree / "csrc").rglob("*.cu"))) / 4

    assert main.run(["objects", "--build", str(build), "--names", str(tree)]) == 0
    assert "nvfp4_quant_kernels.o" in capsys.readouterr().out.splitlines()


def test_refuses_a_build_whose_conversions_would_not_run_where_they_are_asked_for(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, archs in {"other": ("120a",), "bare": ("121",)}.items():
        build = configured(tree, tmp_path / name, *archs)
        assert main.run(["objects", "--build", str(build), "--for", "sm_121", str(tree)]) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "nvfp4_quant_kernels.cu compiled for a target with a suffix that sm_121 loads" in said
        assert f"found machine code for sm_{archs[0]}" in said


LIBRARY = """
#include "cutlass/numeric_conversion.h"
extern "C" __global__ void scaled_mm(const float* a, float* b) { b[threadIdx.x] = 2 * a[threadIdx.x]; }
"""
"""Includes the library's conversions, and uses none: as vLLM's kernels for older GPUs do."""
USES = """
#include "cutlass/numeric_conversion.h"
using Floats = cutlass::Array<float, 8>;
using Bits = cutlass::Array<cutlass::float_e2m1_t, 8>;
extern "C" __global__ void quantize_fp4(const Floats* a, Bits* b) {
  b[threadIdx.x] = cutlass::NumericArrayConverter<cutlass::float_e2m1_t, float, 8>::convert(a[threadIdx.x]);
}
"""


@pytest.fixture
def with_library(tree: Path, tmp_path: Path, pristine_tree: Callable[[str, str], Path]) -> tuple[Path, Path, Path]:
    """A vLLM with a source of ours, a CUTLASS beside it, and a build directory that compiles the one with the other."""
    vllm, cutlass, build = tmp_path / "vllm", pristine_tree("cutlass", "4.5.0"), tmp_path / "build"
    shutil.copytree(tree, vllm, ignore=shutil.ignore_patterns("*.so", "*.json", "benchmarks", "tests"))
    build.mkdir()
    return vllm, cutlass, build


def command(with_library: tuple[Path, Path, Path], text: str, *archs: str) -> list[str]:
    vllm, cutlass, build = with_library
    source = vllm / "csrc/ours.cu"
    source.write_text(text)
    flags = " ".join(GENCODE.format(arch) for arch in archs)
    words = f"nvcc -std=c++17 -I{cutlass}/include {flags} -c {source} -o ours.o"
    compiled = configured(vllm, build / "known", "121a")
    commands = json.loads((compiled / "compile_commands.json").read_text())
    kept = [entry for entry in commands if Path(entry["file"]).name == "nvfp4_quant_kernels.cu"]
    kept.append({"directory": str(build), "command": words, "file": str(source), "output": "ours.o"})
    (build / "compile_commands.json").write_text(json.dumps(kept))
    return ["objects", "--build", str(build), "--for", "sm_121", str(vllm), str(cutlass)]


def test_a_source_that_is_meant_for_older_gpus_and_includes_a_header_that_converts_is_not_lost(
    with_library: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*command(with_library, LIBRARY, "89"), "--json"]) == 0
    found = {o["name"]: o for o in json.loads(capsys.readouterr().out)["objects"]}
    assert (found["ours.o"]["converts"], found["ours.o"]["itself"]) == (True, False)
    assert (found["nvfp4_quant_kernels.o"]["converts"], found["nvfp4_quant_kernels.o"]["itself"]) == (True, True)


@pytest.mark.parametrize(
    ("text", "archs", "status", "status_compiled"),
    [
        (LIBRARY, ["121"], 1, 0),  # it may convert: only the object file shows that it does not
        (USES, ["121"], 1, 1),
        (USES, ["120a"], 1, 1),
        (USES, ["121a"], 0, 0),
        (USES, ["100a"], 0, 0),
    ],
)
def test_what_the_object_file_holds_decides_where_it_is_there(
    with_library: tuple[Path, Path, Path],
    toolchain: Toolchain,
    text: str,
    archs: list[str],
    status: int,
    status_compiled: int,
) -> None:
    asked = command(with_library, text, *archs)
    assert main.run(asked) == status
    _, cutlass, build = with_library
    pinned = {"cutlass 4.5.0": cutlass / "include"}
    compile_cuda(toolchain, text, build / "ours.o", "-c", *targets(*archs), pinned=pinned)
    assert main.run(asked) == status_compiled
    os.utime(build / "ours.o", (1, 1))  # older than its command
    assert main.run(asked) == status


def test_a_source_that_converts_itself_and_is_compiled_for_older_gpus_is_lost(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = configured(tree, tmp_path / "build", "89")
    assert main.run(["objects", "--build", str(build), "--for", "sm_121", str(tree)]) == 1
    assert "nvfp4_quant_kernels.cu compiled for" in " ".join(capsys.readouterr().err.split())


def test_one_family_target_serves_both_gpus(tree: Path, tmp_path: Path) -> None:
    build = configured(tree, tmp_path / "build", "120f")
    assert main.run(["objects", "--build", str(build), "--for", "sm_120,sm_121", str(tree)]) == 0


def test_a_build_without_fp4_files_is_refused(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = configured(tree, tmp_path / "build", "121a")
    commands = json.loads((build / "compile_commands.json").read_text())
    kept = [entry for entry in commands if Path(entry["file"]).name == "cache_kernels.cu"]
    assert kept
    (build / "compile_commands.json").write_text(json.dumps(kept))
    assert main.run(["objects", "--build", str(build), "--for", "sm_121", str(tree)]) == 1
    assert "none: this build leaves the FP4 kernels out" in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_is_no_build_of_the_tree_is_refused(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "CMAKE_EXPORT_COMPILE_COMMANDS" in capsys.readouterr().err
    (tmp_path / "compile_commands.json").write_text("[]")
    assert main.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "configured from" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "compile_commands.json").write_text("[")
    assert main.run(["objects", "--build", str(tmp_path), str(tree)]) == 1


@pytest.mark.parametrize(
    "entry",
    [
        "not a command",
        {},
        {"directory": "/", "file": "csrc/cache_kernels.cu"},
        {"directory": "/", "file": "csrc/cache_kernels.cu", "command": 'nvcc "'},
        {"directory": "/", "file": "csrc/no_such_kernels.cu", "command": "nvcc -c x.cu -o x.o"},
    ],
)
def test_a_command_that_is_none_is_refused(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str | dict[str, str]
) -> None:
    if isinstance(entry, dict) and "directory" in entry:
        entry["directory"] = str(tree)
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    assert main.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "configure the build again" in " ".join(capsys.readouterr().err.split())


def test_gpus_that_do_not_exist_are_a_matter_of_usage(tree: Path, tmp_path: Path) -> None:
    assert main.run(["objects", "--build", str(tmp_path), "--for", "sm_x", str(tree)]) == 2


@pytest.mark.parametrize(
    ("command", "archs"),
    [
        ("nvcc -gencode arch=compute_121a,code=sm_121a -c a.cu", ["sm_121a"]),
        ("nvcc --generate-code=arch=compute_90,code=[compute_90,sm_90] -c a.cu", ["sm_90"]),
        ("nvcc '--generate-code=arch=compute_120f,code=[sm_120f]' -gencode arch=compute_121a,code=sm_121a", None),
        ("nvcc -gencode arch=compute_80,code=compute_80", []),
        ("nvcc -arch=sm_121f -c a.cu", ["sm_121f"]),
        ("nvcc -arch sm_100a -c a.cu", ["sm_100a"]),
    ],
)
def test_the_machine_code_that_a_command_asks_for(command: str, archs: list[str] | None) -> None:
    expected = ["sm_120f", "sm_121a"] if archs is None else archs
    assert architectures(command) == tuple(Arch.parse(arch) for arch in expected)


def compiled(tmp_path: Path, tree: Path, *commands: tuple[str, str]) -> Path:
    """A build directory in which each source is compiled with these options."""
    build = tmp_path / "build"
    build.mkdir()
    entries = [
        {"directory": str(build), "file": file, "output": f"{n}.o", "command": f"nvcc {options} -c {file} -o {n}.o"}
        for n, (file, options) in enumerate(commands)
    ]
    (build / "compile_commands.json").write_text(json.dumps(entries))
    return build


@pytest.fixture
def beside_cutlass(tree: Path, pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> tuple[Path, str, str, str]:
    """CUTLASS, the options to see it, a source of vLLM that only includes its conversion, and one that converts."""
    cutlass = pristine_tree("cutlass", "4.5.0")
    includes = tree / "csrc" / "only_includes.cu"
    includes.write_text('#include "cutlass/numeric_conversion.h"\n')
    converts = next((tree / "csrc").rglob("nvfp4_quant_kernels.cu"))
    return (
        cutlass,
        f"-I{tree}/csrc -I{cutlass}/include -isystem {find_toolchain().root}/include",
        str(includes),
        str(converts),
    )


def test_an_include_that_no_directory_has_is_found_before_anything_is_compiled(
    tree: Path, beside_cutlass: tuple[Path, str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CUTLASS of headers alone, under vLLM's MLA kernel, which includes two files of examples/."""
    cutlass, options, includes, _ = beside_cutlass
    mla = str(next((tree / "csrc").rglob("sm100_cutlass_mla_kernel.cu")))
    examples = tmp_path / "examples"  # beside the pristine tree, which other tests have too
    options += f" -I{examples}/77_blackwell_fmha -I{examples}/common {GENCODE.format('121a')}"
    # torch's headers are in angle brackets or below -isystem in a real build; this one includes one of vLLM's own.
    build = compiled(tmp_path, tree, (mla, options), (includes, options))
    command = ["objects", "--build", str(build), "--includes", str(tree), str(cutlass)]
    assert main.run(command) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "expected gather_tensor.hpp, which" in said
    assert "expected common/pow_2.hpp, which" in said
    assert "there is no " in said
    assert "clone of the release" in said
    for name in ("common/gather_tensor.hpp", "77_blackwell_fmha/common/pow_2.hpp"):
        (examples / name).parent.mkdir(parents=True, exist_ok=True)
        (examples / name).touch()
    assert main.run(command) == 0, capsys.readouterr().err
