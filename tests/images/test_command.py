"""The composed command line: what each option becomes."""

from dataclasses import replace
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.errors import UsageError
from fp4patch.images import command
from fp4patch.images.image import BuildRequest, Stage
from fp4patch.images.plan import plan, source

VLLM, CUTLASS = load().target("vllm"), load().target("cutlass")
REQUEST = replace(plan("next3", ["12.1a", "12.0f"]), base_image="base:1", runtime_image="runtime:1")


def composed(request: BuildRequest = REQUEST, *words: str, **labels: str) -> list[str]:
    given = replace(request, buildx=command.buildx_options(words, request.output))
    return command.compose(given, "ctx", labels, iid=Path("i"))


def options(words: list[str], name: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == name]


def test_the_arguments_say_what_is_built_judged_and_scanned() -> None:
    words = composed(replace(REQUEST, archs=plan("turbo", ["12.1a", "12.0f"]).archs))  # which has no rules for 12.0f
    assert words[:3] == ["docker", "buildx", "build"]
    assert dict(text.split("=", 1) for text in options(words, "--build-arg")) == {
        "BASE_IMAGE": "base:1",
        "RUNTIME_IMAGE": "runtime:1",
        "VARIANT": "next3",
        "VLLM_VERSION": "0.33.0",
        "CUTLASS_VERSION": "4.7.1",
        "TORCH_VERSION": "2.14.0",
        "FP4_ARCH": "sm_121a",
        "FP4_FOR": "sm_121,sm_120",
        "TORCH_CUDA_ARCH_LIST": "12.1a;12.0f",
    }
    assert words[-2:] == ["--load", "ctx"]
    expected = {"--file": ["ctx/Dockerfile"], "--target": ["runtime"], "--iidfile": ["i"]}
    assert {name: options(words, name) for name in expected} == expected


def test_the_base_is_never_pulled_again_and_the_result_goes_where_it_was_said() -> None:
    assert "--load" not in composed(REQUEST, "--push", "--tag", "a:1")
    assert "--pull" not in composed()
    files = composed(replace(REQUEST, output=Path("out"), target=Stage.PROOF))
    assert options(files, "--output") == ["type=local,dest=out"]
    assert options(files, "--target") == ["proof-export"]
    assert not {"--load", "--push"} & set(files)


def test_every_word_reaches_buildx_behind_ours() -> None:
    given = [
        "--platform",
        "linux/arm64,linux/amd64",
        "--tag",
        "a:1",
        "-t=b:2",
        "--secret",
        "id=ca,src=x",
        "--network=host",
        "--build-context",
        "deps-tree=deps",
        "--builder",
        "farm",
        "--provenance=mode=max",
        "--build-arg",
        "BASE_IMAGE=mirror/base:1",
        "--build-arg=MAX_JOBS=3",
    ]
    read = command.buildx_options(given, None)
    assert (read.platforms, read.tags, read.builder) == (("linux/arm64", "linux/amd64"), ("a:1", "b:2"), "farm")
    assert read.arguments == {"BASE_IMAGE": "mirror/base:1", "MAX_JOBS": "3"}
    words = composed(REQUEST, *given, k="v w")
    at = words.index("--platform")
    assert words[at : at + len(given)] == given
    assert "k=v w" in options(words[:at], "--label")
    assert "BASE_IMAGE=base:1" in words[:at]  # buildx takes the last one


def test_a_pinned_release_carries_its_hash() -> None:
    assert set(REQUEST.trees["vllm"].pin) == {"version", "archive", "sha256"}
    by_git = REQUEST.trees["cutlass"]
    assert (by_git.folder, by_git.pin["commit"]) == ("", CUTLASS.commits["4.7.1"])


@pytest.mark.parametrize("named", ["0.20.0", "v0.20.0"])
def test_another_release_is_fetched_in_the_build(named: str) -> None:
    found = source(VLLM, named, whole=True)
    assert (found.version, found.folder) == ("0.20.0", "")


def test_a_local_tree_becomes_a_build_context_and_its_path_no_pin(tmp_path: Path) -> None:
    tree = tmp_path / "mine"
    for mark in CUTLASS.marks:
        (tree / mark).parent.mkdir(parents=True, exist_ok=True)
        (tree / mark).write_text("x\n")
    found = source(CUTLASS, str(tree), whole=False)
    assert (found.folder, found.pin) == (str(tree), {"local": "mine"})
    words = composed(replace(REQUEST, trees={"cutlass": found}))
    assert options(words, "--build-context") == [f"cutlass-tree={tree}"]


@pytest.mark.parametrize("named", ["main", "https://example.org/fork.git#fix"])
def test_a_repository_is_cloned_by_its_user(named: str) -> None:
    with pytest.raises(UsageError, match="neither a directory nor a release"):
        source(VLLM, named, whole=False)
