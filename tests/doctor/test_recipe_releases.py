"""Releases that recipes install: by their images, by pip, by git; and what is not certain about them."""

import os
from pathlib import Path

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from fp4patch import cli
from fp4patch.doctor import inputs, recipe_releases

VLLM = "https://github.com/vllm-project/vllm.git"
CUDA = "FROM nvidia/cuda:13.0.0-devel-ubuntu24.04\n"


def found(text: str, name: str = "Dockerfile") -> list[tuple[str, str, int, str]]:
    releases = recipe_releases.read(name, text)
    assert releases is not None
    return [(one.project, one.version, one.line, one.why) for one in releases]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM vllm/vllm-openai:v0.15.1\n", [("vllm", "0.15.1", 1, "")]),
        ("FROM docker.io/vllm/vllm-openai:v0.15.1@sha256:" + "0" * 64, [("vllm", "0.15.1", 1, "")]),
        ("ARG TAG=v0.15.1\nFROM vllm/vllm-openai:${TAG}\n", [("vllm", "0.15.1", 2, "")]),
        ("ARG TAG\nFROM vllm/vllm-openai:$TAG\n", [("vllm", "", 2, recipe_releases.NO_RELEASE)]),
        ("FROM vllm/vllm-openai:v0.15.1-cu130\n", [("vllm", "", 1, recipe_releases.OTHER_BUILD)]),
        ("FROM vllm/vllm-openai\n", [("vllm", "", 1, recipe_releases.NO_RELEASE)]),
        ("FROM ubuntu:24.04\n", []),
        ("ARG B=$A\nARG A=$B\nFROM $A\n", []),
        ("FROM nvcr.io/nvidia/pytorch:25.09-py3\n", [("nvcr.io/nvidia/pytorch:25.09-py3", "", 1, "an image")]),
        (
            "FROM vllm/vllm-openai:v0.11.0 AS a\nFROM lmsysorg/sglang:v0.5.6 AS b\nFROM a\n",
            [("vllm", "0.11.0", 1, ""), ("sglang", "", 2, recipe_releases.OF_ANOTHER_STAGE)],
        ),
        (f"{CUDA}RUN pip install vllm==0.11.0\n", [("vllm", "0.11.0", 2, "")]),
        ("FROM vllm/vllm-openai:v0.15.1\nRUN uv pip install vllm==0.16.0\n", [("vllm", "0.16.0", 2, "")]),
        (f"{CUDA}RUN pip install vllm==0.11.0 && pip install 'vllm==0.12.0'\n", [("vllm", "0.12.0", 2, "")]),
        (f"{CUDA}RUN pip install vllm\n", [("vllm", "", 2, inputs.UNPINNED)]),
        (f"{CUDA}ARG V\nRUN pip install vllm==$V\n", [("vllm", "", 3, "$V is not known")]),
        (f"{CUDA}ARG V=0.11.0\nRUN pip install vllm==$V\n", [("vllm", "0.11.0", 3, "")]),
        (f"{CUDA}RUN pip install --extra-index-url https://a.example vllm==0.11.0\n", [("vllm", "", 2, inputs.INDEX)]),
        (f"{CUDA}RUN pip install -i {PYPI_SIMPLE_ENDPOINT} vllm==0.11.0\n", [("vllm", "0.11.0", 2, "")]),
        (f"{CUDA}ENV PIP_INDEX_URL=https://a.example\nRUN pip install vllm==1\n", [("vllm", "", 3, inputs.INDEX)]),
        (f"{CUDA}RUN test -f a && pip install vllm==0.11.0 || true\n", [("vllm", "", 2, inputs.CONDITION)]),
        (f"{CUDA}RUN echo pip install vllm==0.11.0\n", []),
        (f"{CUDA}RUN pip install git+{VLLM}@v0.17.1\n", [("vllm", "0.17.1", 2, "")]),
        (f"{CUDA}RUN git clone -b v0.17.1 {VLLM}\n", [("vllm", "0.17.1", 2, "")]),
        (f"{CUDA}RUN git clone {VLLM} /src && cd /src && git checkout tags/v0.17.1\n", [("vllm", "0.17.1", 2, "")]),
        (f"{CUDA}RUN git clone {VLLM}\nRUN git -C vllm checkout v0.17.1\n", [("vllm", "0.17.1", 3, "")]),
        (f"{CUDA}RUN git clone {VLLM}\n", [("vllm", "", 2, "the newest commit is no release")]),
        (f"{CUDA}RUN git clone -b main {VLLM}\n", [("vllm", "", 2, "main is no release")]),
        (
            f"{CUDA}RUN git clone -b v0.17.1 https://github.com/someone/vllm\n",
            [("vllm", "", 2, "someone/vllm is a copy of the repository")],
        ),
        (
            f"{CUDA}RUN git clone -b v0.17.1 {VLLM} && cd vllm && git cherry-pick 0123456\n",
            [("vllm", "", 2, "its tree is changed by line 2: git cherry-pick 0123456")],
        ),
        (
            f"{CUDA}RUN git clone -b v0.17.1 {VLLM} && sed -i s/a/b/ vllm/CMakeLists.txt\n",
            [("vllm", "", 2, "its tree is changed by line 2: sed -i s/a/b/ vllm/CMakeLists.txt")],
        ),
        (
            f"{CUDA}ENV VLLM_USE_PRECOMPILED=1\nRUN git clone -b v0.17.1 {VLLM} && cd vllm && pip install .\n",
            [("vllm", "", 3, "its machine code is downloaded, and not compiled")],
        ),
    ],
)
def test_each_way_to_install_a_release(text: str, expected: list[tuple[str, str, int, str]]) -> None:
    given = found(text)
    assert [one[:3] for one in given] == [one[:3] for one in expected]
    assert all(
        why == wanted or (wanted and why.startswith(wanted))
        for (*_, why), (*_, wanted) in zip(given, expected, strict=True)
    )


COMPOSE = """\
services:
  one:
    image: vllm/vllm-openai:${TAG:-v0.11.0}
  two:
    image: vllm/vllm-openai:v0.15.1-aarch64
    command: ["sh", "-c", "pip install sglang==0.5.6 && python -m a"]
  three: {image: "postgres:16"}
"""


def test_services_have_their_images_and_commands() -> None:
    assert found(COMPOSE, "compose.yaml") == [
        ("vllm", "0.11.0", 3, ""),
        ("vllm", "0.15.1", 5, ""),
        ("sglang", "0.5.6", 6, ""),
    ]
    releases = recipe_releases.read("compose.yaml", COMPOSE)
    assert releases
    assert [one.machines for one in releases] == [inputs.MACHINES, ("aarch64",), inputs.MACHINES]


def test_a_clone_has_the_list_and_the_toolkit_of_its_build() -> None:
    build = "cd vllm && python use_existing_torch.py && pip install --no-build-isolation -e ."
    text = f"{CUDA}ENV TORCH_CUDA_ARCH_LIST=12.1a\nRUN git clone -b v0.17.1 {VLLM} && {build}\n"
    (one,) = recipe_releases.read("Dockerfile", text) or ()
    assert (one.is_built, one.arch_list, one.cuda) == (True, "12.1a", "13.0")


@pytest.mark.parametrize(
    ("tag", "archs", "status", "says"),
    [
        ("v0.17.1", "12.1a", 0, "✓ vllm==0.17.1: sm_121 yes: NVFP4 native, line 3 (git v0.17.1)"),
        ("v0.17.1", "12.0a", 0, "✓ vllm==0.17.1: sm_120 yes"),
        ("v0.17.1", "8.0", 1, "? vllm==0.17.1: line 3 (git v0.17.1): not judged, vllm==0.17.1 is not recorded for 8.0"),
        ("v0.15.1", "12.1a", 1, "not judged, vllm==0.15.1 is not recorded"),
    ],
)
def test_the_record_of_a_release_answers_for_its_tag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tag: str, archs: str, status: int, says: str
) -> None:
    text = f"{CUDA}ENV TORCH_CUDA_ARCH_LIST={archs}\nRUN git clone -b {tag} {VLLM} && cd vllm && pip install .\n"
    (tmp_path / "Dockerfile").write_text(text)
    assert cli.run(["doctor", str(tmp_path / "Dockerfile")]) == status
    assert says in " ".join(capsys.readouterr().out.split())


def test_packages_that_doctor_does_not_know_are_not_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Dockerfile").write_text(f"{CUDA}RUN pip install numpy==2.3.4\n")
    assert cli.run(["doctor", str(tmp_path / "Dockerfile")]) == 1
    assert "numpy" not in capsys.readouterr().out
    (tmp_path / "Dockerfile").write_text("FROM vllm/vllm-openai:latest\nRUN pip install numpy==2.3.4\n")
    assert cli.run(["doctor", str(tmp_path / "Dockerfile")]) == 1
    out = capsys.readouterr().out
    assert "name the image: fp4patch doctor vllm/vllm-openai:latest" in out
    assert "numpy" not in out


def test_a_pipe_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "Dockerfile")
    assert cli.run(["doctor", str(tmp_path / "Dockerfile")]) == 2
    assert "is no file and no directory" in capsys.readouterr().err


def test_docker_runs_an_image_in_a_script() -> None:
    text = "docker run --rm --gpus all -v $PWD/a:/b vllm/vllm-openai:v0.11.0 --model c\ndocker run ubuntu a\n"
    assert found(text, "serve.sh") == [("vllm", "0.11.0", 1, "")]


@pytest.mark.parametrize("text", ["", "\0\1\2", "FROM", "RUN", "FROM a AS a\nFROM a\nRUN git -C", "RUN git clone"])
def test_no_text_of_a_recipe_ends_it(text: str) -> None:
    for name in ("Dockerfile", "a.sh", "a.yml"):
        recipe_releases.read(name, text)


def test_aliases_of_yaml_are_not_multiplied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    file = tmp_path / "compose.yaml"
    file.write_text("\n".join(["a0: &a0 [{image: b, TORCH_CUDA_ARCH_LIST: 1}]", *levels]))
    assert recipe_releases.read("compose.yaml", file.read_text()) is None
    assert cli.run(["doctor", str(file)]) == 1
    assert "its aliases make it too large" in capsys.readouterr().out
    file.write_text("a: &a [*a]\nTORCH_CUDA_ARCH_LIST: 12.1a\n")
    assert cli.run(["doctor", str(file)]) == 1
