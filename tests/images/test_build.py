"""Tests of ``fp4patch build`` with a real engine on the smallest base there is, and of its checks before the build."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Said
from processes import becomes, running

from fp4patch.catalog.manifest import DATA, data_root, load
from variants import VARIANTS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ENDLESS = b"sleep\x0086399"


Tiny = Callable[..., list[str | Path]]


@pytest.fixture
def tiny(
    engine: dict[str, str], tiny_base: str, real_proof: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tiny]:
    """``tiny("--json", buildx=["--tag", "a"])``: a build by the tiny Dockerfile, which takes a real proof."""
    data = tmp_path / "data"
    (data / "dockerfiles").mkdir(parents=True)
    for part in DATA:
        (data / part).symlink_to(data_root() / part)
    shutil.copy(HERE / "tiny.Dockerfile", data / "dockerfiles" / "Dockerfile")
    shutil.copy(data_root() / "dockerfiles" / "fp4_objects.py", data / "dockerfiles")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    own = ["build", "--variant", "next2", "--arch", "12.1a", "--cutlass", "4.2.1"]
    base = ["--build-arg", f"BASE_IMAGE={tiny_base}", "--network", "host", "--build-context", f"made={real_proof}"]
    yield lambda *options, buildx=(): [*own, *options, "--", *base, *buildx]
    assert list(temporary.iterdir()) == []  # no context is left behind, whatever came of the build


TAG = f"fp4patch-test:{os.getpid()}"


@pytest.fixture(autouse=True, scope="module")
def images() -> Iterator[None]:
    yield
    if shutil.which("docker"):
        listed = subprocess.run(
            ["docker", "images", "-q", "fp4patch-test"], capture_output=True, text=True, check=False
        )
        for image in set(listed.stdout.split()):
            subprocess.run(["docker", "rmi", "-f", image], capture_output=True, check=False)


def docker(*words: str, **more: Any) -> str:
    return str(subprocess.run(["docker", *words], check=True, capture_output=True, text=True, **more).stdout)


def test_builds_an_image_that_says_what_it_is_and_whose_proof_holds(
    capfd: pytest.CaptureFixture[str], tiny: Tiny
) -> None:
    built = Said(capfd, *tiny("--json", buildx=["--tag", TAG]))
    assert built.status == 0, built.err
    document = built.document
    (inspected,) = json.loads(docker("image", "inspect", TAG))
    assert document["image"] == inspected["Id"]
    assert document["labels"].items() <= inspected["Config"]["Labels"].items()
    assert document["seconds"] > 0

    # The labels name all the variant's patches, and this proof covers CUTLASS alone.
    looked = Said(capfd, "doctor", TAG, "--json")
    assert looked.status == 1
    assert failed(looked) == ["label io.fp4patch.patches"]
    assert docker("ps", "-aq", "--filter", f"ancestor={TAG}") == ""  # nothing was run, and nothing is left


def failed(looked: Said) -> list[str]:
    (proof,) = looked.document["proofs"]
    return [row["subject"] for row in proof["statements"] if row["verdict"] != "pass"]


def test_an_image_without_labels_and_proof_has_no_report_of_them(
    capfd: pytest.CaptureFixture[str], tiny_base: str
) -> None:
    assert Said(capfd, "doctor", tiny_base, "--json").document["proofs"] == []
    missing = Said(capfd, "doctor", "fp4patch-there-is-no-such-image")
    assert missing.status == 2
    assert "docker has no image of that name" in " ".join(missing.err.split())


def test_writes_the_proof_into_a_folder_that_can_be_inspected(
    capfd: pytest.CaptureFixture[str], tiny: Tiny, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    built = Said(capfd, *tiny("--target", "proof", "--output", out, "--json"))
    assert built.status == 0, built.err
    assert built.document["image"] == ""
    assert Said(capfd, "doctor", out).status == 0


def test_a_build_that_fails_ends_with_the_status_of_buildx(capfd: pytest.CaptureFixture[str], tiny: Tiny) -> None:
    built = Said(capfd, *tiny("--target", "wheel", "--json"))
    assert built.status == 1
    assert "this fails" in built.err  # the engine's own words, plain, since this is no terminal
    assert "the build of stage wheel failed (docker buildx ended with status 1)" in built.err
    assert built.document["state"] == "refused"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_engines_build_and_leaves_nothing(tiny: Tiny, stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "fp4patch", *map(str, tiny("--target", "kernels"))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if line.rstrip().endswith("this never ends") and "echo" not in line:
                break
        assert becomes(lambda: running(ENDLESS))  # on an engine whose processes are visible here
        process.send_signal(stop)
        assert process.stderr.read().rstrip().endswith("interrupted")
    assert process.returncode == 130
    assert becomes(lambda: not running(ENDLESS))


def test_the_dry_run_is_a_script_that_builds_the_same_image(
    capfd: pytest.CaptureFixture[str], tiny: Tiny, tmp_path: Path
) -> None:
    folder = tmp_path / "context of mine"
    said = Said(capfd, *tiny("--dry-run", "--context", folder, buildx=["--tag", f"{TAG}-script"]))
    assert said.status == 0
    assert "#   pins.json" in said.out
    ran = subprocess.run(["sh", "-e"], input=said.out, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert Said(capfd, *tiny(buildx=["--tag", TAG])).status == 0
    by_script, by_us = (json.loads(docker("image", "inspect", tag))[0] for tag in (f"{TAG}-script", TAG))
    assert by_script["RootFS"] == by_us["RootFS"]
    assert by_script["Config"]["Labels"] == by_us["Config"]["Labels"]


# --- without an engine -----------------------------------------------------------------------------------------------


def test_a_dry_run_asks_no_engine_and_writes_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    said = Said(capfd, "build", "--variant", "next3", "--arch", "12.1a", "--arch", "12.0a", "--dry-run", "--json")
    assert said.status == 0
    assert "TORCH_CUDA_ARCH_LIST=12.1a;12.0a" in said.document["command"]
    assert said.document["written"] is False
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_says_whose_compilers_a_platform_has(capfd: pytest.CaptureFixture[str]) -> None:
    said = Said(capfd, "build", "--arch", "12.1a", "--dry-run", "--", "--platform", "linux/arm64")
    assert "# note: on a node of linux/amd64 the compilers for linux/arm64 are its own" in said.out


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("archs", [("12.1a",), ("12.0a", "12.1a")], ids="+".join)
def test_every_variant_has_a_build_for_one_gpu_and_for_both(
    capfd: pytest.CaptureFixture[str], variant: str, archs: tuple[str, ...]
) -> None:
    options = [word for arch in archs for word in ("--arch", arch)]
    said = Said(capfd, "build", "--variant", variant, *options, "--dry-run", "--json")
    assert said.status == 0, said.err
    pins = load().variant(variant).image
    assert pins
    words = said.document["command"]
    assert f"TORCH_CUDA_ARCH_LIST={';'.join(archs)}" in words
    assert f"FP4_ARCH={','.join('sm_' + arch.replace('.', '') for arch in archs)}" in words
    assert {f"{name.upper()}_VERSION={release}" for name, release in pins.trees.items()} <= set(words)
    assert said.document["notes"] == []


def test_no_engine_is_one_sentence_with_a_remedy(
    capfd: pytest.CaptureFixture[str], engine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    said = Said(capfd, "build", "--variant", "next3", "--arch", "12.1a")
    assert said.status == 1
    assert said.err.startswith(
        "error: no docker engine responds: Cannot connect to the Docker daemon at unix:///no/such/"
    )
    assert "DOCKER_HOST" in said.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--variant", "next3"], "no architecture is named"),
        (["--variant", "nope", "--arch", "12.1a"], "there is no variant 'nope'"),
        (["--arch", "12.1a", "--output", "x", "--", "--push"], "--output writes files"),
        (
            ["--arch", "12.1a", "--", "--target", "x"],
            "--target, --output, --iidfile of docker buildx itself",
        ),
        (["--arch", "12.1a", "--", "--output=x"], "of docker buildx itself"),
        (["--arch", "12.1a", "--", "."], "'.' is no option of docker buildx"),
        (["--arch", "12.1a", "--", "--builder"], "--builder: expected one argument"),
        (["--arch", "12.1a", "--", "--build-arg", "VARIANT=native"], "fp4patch sets the build argument VARIANT itself"),
        (["--variant", "next3", "--arch", "12.1a", "--vllm", "0.20.0"], "may need another PyTorch than 2.14.0"),
        (["--variant", "next3", "--arch", "12.1a", "--cutlass", "/"], "is not a tree of NVIDIA CUTLASS"),
    ],
)
def test_mistakes_of_the_command_line_are_found_before_anything_is_asked(
    capfd: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    said = Said(capfd, "build", "--dry-run", *arguments)
    assert said.status == 2
    assert sentence in " ".join(said.err.split())


def test_a_local_vllm_says_itself_which_torch_it_needs(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = tmp_path / "vllm"
    for mark in load().target("vllm").marks:
        (tree / mark).parent.mkdir(parents=True, exist_ok=True)
        (tree / mark).touch()
    (tree / "pyproject.toml").write_text('[build-system]\nrequires = ["torch == 2.11.0"]\n')
    said = Said(capfd, "build", "--variant", "next3", "--arch", "12.1a", "--vllm", tree, "--dry-run", "--json")
    assert "TORCH_VERSION=2.11.0" in said.document["command"]
    assert f"vllm-tree={tree}" in said.document["command"]


def test_a_folder_that_holds_something_else_is_no_context(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    said = Said(capfd, "build", "--variant", "next3", "--arch", "12.1a", "--dry-run", "--context", tmp_path)
    assert said.status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_build_without_a_variant_takes_the_recommended_one_and_says_why(fp4patch: Callable[..., Said]) -> None:
    document = fp4patch("build", "--arch", "12.1a", "--dry-run", "--json").document
    assert "VARIANT=next3" in document["command"]
    (note,) = document["notes"]
    assert "next3" in note
    assert "hardware conversion" in note


@pytest.mark.parametrize("variant", VARIANTS)
def test_vllm_is_compiled_with_a_cutlass_that_is_whole(capfd: pytest.CaptureFixture[str], variant: str) -> None:
    """Archives of the package index hold headers; for those the pinned commit comes from git."""
    target, pins = load().target("cutlass"), load().variant(variant).image
    assert pins
    assert pins.trees["cutlass"] in target.commits
    partial = target.archive(pins.trees["cutlass"]) is not None
    for stage, whole in (("proof", False), ("kernels", True), ("runtime", True)):
        said = Said(capfd, "build", "--variant", variant, "--arch", "12.1a", "--target", stage, "--dry-run", "--json")
        words = json.loads(said.out)["command"]
        assert ("CUTLASS_FROM=git" in words) is (partial and whole), stage


def test_a_cutlass_of_headers_alone_is_refused_as_a_directory_and_comes_by_git_as_a_release(
    capfd: pytest.CaptureFixture[str], pristine_tree: Callable[[str, str], Path]
) -> None:
    tree = pristine_tree("cutlass", "4.5.0")
    command = ["build", "--variant", "next3", "--arch", "12.1a", "--dry-run", "--cutlass"]
    refused = Said(capfd, *command, str(tree))
    assert refused.status == 2
    assert "does not have CMakeLists.txt, examples/common" in " ".join(refused.err.split())
    assert Said(capfd, *command, str(tree), "--target", "proof").status == 0
    assert "CUTLASS_FROM=git" in Said(capfd, *command, "4.8.0").out


def test_arguments_of_the_dockerfile_that_are_given_are_in_the_pins_and_the_labels(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["BASE_IMAGE=mirror/cuda", "RUNTIME_IMAGE=mirror/run", "TORCH_VERSION=2.11.0", "PART=2/3"]
    words = [word for text in given for word in ("--build-arg", text)]
    command = ["build", "--arch", "12.1a", "--target", "part", "--dry-run", "--json"]
    said = Said(capfd, *command, "--context", tmp_path / "context", "--", *words).document
    assert said["command"][-10:-2] == words
    assert "org.opencontainers.image.base.name=mirror/run" in said["command"]
    pins = json.loads((tmp_path / "context" / "pins.json").read_text())
    assert (pins["base"], pins["runtime"], pins["torch"]) == (
        "mirror/cuda",
        "mirror/run",
        {"version": "2.11.0", "wheels": {}},
    )
