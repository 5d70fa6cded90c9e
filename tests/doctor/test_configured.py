"""A configured build directory, by the description that CMake and extensions of PyTorch write of it."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cubins import CONVERTS, MULTIPLIES, compile_cuda, targets

from fp4patch import cli
from fp4patch.adapters import vllm
from fp4patch.core import process
from fp4patch.proof.toolchain import Toolchain

Doctor = Callable[..., tuple[int, dict[str, Any]]]
FLAGS = "--generate-code=arch=compute_{0},code=[sm_{0}]"


def project(root: Path) -> Path:
    """A project whose FP4 code is in a header."""
    (root / "include").mkdir(parents=True)
    (root / "include/fp4.cuh").write_text(f"#ifdef WITH_FP4\n{CONVERTS}{MULTIPLIES}\n#endif\n")
    (root / "kernel.cu").write_text("#include <fp4.cuh>\n")
    (root / "plain.cu").write_text("__global__ void add(float* x) { x[0] += 1; }\n")
    (root / "build").mkdir()
    return root


def commands(root: Path, **flags: str) -> Path:
    """Write compile_commands.json: the flags of each source."""
    entries = [
        {
            "directory": str(root / "build"),
            "command": f"nvcc -DWITH_FP4=1 -I{root}/include {given} -c {root}/{name}.cu -o {name}.o",
            "file": f"{root}/{name}.cu",
            "output": f"{name}.o",
        }
        for name, given in flags.items()
    ]
    (root / "build/compile_commands.json").write_text(json.dumps(entries))
    return root / "build"


@pytest.mark.parametrize(
    ("kernel", "plain", "on_120", "on_121"),
    [
        ("120f", "120f", "yes", "yes"),
        ("121a", "121a", "no", "yes"),
        ("120", "120", "no", "no"),
        ("100a", "120f", "no", "no"),  # another source does not make up for it
    ],
)
def test_each_source_is_judged_by_its_own_targets(
    doctor: Doctor, tmp_path: Path, kernel: str, plain: str, on_120: str, on_121: str
) -> None:
    build = commands(project(tmp_path / "p"), kernel=FLAGS.format(kernel), plain=FLAGS.format(plain))
    status, document = doctor("--cuda", "13.0", build)
    (found,) = document["projects"]
    assert {row["gpu"]: row["answer"] for row in found["gpus"]} == {"sm_120": on_120, "sm_121": on_121}
    assert status == (0 if (on_120, on_121) == ("yes", "yes") else 1)
    assert found["statements"] == {"conversion to E2M1": 1, "mma on E2M1": 1}


@pytest.mark.parametrize(
    ("flags", "answer", "says"),
    [
        (f"{FLAGS.format('120f')} {FLAGS.format('121')}", "no", "left out"),  # it loads the nearer one
        ("--generate-code=arch=compute_120f,code=[compute_120f]", "reservation", "PTX alone"),
        ("", "no", "left out"),  # PTX of sm_75, the default of CUDA 13
        ("-arch=compute_120f -code=sm_120f", "yes", ""),
        ("-code sm_121 -arch compute_121", "no", "left out"),
        ("-arch=sm_20 -arch=sm_121a", "not-judged", "sm_20 is not read"),
        ("--options-file here.rsp", "yes", ""),
        ("--options-file gone.rsp", "not-judged", "gone.rsp is not read"),
    ],
)
def test_a_command_is_read_as_nvcc_reads_it(doctor: Doctor, tmp_path: Path, flags: str, answer: str, says: str) -> None:
    build = commands(project(tmp_path / "p"), kernel=flags)
    (build / "here.rsp").write_text(FLAGS.format("121a"))
    (row,) = doctor("--for", "gb10", "--cuda", "13.0", build)[1]["projects"][0]["gpus"]
    assert row["answer"] == answer
    assert says in " ".join((row["verdict"], *row["evidence"]))


def test_its_description_is_the_build(doctor: Doctor, tmp_path: Path) -> None:
    build = commands(project(tmp_path / "p"), kernel=FLAGS.format("120f"), plain=FLAGS.format("120f"))
    status, document = doctor("--cuda", "13.0", build / "compile_commands.json")
    assert (status, document["projects"][0]["path"]) == (0, str(build))


def test_a_macro_of_the_command_decides(doctor: Doctor, tmp_path: Path) -> None:
    build = commands(project(tmp_path / "p"), kernel=FLAGS.format("120f"))
    text = (build / "compile_commands.json").read_text()
    (build / "compile_commands.json").write_text(text.replace("-DWITH_FP4=1", ""))
    (row,) = doctor("--for", "gb10", build)[1]["projects"][0]["gpus"]
    assert row["answer"] == "not-judged"
    assert "WITH_FP4" in " ".join(row["evidence"])


def test_after_the_build_its_objects_are_read_too(doctor: Doctor, toolchain: Toolchain, tmp_path: Path) -> None:
    build = commands(project(tmp_path / "p"), kernel=FLAGS.format("120f"))
    compile_cuda(toolchain, CONVERTS, build / "kernel.o", "-c", *targets("90a"))  # of an earlier configuration
    status, document = doctor("--for", "gb10", build)
    assert (status, document["projects"][0]["gpus"][0]["answer"]) == (1, "yes")
    assert document["binaries"][0]["answers"][0]["answer"] == "no"


NINJA = """root = {root}
gencode = -gencode=arch=compute_121a,code=sm_121a
cuda_cflags = -DWITH_FP4 -I$root/include $gencode
rule cuda_compile
  command = nvcc $cuda_cflags -c $in -o $out
build {root}/build/kernel.cuda.o: cuda_compile {root}/kernel.cu
rule compile
  command = g++ -c $in -o $out
build {root}/build/host.o: compile {root}/host.cpp
build all: phony {root}/build/host.o {root}/build/kernel.cuda.o
"""


def test_the_graph_of_an_extension_of_pytorch_is_read(doctor: Doctor, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    (root / "build/build.ninja").write_text(NINJA.format(root=root))
    (found,) = doctor("--cuda", "13.0", root / "build")[1]["projects"]
    assert {row["gpu"]: row["answer"] for row in found["gpus"]} == {"sm_120": "no", "sm_121": "yes"}


def test_what_cmake_and_ninja_write_is_read(doctor: Doctor, toolchain: Toolchain, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    shutil.rmtree(root / "build")
    (root / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX CUDA)\nadd_library(p kernel.cu plain.cu)\n"
        "target_include_directories(p PRIVATE include)\ntarget_compile_definitions(p PRIVATE WITH_FP4)\n"
    )
    command = [str(vllm.cmake()), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={process.located('ninja')}"]
    command += ["-S", str(root), "-B", f"{root}/build", "-DCMAKE_CUDA_ARCHITECTURES=121a-real"]
    command += [f"-DCMAKE_CUDA_COMPILER={toolchain.root}/bin/nvcc", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    environ = os.environ | {"LIBRARY_PATH": f"{toolchain.root}/lib"}
    subprocess.run(command, check=True, capture_output=True, env=environ)
    for name in ("compile_commands.json", "build.ninja"):  # the first is preferred
        (found,) = doctor("--for", "gb10", root / "build")[1]["projects"]
        assert found["gpus"][0]["answer"] == "yes", found
        assert found["settings"][0]["place"] == "2 CUDA sources"
        (root / "build" / name).unlink()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("CMakeCache.txt", "", "a build without compile_commands.json"),
        ("compile_commands.json", "[{", "its description is damaged"),
        ("compile_commands.json", '[{"file": "x.cu"}]', "its description is damaged"),
        ("build.ninja", "rule\n", "ninja does not read"),
    ],
)
def test_a_build_that_cannot_be_read_says_so(
    tmp_path: Path, name: str, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert cli.run(["doctor", str(tmp_path)]) == 1
    assert says in capsys.readouterr().err


def test_a_graph_without_ninja_names_both_ways_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build.ninja").write_text("")
    monkeypatch.setattr(process, "located", lambda _: None)
    assert cli.run(["doctor", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "there is none" in said
    assert "pip install 'fp4patch[doctor]'" in said
    assert "CMAKE_EXPORT_COMPILE_COMMANDS" in said
