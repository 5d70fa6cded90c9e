"""Preflight checks of engines: fixed values for engines that are not here, and the real one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ImageError
from fp4patch.images import engine as preflight
from fp4patch.images import inspection, sources
from fp4patch.images.engine import GIB, check, estimate, look, notes
from fp4patch.images.image import Architectures, BuildRequest, Engine, Node, Outcome, Stage

SM121A = Architectures((Arch(12, 1, "a"),), (Arch(12, 1, "a"),), (Arch(12, 1),))
REQUEST = BuildRequest(
    variant="next3",
    archs=SM121A,
    trees={n: sources.release(load().target(n), v) for n, v in (("vllm", "0.33.0"), ("cutlass", "4.7.1"))},
    torch="2.14.0",
    base_image="base:1",
    runtime_image="runtime:1",
)
AMD64 = Node("one", True, ("linux/amd64", "linux/amd64/v2", "linux/386", "linux/arm64"))
ARM64 = Node("two", True, ("linux/arm64",))
LARGE = Engine(
    "28.5.2",
    "0.29.1",
    "docker",
    (AMD64,),
    architecture="amd64",
    memory=64 * GIB,
    disk=200 * GIB,
    root="/var/lib/docker",
)


def found(engine: Engine, request: BuildRequest = REQUEST, base: str = "") -> list[str]:
    return [f"{p.expected} | {p.found} | {p.help}" for p in check(engine, request, base=base)]


def test_a_large_engine_can_build_everything() -> None:
    assert found(LARGE) == []


def test_room_is_asked_for_by_stage() -> None:
    small = replace(LARGE, disk=30 * GIB, memory=4 * GIB)
    disk, memory = found(small)
    assert disk.startswith("80 GiB free for stage runtime | 30 GiB at /var/lib/docker")
    assert memory.startswith("8 GiB of memory")
    assert found(small, replace(REQUEST, target=Stage.KERNELS)) == []
    assert found(replace(LARGE, disk=None, memory=None)) == []  # another machine's, and not known


def test_an_emulated_platform_is_no_place_for_a_build_of_hours() -> None:
    arm = replace(REQUEST, platforms=("linux/arm64",))
    (said,) = found(LARGE, arm)
    assert "only emulates it" in said
    assert "docker buildx create --append" in said
    assert found(LARGE, replace(arm, target=Stage.SOURCES)) == []
    assert found(replace(LARGE, nodes=(AMD64, ARM64)), arm) == []
    (none,) = found(LARGE, replace(REQUEST, platforms=("linux/riscv64",), target=Stage.SOURCES))
    assert "emulates" not in none


def test_a_builder_that_was_never_started_is_not_judged_by_its_nodes() -> None:
    assert found(replace(LARGE, nodes=(Node("new", False, ()),)), replace(REQUEST, platforms=("linux/arm64",))) == []


def test_attestations_and_several_platforms_need_a_store_that_holds_them() -> None:
    (said,) = found(LARGE, replace(REQUEST, provenance="mode=max", sbom="true"))
    assert "(--provenance, --sbom)" in said
    assert "containerd" in said
    assert found(replace(LARGE, attests=True), replace(REQUEST, provenance="mode=max")) == []
    assert found(LARGE, replace(REQUEST, provenance="false")) == []
    elsewhere = replace(LARGE, driver="remote")
    assert found(elsewhere, replace(REQUEST, provenance="mode=max", outcome=Outcome.PUSH)) == []
    both = replace(REQUEST, platforms=("linux/amd64", "linux/arm64"))
    (said,) = found(replace(LARGE, nodes=(AMD64, ARM64)), both)
    assert "several platforms" in said


def test_the_classic_store_cannot_export_a_layer_cache_and_says_so_before_it_builds() -> None:
    exporting = replace(REQUEST, cache_to=("type=registry,ref=r,mode=max",))
    (said,) = found(LARGE, exporting)
    assert said.startswith("an image store that can export its layer cache (--cache-to type=registry,ref=r,mode=max)")
    assert found(replace(LARGE, attests=True), exporting) == []
    assert found(replace(LARGE, driver="remote"), exporting) == []
    assert found(LARGE, replace(REQUEST, cache_to=("type=inline",))) == []


def test_a_base_of_another_architecture_is_seen_before_a_shell_of_it_fails() -> None:
    (said,) = found(LARGE, base="arm64")
    assert "base:1 in the engine's store is for linux/arm64" in said
    assert found(LARGE, base="amd64") == []


def test_an_image_for_gb10_alone_on_amd64_is_noted() -> None:
    (note,) = notes(LARGE, REQUEST)
    assert "arm64" in note
    assert notes(LARGE, replace(REQUEST, platforms=("linux/arm64",))) == []
    assert notes(LARGE, replace(REQUEST, archs=replace(SM121A, gpus=(Arch(12, 0), Arch(12, 1))))) == []


@pytest.mark.parametrize(
    ("jobs", "gib", "minutes", "at_a_time"),
    [
        (20, 128, 25, 20),  # 394 core-minutes / 20, and 5 for the rest
        (1000, 128, 23, 1000),  # the longest step takes 17.7 minutes, however many cores there are
        (None, 8, 202, 2),  # 4 GiB for each compilation
        (None, 2, 399, 1),
    ],
)
def test_the_time_of_a_build_is_estimated_from_what_it_took(
    monkeypatch: pytest.MonkeyPatch, jobs: int | None, gib: int, minutes: int, at_a_time: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr(preflight, "host", lambda: "unix:///run/docker.sock")
    (said,) = estimate(replace(LARGE, memory=gib * GIB), replace(REQUEST, jobs=jobs))
    assert said.startswith(f"about {minutes} minutes with {at_a_time} compilations at a time")


def test_a_build_elsewhere_or_of_another_stage_has_no_estimate() -> None:
    assert estimate(replace(LARGE, driver="remote"), REQUEST) == []
    assert estimate(LARGE, replace(REQUEST, target=Stage.KERNELS, jobs=20)) == []


# --- the real one ----------------------------------------------------------------------------------------------------


def test_the_engine_that_is_here_says_what_it_is(engine: dict[str, str]) -> None:
    here = look("", needs_engine=True)
    assert here.version
    assert here.architecture in ("amd64", "arm64")
    if here.driver == "docker":
        assert here.memory
        assert here.nodes[0].native.startswith(f"linux/{here.architecture}")


def test_the_architecture_of_a_base_is_read_from_the_engine(engine: dict[str, str], tiny_base: str) -> None:
    here = look("", needs_engine=True)
    assert preflight.architecture_of(tiny_base, here) == here.architecture
    assert preflight.architecture_of("fp4patch-there-is-no-such-image", here) == ""
    assert preflight.architecture_of(tiny_base, replace(here, driver="remote")) == ""


def test_a_builder_that_does_not_exist_is_named(engine: dict[str, str]) -> None:
    with pytest.raises(ImageError, match="there is no builder 'nobody'") as refused:
        look("nobody", needs_engine=False)
    assert "default" in refused.value.help


def test_the_engine_of_another_context_is_no_builder_and_it_says_how_to_use_it(
    engine: dict[str, str], tiny_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"fp4patch-test-{os.getpid()}"
    create = ["docker", "context", "create", name, "--docker", f"host={preflight.host()}"]
    subprocess.run(create, check=True, capture_output=True)
    try:
        with pytest.raises(ImageError, match=f"{name} is the engine of another docker context") as refused:
            look(name, needs_engine=True)
        assert f"set DOCKER_CONTEXT={name}" in refused.value.help
        here = look("", needs_engine=True)
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        monkeypatch.setenv("DOCKER_CONTEXT", name)
        there = look("", needs_engine=True)
        assert (there.root, there.disk is None) == (here.root, here.disk is None)
        assert inspection.of_image(tiny_base) is None  # it was found, and has neither labels nor a proof
    finally:
        subprocess.run(["docker", "context", "rm", "--force", name], check=True, capture_output=True)


def test_an_engine_that_does_not_answer_is_one_sentence(
    engine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    with pytest.raises(ImageError, match=r"^no docker engine responds at unix:///no/such/socket$"):
        look("", needs_engine=True)


def test_a_client_without_buildx_is_one_sentence(
    engine: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    if subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False).returncode == 0:
        pytest.skip("this machine's buildx is installed for everybody and cannot be taken away")
    with pytest.raises(ImageError, match="no buildx plugin") as refused:
        look("", needs_engine=True)
    assert "docker-buildx" in refused.value.help


def test_without_the_docker_command_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="no docker command") as refused:
        look("", needs_engine=True)
    assert "buildx" in refused.value.help
