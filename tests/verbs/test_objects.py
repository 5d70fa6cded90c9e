"""`fp4patch objects` on a real vLLM: which object files a conversion reaches, before it is compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.model.arch import Arch
from fp4patch.verbs.objects import architectures

GENCODE = "-gencode arch=compute_{0},code=sm_{0}"


def configured(tree: Path, build: Path, *archs: str) -> Path:
    """A build folder with a command for each source file of the tree, as CMake writes them for Ninja."""
    flags = " ".join(GENCODE.format(arch) for arch in archs)
    build.mkdir()
    sources = sorted((tree / "csrc").rglob("*.cu"))
    commands = [
        {
            "directory": str(build),
            "command": f"nvcc -I{tree}/csrc -isystem /opt/torch/include {flags} -x cu -c {source} -o {source.stem}.o",
            "file": str(source),
            "output": f"{source.stem}.o",
        }
        for source in sources
    ]
    (build / "compile_commands.json").write_text(json.dumps(commands))
    return build


@pytest.fixture
def tree(pristine_tree: Callable[[str, str], Path]) -> Path:
    return pristine_tree("vllm", "0.33.0")


def test_names_the_object_files_that_convert_or_see_a_patch(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = configured(tree, tmp_path / "build", "121a")
    assert cli.run(["objects", "--build", str(build), "--for", "sm_121", "--json", str(tree)]) == 0
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

    assert cli.run(["objects", "--build", str(build), "--names", str(tree)]) == 0
    assert "nvfp4_quant_kernels.o" in capsys.readouterr().out.splitlines()


def test_refuses_a_build_whose_conversions_would_not_run_where_they_are_asked_for(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, archs in {"other": ("120a",), "bare": ("121",)}.items():
        build = configured(tree, tmp_path / name, *archs)
        assert cli.run(["objects", "--build", str(build), "--for", "sm_121", str(tree)]) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "nvfp4_quant_kernels.cu compiled for a target with a suffix that sm_121 loads" in said
        assert f"found machine code for sm_{archs[0]}" in said


def test_one_family_target_serves_both_gpus(tree: Path, tmp_path: Path) -> None:
    build = configured(tree, tmp_path / "build", "120f")
    assert cli.run(["objects", "--build", str(build), "--for", "sm_120,sm_121", str(tree)]) == 0


def test_a_build_without_fp4_files_is_refused(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = configured(tree, tmp_path / "build", "121a")
    commands = json.loads((build / "compile_commands.json").read_text())
    kept = [entry for entry in commands if Path(entry["file"]).name == "cache_kernels.cu"]
    assert kept
    (build / "compile_commands.json").write_text(json.dumps(kept))
    assert cli.run(["objects", "--build", str(build), "--for", "sm_121", str(tree)]) == 1
    assert "none: this build leaves the FP4 kernels out" in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_is_no_build_of_the_tree_is_refused(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "CMAKE_EXPORT_COMPILE_COMMANDS" in capsys.readouterr().err
    (tmp_path / "compile_commands.json").write_text("[]")
    assert cli.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "configured from" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "compile_commands.json").write_text("[")
    assert cli.run(["objects", "--build", str(tmp_path), str(tree)]) == 1


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
    assert cli.run(["objects", "--build", str(tmp_path), str(tree)]) == 1
    assert "configure the build again" in " ".join(capsys.readouterr().err.split())


def test_gpus_that_do_not_exist_are_a_matter_of_usage(tree: Path, tmp_path: Path) -> None:
    assert cli.run(["objects", "--build", str(tmp_path), "--for", "sm_x", str(tree)]) == 2


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
