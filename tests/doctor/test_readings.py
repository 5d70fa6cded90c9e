"""What build files of people say: settings that are none, those of other builds, and files of every language."""

from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from test_projects import BOTH, Doctor, answers, write

from fp4patch.doctor import settings
from fp4patch.doctor.readings import grammar
from fp4patch.doctor.readings.grammar import NoReaderError

CUDA = Version("13.0")


def read(name: str, text: str) -> dict[str, str]:
    """Return the settings of a file that count for its own build, with their targets."""
    found = settings.read(name, text, CUDA)
    assert not found.unread
    return {f"{one.name} {one.value}": " ".join(map(str, (*one.code, *one.ptx))) for one in found.settings}


@pytest.mark.parametrize(
    "line",
    [
        'echo "set TORCH_CUDA_ARCH_LIST (for example 12.1a)"',
        'echo "ERROR: with $B TORCH_CUDA_ARCH_LIST is unset."',
        'kv() { printf "%s %s" "$1" "$2"; }; kv "TORCH_CUDA_ARCH_LIST" "${TORCH_CUDA_ARCH_LIST:-unset}"',
        "cat <<EOF\nexport TORCH_CUDA_ARCH_LIST=121a\nEOF",
        "# export TORCH_CUDA_ARCH_LIST=121a",
        "grep TORCH_CUDA_ARCH_LIST=121a setup.py",
        "log 'nvcc -gencode arch=compute_90,code=sm_90'",
        "git commit -m 'TORCH_CUDA_ARCH_LIST=121a'",
    ],
)
def test_what_is_printed_or_quoted_is_no_setting(line: str) -> None:
    assert read("build.sh", f"#!/bin/bash\n{line}\n") == {}
    if "\n" not in line and not line.startswith("#"):
        assert read("Dockerfile", f"FROM x\nRUN {line}\n") == {}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Dockerfile", "FROM x\nENV TVM_FFI_CUDA_ARCH_LIST=12.0f\n", {"TVM_FFI_CUDA_ARCH_LIST 12.0f": "sm_120f"}),
        ("Dockerfile", "FROM x\nENV NVTE_CUDA_ARCHS=120\n", {"NVTE_CUDA_ARCHS 120": ""}),
        ("build.toml", '[kernel.k]\ncuda-capabilities = ["12.0a"]\n', {"cuda-capabilities 12.0a": "sm_120a"}),
        (
            "build.toml",
            '[kernel.k]\ncuda-flags = ["-gencode=arch=compute_120a,code=sm_120a"]\n',
            {"-gencode arch=compute_120a,code=sm_120a": "sm_120a"},
        ),
        ("flake.nix", '{ cudaCapabilities = [ "12.0" "12.1a" ]; }', {"cudaCapabilities 12.0;12.1a": "sm_120 sm_121a"}),
        ("flake.nix", 'let a = [ "12.1" ]; in { gpuTargets = a; }', {"gpuTargets 12.1": "sm_121"}),
        ("package.py", 'depends_on("py-torch cuda_arch=120")\n', {"cuda_arch 120": ""}),
        ("x.eb", "cuda_compute_capabilities = ['12.0']\n", {"cuda_compute_capabilities 12.0": ""}),
        (
            "PKGBUILD",
            "build() {\n  cmake -DCMAKE_CUDA_ARCHITECTURES=120a-real\n}\n",
            {"CMAKE_CUDA_ARCHITECTURES 120a-real": "sm_120a"},
        ),
        (
            "recipe.yaml",
            "build:\n  script:\n    env:\n      TORCH_CUDA_ARCH_LIST: 12.1a\n",
            {"TORCH_CUDA_ARCH_LIST 12.1a": "sm_121a"},
        ),
        ("xmake.lua", 'add_cugencodes("sm_120a") -- add_cugencodes("sm_90")\n', {"add_cugencodes sm_120a": "sm_120a"}),
        (
            ".bazelrc",
            "build --repo_env=HERMETIC_CUDA_COMPUTE_CAPABILITIES=sm_80,compute_120\n",
            {"HERMETIC_CUDA_COMPUTE_CAPABILITIES sm_80,compute_120": "sm_80 sm_120 sm_120"},
        ),
        ("justfile", 'export TORCH_CUDA_ARCH_LIST := "12.1a"\n', {"TORCH_CUDA_ARCH_LIST 12.1a": "sm_121a"}),
        (
            "build.sh",
            "FLASHINFER_JIT_CACHE_PROVIDER_ARCH=12.1a python -m build\n",
            {"FLASHINFER_JIT_CACHE_PROVIDER_ARCH 12.1a": "sm_121a"},
        ),
        (
            "build.sh",
            "python3 scripts/build_wheel.py --cuda_architectures 120-real\n",
            {"--cuda_architectures 120-real": ""},
        ),
        (
            "build.sh",
            "nvcc -gencode arch=compute_120f,code=sm_120 x.cu\n",
            {"-gencode arch=compute_120f,code=sm_120": "sm_120f"},
        ),
    ],
)
def test_settings_of_every_language_are_read(name: str, text: str, expected: dict[str, str]) -> None:
    assert read(name, text) == expected


def test_a_list_for_another_project_in_the_same_run_is_not_this_ones() -> None:
    text = "FROM x\nRUN TORCH_CUDA_ARCH_LIST=9.0 pip install flash-attn && TORCH_CUDA_ARCH_LIST=12.1a pip install .\n"
    found = settings.read("Dockerfile", text, CUDA)
    assert [one.value for one in found.settings] == ["12.1a"]
    assert [(one.value, one.command) for one in found.others] == [("9.0", "pip install flash-attn")]


def project(doctor: Doctor, *arguments: str | Path) -> dict[str, Any]:
    _, document = doctor(*arguments)
    return document["projects"][0]  # type: ignore[no-any-return]


def test_a_variable_that_only_feeds_a_condition_is_no_list(doctor: Doctor, tmp_path: Path) -> None:
    text = (
        "archs = os.environ.get('MY_CUDA_ARCHS', '80;120').split(';')\nif '120' in archs:\n    sources.append('a.cu')\n"
    )
    root = write(tmp_path / "p", kernel__cu=BOTH, setup__py=text)
    assert set(answers(project(doctor, root)).values()) == {"not-judged"}


def test_a_list_does_not_count_beside_flags_of_the_projects_own(doctor: Doctor, tmp_path: Path) -> None:
    text = "from torch.utils.cpp_extension import CUDAExtension\nf = ['-gencode=arch=compute_90a,code=sm_90a']\n"
    root = write(tmp_path / "p", kernel__cu=BOTH, setup__py=text)
    (row,) = project(doctor, "--for", "gb10", "--arch-list", "12.1a", root)["gpus"]
    assert (row["answer"], "--arch-list" in row["todo"]) == ("not-judged", False)


def test_a_sed_on_a_file_of_the_project_is_followed_and_one_on_another_is_named(doctor: Doctor, tmp_path: Path) -> None:
    root = write(tmp_path / "p", kernel__cu=BOTH)
    (root / "CMakeLists.txt").write_text("set(CMAKE_CUDA_ARCHITECTURES 90)\n")
    (root / "Dockerfile").write_text("FROM x\nRUN sed -i 's/ARCHITECTURES 90/ARCHITECTURES 120f/' CMakeLists.txt\n")
    assert set(answers(project(doctor, root)).values()) == {"yes"}
    (root / "Dockerfile").write_text('FROM x\nRUN sed -i \'s/"10.0a"/"10.0a;12.1a"/\' /vllm/CMakeLists.txt.in\n')
    (finding,) = project(doctor, root)["findings"]
    assert (finding["subject"], "SM100" in finding["found"]) == ("Dockerfile:2", True)


def test_without_the_grammars_a_file_is_not_judged(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(language: str) -> None:
        raise NoReaderError(language)

    monkeypatch.setattr(grammar, "parser", missing)
    root = write(tmp_path / "p", kernel__cu=BOTH, Makefile="F = -arch=sm_120\n")
    (row,) = project(doctor, "--for", "gb10", root)["gpus"]
    assert row["answer"] == "not-judged"
    assert "fp4patch[doctor]" in " ".join(row["evidence"])
