"""What is said of an engine before a build: fixed values for engines that are not here, and the real one."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fp4patch.core.errors import ImageError
from fp4patch.images import inspection
from fp4patch.images.engine import Node, check, host, nodes, notes
from fp4patch.images.image import BuildxOptions, Stage
from fp4patch.images.plan import plan

REQUEST = plan("next3", ["12.1a"])
FOR_ARM64 = replace(REQUEST, buildx=BuildxOptions(platforms=("linux/arm64",)))
ARM64, AMD64 = Node("linux/arm64"), Node("linux/amd64", ("linux/386",))
EMULATING = Node("linux/amd64", ("linux/amd64/v2", "linux/arm64"))


def test_vllm_is_not_compiled_by_emulated_compilers() -> None:
    for_amd64 = replace(REQUEST, buildx=BuildxOptions(platforms=("linux/amd64",)))
    there = Node("linux/arm64", ("linux/amd64",))
    (problem,) = check([there], for_amd64)
    assert "no compilers of its own" in problem.found
    assert "docker buildx create --append" in problem.help
    assert check([there], replace(for_amd64, target=Stage.PROOF)) == []
    assert check([there, AMD64], for_amd64) == []
    assert check([EMULATING], FOR_ARM64) == []  # the stage cross has compilers of its processor


def test_a_platform_that_no_node_runs_is_refused_before_the_build_reaches_it() -> None:
    for request in (FOR_ARM64, replace(FOR_ARM64, target=Stage.PROOF)):
        (problem,) = check([AMD64], request)
        assert "does not emulate it" in problem.found
        assert "qemu-user-static" in problem.help
        assert check([AMD64, ARM64], request) == []
        assert check([], request) == []  # a builder that was never started


def test_an_image_for_gb10_alone_on_amd64_is_noted() -> None:
    (note,) = notes([AMD64], REQUEST)
    assert "GB10 machines are arm64" in note
    assert notes([ARM64], REQUEST) == notes([ARM64], FOR_ARM64) == []
    assert notes([AMD64], plan("next3", ["12.0a", "12.1a"])) == []


def test_compilers_of_another_processor_than_the_image_s_are_noted_also_where_no_engine_was_asked() -> None:
    for found in ([EMULATING], []):
        (note,) = notes(found, FOR_ARM64)
        assert "on a node of linux/amd64 the compilers for linux/arm64 are its own" in note
    assert notes([EMULATING, ARM64], FOR_ARM64) == []


# --- the real one ----------------------------------------------------------------------------------------------------


def test_a_builder_that_does_not_exist_is_left_to_buildx(engine: dict[str, str]) -> None:
    assert nodes("nobody", needs_engine=False) == ()


def test_the_engine_of_another_context_is_found(
    engine: dict[str, str], tiny_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"fp4patch-test-{os.getpid()}"
    create = ["docker", "context", "create", name, "--docker", f"host={host()}"]
    subprocess.run(create, check=True, capture_output=True)
    try:
        here = nodes("", needs_engine=True)
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        monkeypatch.setenv("DOCKER_CONTEXT", name)
        assert nodes("", needs_engine=True) == here
        assert inspection.of_image(tiny_base) is None  # it was found, and has neither labels nor a proof
    finally:
        subprocess.run(["docker", "context", "rm", "--force", name], check=True, capture_output=True)


def test_without_the_docker_command_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="no docker command with a buildx plugin") as refused:
        nodes("", needs_engine=True)
    assert "buildx" in refused.value.help
