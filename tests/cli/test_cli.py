"""The command line as its users and their scripts meet it: exit statuses, lists, help, completion."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot

from fp4patch import __version__

GetTree = Callable[[str, str], Path]


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply"],
        ["apply", "--variant", "nope", "TREE"],
        ["no-such-verb"],
        ["fetch", "cutlass", "x"],
        ["fetch", "nope==1", "x"],
        ["apply", "--variant", "next2", "--target-version", "four", "TREE"],
        ["show", "nope"],
        ["verify", "TREE"],
        ["apply", "TREE"],
    ],
)
def test_a_wrong_command_line_is_status_2(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, arguments: list[str]
) -> None:
    tree = str(pristine_tree("cutlass", "4.2.1"))
    said = fp4patch(*[tree if a == "TREE" else a for a in arguments])
    assert said.status == 2
    assert said.err
    assert not said.out


def test_a_bug_of_ours_is_status_3_and_shows_a_traceback_only_under_debug(
    fp4patch: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fp4patch.catalog.manifest.load", lambda: 1 / 0)
    said = fp4patch("list")
    assert said.status == 3
    assert "Traceback" not in said.err
    assert "bug of ours" in said.err
    assert "Traceback" in fp4patch("--debug", "list").err


def test_version_and_help(fp4patch: Callable[..., Said]) -> None:
    assert fp4patch("--version").out == f"fp4patch, version {__version__}\n"
    assert fp4patch("-h").out == fp4patch("--help").out
    assert fp4patch("apply", "-h").status == 0


def test_list_and_show_name_everything_in_text_and_json(fp4patch: Callable[..., Said]) -> None:
    document = fp4patch("list", "--json").document
    for kind in ("variants", "patches", "targets"):
        rows = fp4patch("list", kind, "--json").document
        assert rows == {"schema": 1, kind: document[kind]}
        for row in rows[kind]:
            assert row["name"] in fp4patch("list", kind).out
            assert fp4patch("show", row["name"], "--json").document["title"] == row["title"]
            assert row["title"] in fp4patch("show", row["name"]).out
    shown = fp4patch("show", "e2m1-guard", "--json").document
    assert shown["reason"]
    assert shown["link"].startswith("https://")
    assert shown["applies"]
    assert "next2" in shown["variants"]
    assert " ".join(shown["reason"].split()) in fp4patch("show", "e2m1-guard").out  # a pipe gets it whole


def test_the_matrix_of_patches_and_releases_is_shown_as_recorded(fp4patch: Callable[..., Said]) -> None:
    document = fp4patch("list", "patches", "--matrix", "--json").document
    shown = fp4patch("list", "patches", "--matrix").out
    states = {(r["target"], r["version"]): r["states"] for r in document["rows"]}
    assert states["cutlass", "4.7.0"]["cutlass/e2m1-converter"] == "upstreamed"
    assert states["cutlass", "4.0.0"]["cutlass/e2m1-guard"] == "not-needed"
    assert all(version in shown for _, version in states)
    assert "drifted" not in shown
    assert fp4patch("list", "variants", "--matrix").status == 2


@pytest.mark.parametrize("version", ["4.0.0", "4.2.1", "4.5.0"])
def test_the_recorded_matrix_is_what_the_real_trees_say(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, version: str
) -> None:
    (row,) = [
        r
        for r in fp4patch("list", "patches", "--matrix", "--json").document["rows"]
        if (r["target"], r["version"]) == ("cutlass", version)
    ]
    found = fp4patch("status", "--json", pristine_tree("cutlass", version)).document
    assert {p["patch"]: p["state"].replace("pristine", "applied") for p in found["patches"]} == row["states"]


def test_completion_offers_the_variants(tmp_path: Path) -> None:
    environ = os.environ | {
        "_FP4PATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": "fp4patch apply --variant t",
        "COMP_CWORD": "3",
    }
    code = "from fp4patch.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert {"plain,turbo", "plain,turbo2"} <= set(run.stdout.split())


def test_an_interrupt_is_status_130_and_leaves_the_tree_alone(tree_copy: GetTree, tmp_path: Path) -> None:
    """Another process holds the tree; ours waits for it, is interrupted, and says so."""
    import fcntl

    tree = tree_copy("cutlass", "4.2.1")
    before = snapshot(tree)
    held = os.open(tree, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    command = [sys.executable, "-m", "fp4patch", "apply", "--variant", "next2", str(tree)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert "waiting for another fp4patch" in process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    os.close(held)
    assert snapshot(tree) == before
