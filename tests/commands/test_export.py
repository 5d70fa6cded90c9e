"""``fp4patch export``: what upstream gets applies, has no name of ours, and compiles to what ``apply`` makes."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from small_cutlass import checkout, git, small_cutlass

from fp4patch.catalog.manifest import load

Run = Callable[..., Said]
GetTree = Callable[[str, str], Path]

VARIANTS = [name for name, variant in load().variants.items() if variant.targets["cutlass"].patches]


@pytest.fixture
def cutlass(pristine_tree: GetTree, tmp_path: Path) -> Path:
    return small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "cutlass")


@pytest.fixture
def exported(fp4patch: Run) -> Callable[..., dict[str, str]]:
    """``exported(tree, "next3", "--format", "quilt")``: the files by name."""

    def run(tree: Path, variant: str, *options: str | Path) -> dict[str, str]:
        said = fp4patch("export", "--variant", variant, *options, "--json", tree)
        assert said.status == 0, said.err
        return dict(said.document["files"])

    return run


def applied(tree: Path, fp4patch: Run, variant: str) -> dict[str, bytes]:
    """Return the files that apply writes, without their last line, by their path."""
    assert fp4patch("apply", "--variant", variant, tree).status == 0
    receipt = tree / ".fp4patch/receipt.json"  # a variant may have nothing to do in a release: then there is none
    files = json.loads(receipt.read_text())["files"] if receipt.exists() else ()
    return {name: b"".join((tree / name).read_bytes().splitlines(keepends=True)[:-1]) for name in files}


@pytest.mark.parametrize("variant", VARIANTS)
def test_git_am_takes_the_series_and_makes_of_a_clean_clone_what_apply_makes_of_it(
    cutlass: Path,
    exported: Callable[..., dict[str, str]],
    fp4patch: Run,
    tmp_path: Path,
    variant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = snapshot(cutlass)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada Lovelace")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ada@example.org")
    mails = exported(cutlass, variant)
    assert snapshot(cutlass) == before
    clone = checkout(small_cutlass(cutlass, tmp_path / "clone"))
    for name, text in mails.items():
        (tmp_path / name).write_text(text)
    if mails:
        git(clone, "am", "-q", *(str(tmp_path / name) for name in mails))

    ids = load().variant(variant).targets["cutlass"].patches
    patches = [patch for patch in load().patches_of(load().variant(variant), "cutlass") if patch.name in ids]
    log = git(clone, "log", "--reverse", "--format=%an|%s", f"-{len(mails)}").splitlines() if mails else []
    titles = [f"Ada Lovelace|{patch.title}" for patch in patches]
    assert [line for line in titles if line in log] == log
    ours = applied(cutlass, fp4patch, variant)
    theirs = {name: (clone / name).read_bytes() for name in ours}
    for old, new in ((b"fp4patch_", b"cutlass_"), (b"FP4PATCH_", b"CUTLASS_")):
        ours = {name: text.replace(old, new) for name, text in ours.items()}
    assert theirs == ours


def test_the_names_are_upstreams(exported: Callable[..., dict[str, str]], vllm: Callable[[str], Path]) -> None:
    diffs = exported(vllm("0.33.0"), "next3", "--format", "diff")
    assert not re.search("fp4patch", "".join(diffs.values()), re.IGNORECASE)
    (header,) = (text for name, text in diffs.items() if "e2m1-asm" in name)
    assert len(re.findall(r"^\+(?!\+\+ )", header, re.MULTILINE)) > 100


@pytest.mark.parametrize("form", ["git-am", "quilt", "diff"])
def test_every_form_is_the_same_bytes_each_time_and_patch_takes_it(
    cutlass: Path, exported: Callable[..., dict[str, str]], fp4patch: Run, tmp_path: Path, form: str
) -> None:
    first = exported(cutlass, "next2", "--format", form)
    copy = small_cutlass(cutlass, tmp_path / "copy")
    applied(cutlass, fp4patch, "turbo")
    assert exported(cutlass, "next2", "--format", form) == first, "also of a tree that is patched"
    names = [name for name in first if name.endswith((".patch", ".diff"))]
    assert [name[:5] for name in names] == ["0001-", "0002-"]
    if form == "quilt":
        assert first["series"] == "".join(f"{name} -p1\n" for name in names)
    for name in names:
        subprocess.run(["patch", "-p1", "-s"], input=first[name], text=True, cwd=copy, check=True)
    assert not list(copy.rglob("*.orig"))


def test_files_are_written_into_an_empty_directory_and_no_other(
    cutlass: Path, fp4patch: Run, exported: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    out = tmp_path / "series"
    said = fp4patch("export", "--variant", "next2", "--patch", "e2m1-guard", "-o", out, cutlass)
    assert said.status == 0
    assert "next2 for cutlass 4.2.1: 1 patches" in said.out
    assert {p.name: p.read_text() for p in out.iterdir()} == exported(cutlass, "next2", "--patch", "e2m1-guard")
    again = fp4patch("export", "--variant", "next2", "-o", out, cutlass)
    assert again.status == 1
    assert "is not empty" in again.err
    assert len(list(out.iterdir())) == 1


def test_a_mistake_is_one_sentence(cutlass: Path, fp4patch: Run) -> None:
    said = fp4patch("export", "--variant", "next2", "--patch", "e2m1-encode", cutlass)
    assert (said.status, said.out) == (2, "")
    assert "e2m1-encode is not a patch of next2" in said.err
