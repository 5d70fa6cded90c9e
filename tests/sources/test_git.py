"""Git repositories: what is cloned and described, and what a hostile one cannot make happen."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ends, wait_for
from small_cutlass import checkout
from small_cutlass import git as run

from fp4patch.core.errors import SourceError
from fp4patch.sources import git


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    repo = tmp_path / "upstream"
    (repo / "include").mkdir(parents=True)
    (repo / "include/a.h").write_text("int a;\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("include/a.h")
    run(repo, "init", "-q", "-b", "main")
    run(checkout(repo), "tag", "v1.0")
    (repo / "include/a.h").write_text("int b;\n")
    run(repo, "commit", "-qam", "two")
    return repo


@pytest.mark.parametrize(("ref", "text"), [("v1.0", "int a;\n"), ("main", "int b;\n"), ("", "int a;\n")])
def test_a_tag_a_branch_and_a_commit_are_cloned(upstream: Path, tmp_path: Path, ref: str, text: str) -> None:
    commit = run(upstream, "rev-parse", ref or "v1.0").strip()
    git.clone(f"file://{upstream}", ref or commit, tmp_path / "tree")
    assert (tmp_path / "tree/include/a.h").read_text() == text
    assert git.head(tmp_path / "tree") == commit
    assert run(tmp_path / "tree", "rev-list", "--count", "HEAD") == "1\n"


def test_the_submodules_that_hold_what_is_named_come_along(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    run(outer, "init", "-q")
    for name in ("wanted", "whose", "other"):
        run(outer, "submodule", "--quiet", "add", f"file://{upstream}", f"3rdparty/{name}")
    run(outer / "3rdparty/wanted", "checkout", "-q", "v1.0")
    run(checkout(outer), "tag", "v2")
    git.clone(
        str(outer),
        "v2",
        tmp_path / "tree",
        submodules=["3rdparty/wanted", "3rdparty/whose/include", "3rdparty/oth", ""],
    )
    assert (tmp_path / "tree/3rdparty/wanted/include/a.h").read_text() == "int a;\n"
    assert (tmp_path / "tree/3rdparty/whose/include/a.h").is_file()
    assert not list((tmp_path / "tree/3rdparty/other").iterdir())


@pytest.mark.parametrize("url", ["ext::touch hacked", "ext://touch%20hacked", "fd::17"])
def test_an_url_runs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:fd:file")
    for act in (lambda: git.clone(url, "v1", Path("tree")), lambda: git.tags(url)):
        with pytest.raises(SourceError, match="protocol"):
            act()
    with pytest.raises(SourceError, match="protocol"):
        git.clone(url, "0" * 40, Path("tree"))
    assert not Path("hacked").exists()


@pytest.mark.parametrize("word", ["--upload-pack=touch hacked", "-u touch hacked", "--config=core.sshCommand=x"])
def test_a_name_is_no_option(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    for url, ref in ((word, "v1.0"), (str(upstream), word)):
        with pytest.raises(SourceError):
            git.clone(url, ref, Path("tree"))
    with pytest.raises(SourceError):
        git.tags(word)
    assert not Path("hacked").exists()


def test_what_is_not_there_is_said_in_gits_words(upstream: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"git cannot clone v9 of \S+: fatal: Remote branch v9 not found"):
        git.clone(str(upstream), "v9", tmp_path / "tree")
    with pytest.raises(SourceError, match=rf"git cannot clone {'0' * 40} of .*: .*not our ref"):
        git.clone(f"file://{upstream}", "0" * 40, tmp_path / "tree2")
    with pytest.raises(SourceError, match=r"git cannot list the tags of .*does not appear to be a git repository"):
        git.tags(str(tmp_path / "none"))
    assert git.tags(str(upstream)) == ("v1.0",)


def test_without_git_one_sentence_says_so(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="no git on PATH"):
        git.clone(str(upstream), "v1.0", tmp_path / "tree")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fetch_that_is_interrupted_leaves_nothing_and_no_git(upstream: Path, tmp_path: Path, number: int) -> None:
    pid, slow = tmp_path / "pid", tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec cat\n")
    slow.chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    words = ["fetch", "cutlass==9.9.9", str(place / "tree"), "--git", "ssh://host.invalid/x"]
    environ = os.environ | {"GIT_SSH_COMMAND": str(slow), "GIT_SSH_VARIANT": "ssh"}
    fetching = subprocess.Popen(
        [sys.executable, "-m", "fp4patch", *words],
        env=environ,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    transport = wait_for(pid)
    fetching.send_signal(number)
    assert fetching.wait(30) == 130
    assert list(place.iterdir()) == []
    assert ends(transport)
