"""The composed command line: what each option becomes, in words and for a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.arch import Arch
from fp4patch.core.errors import UsageError
from fp4patch.images import command, sources
from fp4patch.images.image import Architectures, BuildRequest, Outcome, Source

BOTH = Architectures((Arch(12, 1, "a"), Arch(12, 0, "f")), (Arch(12, 1, "a"),), (Arch(12, 1), Arch(12, 0)))
VLLM, CUTLASS = load().target("vllm"), load().target("cutlass")
REQUEST = BuildRequest(
    variant="next3",
    archs=BOTH,
    trees={"vllm": sources.release(VLLM, "0.33.0"), "cutlass": sources.release(CUTLASS, "4.7.1")},
    torch="2.14.0",
    base_image="base:1",
    runtime_image="runtime:1",
)


def options(words: list[str], name: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == name]


def test_the_arguments_say_what_is_built_judged_and_scanned() -> None:
    words = command.compose(REQUEST, "ctx", progress="plain")
    assert words[:3] == ["docker", "buildx", "build"]
    assert dict(text.split("=", 1) for text in options(words, "--build-arg")) == {
        "BASE_IMAGE": "base:1",
        "RUNTIME_IMAGE": "runtime:1",
        "VARIANT": "next3",
        "VLLM_VERSION": "0.33.0",
        "CUTLASS_VERSION": "4.7.1",
        "GCC_VERSION": "13",
        "TORCH_VERSION": "2.14.0",
        "FP4_ARCH": "sm_121a",
        "FP4_FOR": "sm_121,sm_120",
        "TORCH_CUDA_ARCH_LIST": "12.1a;12.0f",
    }
    assert words[-2:] == ["--load", "ctx"]
    assert options(words, "--file") == ["ctx/Dockerfile"]
    assert options(words, "--target") == ["runtime"]


def test_the_base_is_never_pulled_again_and_the_result_goes_where_it_was_said() -> None:
    for outcome, said in ((Outcome.LOAD, "--load"), (Outcome.PUSH, "--push")):
        words = command.compose(replace(REQUEST, outcome=outcome), "ctx", progress="plain")
        assert said in words
        assert "--pull" not in words
    files = command.compose(replace(REQUEST, outcome=Outcome.OUTPUT, output=Path("out")), "ctx", progress="plain")
    assert options(files, "--output") == ["type=local,dest=out"]
    assert not {"--load", "--push"} & set(files)


def test_every_option_reaches_buildx() -> None:
    said = [
        *("--platform", "linux/arm64,linux/amd64", "--tag", "a:1", "-t=b:2", "--secret", "id=ca,src=x"),
        *("--network=host", "--build-context", "deps-tree=deps", "--cache-from", "type=registry,ref=c"),
        *("--cache-to", "type=registry,ref=c,mode=max", "--builder", "farm", "--provenance=mode=max"),
        *("--sbom", "true", "--ulimit", "nofile=1024"),
    ]
    request = replace(REQUEST, sccache=True, jobs=3, labels={"k": "v w"}, **command.handed_on(said, None))
    assert request.platforms == ("linux/arm64", "linux/amd64")
    words = command.compose(request, "ctx", progress="auto", metadata="m", iid="i")
    expected = {
        "--platform": ["linux/arm64,linux/amd64"],
        "--tag": ["a:1", "b:2"],
        "--secret": ["id=ca,src=x", "id=sccache_env,env=FP4PATCH_SCCACHE_ENV"],
        "--ulimit": ["nofile=1024"],
        "--build-context": ["deps-tree=deps"],
        "--cache-from": ["type=registry,ref=c"],
        "--cache-to": ["type=registry,ref=c,mode=max"],
        "--builder": ["farm"],
        "--provenance": ["mode=max"],
        "--sbom": ["true"],
        "--label": ["k=v w"],
        "--metadata-file": ["m"],
        "--iidfile": ["i"],
        "--progress": ["auto"],
    }
    assert {name: options(words, name) for name in expected} == expected
    assert "--network=host" in words
    assert {"MAX_JOBS=3", "COMPILER_CACHE=sccache"} <= set(options(words, "--build-arg"))


def test_the_shell_form_gives_a_shell_the_same_words() -> None:
    request = replace(REQUEST, labels={"title": "vLLM $HOME `x` 'y'"}, tags=("a:1",))
    words = command.compose(request, "my ctx", progress="plain")
    text = command.shell(words)
    ran = subprocess.run(
        ["sh", "-c", f"docker() {{ for word; do printf '%s\\0' \"$word\"; done; }}\n{text}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split("\0")[:-1] == words[1:]


def test_sccache_gets_its_own_settings_and_those_of_its_storage_and_no_others() -> None:
    environ = {"SCCACHE_BUCKET": "b c", "AWS_SECRET_ACCESS_KEY": "it's", "HOME": "/h", "GITHUB_TOKEN": "no"}
    text = command.sccache_environment(environ)
    assert [shlex.split(line) for line in text.splitlines()] == [
        ["export", "AWS_SECRET_ACCESS_KEY=it's"],
        ["export", "SCCACHE_BUCKET=b c"],
    ]
    assert command.sccache_environment({"AWS_REGION": "x"}) == ""
    assert command.sccache_environment({"SCCACHE_DIR": "/here"}) == ""  # a directory of this machine


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_shell_form_hands_in_the_same_settings_of_sccache(shell: str) -> None:
    path = {"PATH": os.environ["PATH"]}
    environ = {"SCCACHE_BUCKET": "b c", "AWS_SECRET_ACCESS_KEY": "it's", "SCCACHE_DIR": "/here", "HOME": "/h"} | path
    words = command.compose(replace(REQUEST, sccache=True), "ctx", progress="plain")
    secret = f"docker() {{ printf '%s\\n' \"${command.SCCACHE_SECRET}\"; }}\n{command.shell(words)}"
    handed = subprocess.run([shell, "-c", secret], capture_output=True, text=True, check=True, env=environ).stdout

    def means(settings: str) -> dict[str, str]:
        env = subprocess.run(["bash", "-c", f"{settings}\nenv"], capture_output=True, text=True, check=True, env=path)
        said = dict(line.split("=", 1) for line in env.stdout.splitlines())
        return {name: value for name, value in said.items() if name.startswith(command.SCCACHE_PREFIXES)}

    assert means(handed) == means(command.sccache_environment(environ))
    assert means(handed) == {"SCCACHE_BUCKET": "b c", "AWS_SECRET_ACCESS_KEY": "it's"}


# --- where trees come from -------------------------------------------------------------------------------------------


def test_a_pinned_release_carries_its_hash() -> None:
    assert set(sources.source(VLLM, "0.33.0", None).pin) == {"version", "archive", "sha256"}
    by_git = sources.source(CUTLASS, "4.7.1", None)
    assert by_git.context == ""
    assert by_git.pin["commit"] == CUTLASS.commits["4.7.1"]


@pytest.mark.parametrize("said", ["0.20.0", "v0.20.0"])
def test_another_release_is_fetched_in_the_build(said: str) -> None:
    found = sources.source(VLLM, "0.33.0", said)
    assert (found.version, found.context) == ("0.20.0", "")


def test_a_git_reference_becomes_a_build_context() -> None:
    assert sources.source(VLLM, "0.33.0", "main").context == f"{VLLM.git}#main"
    assert sources.source(VLLM, "0.33.0", "1a2b3c4").context == f"{VLLM.git}#1a2b3c4"
    said = "https://example.org/fork.git#fix"
    assert sources.source(VLLM, "0.33.0", said) == Source(
        context=said, pin={"git": "https://example.org/fork.git", "ref": "fix"}
    )


def test_a_local_tree_becomes_a_build_context_that_says_its_commit_and_not_its_path(tmp_path: Path) -> None:
    tree = tmp_path / "mine"
    for mark in CUTLASS.marks:
        (tree / mark).parent.mkdir(parents=True, exist_ok=True)
        (tree / mark).write_text("x\n")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    found = sources.source(CUTLASS, "4.7.1", str(tree))
    assert found.context == str(tree)
    assert (found.pin["local"], len(found.pin["commit"]), found.pin["changed"]) == ("mine", 40, "no")
    (tree / CUTLASS.marks[0]).write_text("y\n")
    assert sources.source(CUTLASS, "4.7.1", str(tree)).pin["changed"] == "yes"
    words = command.compose(replace(REQUEST, trees={"cutlass": found}), "ctx", progress="plain")
    assert options(words, "--build-context") == [f"cutlass-tree={tree}"]


def test_a_folder_that_is_no_such_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it has no"):
        sources.source(CUTLASS, "4.7.1", str(tmp_path))
