"""Trees that were crafted to harm the user who patches them: SECURITY.md's promises, line by line."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Said
from small_cutlass import CONVERTER, EPILOGUE, FILES, GUARD, checkout, everything, small_cutlass

from fp4patch.tree import files

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away and mount")
ALICE = 12345
PLANNED = (GUARD, CONVERTER, EPILOGUE)
"""Files that the patches of CUTLASS edit, listed here by hand."""
LOOKING = (
    ("status",),
    ("apply", "--variant", "next2", "--check"),
    ("apply", "--variant", "next2", "--dry-run", "--diff"),
    ("doctor",),
    ("verify", "--variant", "turbo", "--no-execute"),
)


@pytest.fixture
def tree(pristine_tree: GetTree, tmp_path: Path) -> Path:
    return small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def plant(tree: Path, files: dict[str, tuple[bytes, bytes]], **more: object) -> Path:
    """Write a receipt with the pristine bytes and the written bytes of each file."""
    blobs = tree / ".fp4patch/blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    for pristine, _ in files.values():
        (blobs / sha(pristine)).write_bytes(pristine)
    receipt = {
        "schema": 1,
        "fp4patch": "0.1.0",
        "target": "cutlass",
        "version": "4.2.1",
        "variant": "turbo",
        "patches": ["cutlass/e2m1-guard 1"],
        "files": {
            path: {"pristine_sha256": sha(p), "written_sha256": sha(w), "patches": []} for path, (p, w) in files.items()
        },
        **more,
    }
    (tree / ".fp4patch/receipt.json").write_text(json.dumps(receipt, indent=2, sort_keys=True) + "\n")
    return tree / ".fp4patch/receipt.json"


# --- what a receipt may name -----------------------------------------------------------------------------------------

ELSEWHERE = (
    ".git/hooks/post-checkout",
    ".GIT/hooks/post-checkout",
    "include/.git/config.h",
    "include/cutlass/.hidden.h",
    ".github/workflows/build.yml",
    "setup.py",
    "conftest.py",
    "CMakeLists.txt",
    "include/cutlass/another.h",
    "include/cutlass/numeric_conversion.h~",
    "csrc/kernel.cu",
    "../outside/victim.h",
    "include/\x1b[31m.h",
    f"include/{'x' * 5000}.h",
)


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: ascii(path)[:40])
def test_a_receipt_names_only_files_that_a_patch_is_about(fp4patch: Command, tree: Path, path: str) -> None:
    checkout(tree)
    plant(tree, {path: (b"#!/bin/sh\ntouch /tmp/owned\n", b"")})
    before = everything(tree.parent)
    for command in (("revert",), ("apply", "--variant", "next2"), ("status",)):
        said = fp4patch(*command, tree)
        assert said.status == 1
        assert "help: " in said.err
        assert "\x1b" not in said.err
    assert everything(tree.parent) == before


@pytest.mark.parametrize("make", ["link", "fifo", "folder", "link-to-folder", "sparse"])
@pytest.mark.parametrize("name", ["receipt.json", "blobs", ""])
def test_state_of_another_kind_is_refused_and_never_followed(
    fp4patch: Command, tree: Path, name: str, make: str
) -> None:
    if make == "sparse" and name in ("blobs", ""):
        pytest.skip("a directory has no size")
    outside = tree.parent / "outside"
    plant(outside, {GUARD: (b"theirs", b"")})
    place = tree / ".fp4patch" / name
    place.parent.mkdir(exist_ok=True)
    match make:
        case "link":
            place.symlink_to(outside / ".fp4patch/receipt.json")
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir(exist_ok=True)
        case "link-to-folder":
            place.symlink_to(outside / ".fp4patch" / (name if name == "blobs" else ""))
        case "sparse":
            with place.open("wb") as file:
                file.truncate(1 << 40)
    before = everything(outside)
    for command in (("status",), ("revert",)):
        said = fp4patch(*command, tree)
        assert said.status == (0 if make == "folder" and name in ("blobs", "") else 1), said.err
    assert everything(outside) == before


def as_alice(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", sys.executable, "-c"]
    code = f"import sys; sys.path[:0] = {sys.path!r}; from fp4patch.cli import main; main()"
    environment = {**os.environ, "HOME": "/nonexistent", "FP4PATCH_CACHE": "/nonexistent"}
    command += [code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")


@pytest.fixture
def alices(tree: Path) -> Iterator[Path]:
    """A tree of another user, where that user can reach it: pytest's own directories are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(shutil.copytree(tree, Path(folder).resolve() / "tree"))
        for path in (place, *place.rglob("*")):
            os.chown(path, ALICE, ALICE)
        yield place


@needs_root
def test_what_root_makes_in_a_users_tree_belongs_to_that_user(fp4patch: Command, alices: Path) -> None:
    assert fp4patch("apply", "--variant", "next3", alices).status == 0
    assert {path.lstat().st_uid for path in (alices, *alices.rglob("*"))} == {ALICE}
    (alices / GUARD).unlink()
    assert fp4patch("revert", alices).status == 0
    assert {path.lstat().st_uid for path in (alices, *alices.rglob("*"))} == {ALICE}
    if as_alice("status", alices).returncode == 0:  # where another user may run this Python at all
        assert fp4patch("apply", "--variant", "next3", alices).status == 0
        assert as_alice("revert", alices).returncode == 0


@needs_root
@pytest.mark.parametrize("there", ["gone", "there", "roots-own"])
def test_root_makes_no_file_of_a_users_bytes_with_more_rights(fp4patch: Command, alices: Path, there: str) -> None:
    written = (alices / GUARD).read_bytes()
    plant(alices, {GUARD: (b"#!/bin/sh\nid\n", written)})
    for path in (alices / ".fp4patch", *(alices / ".fp4patch").rglob("*")):
        os.chown(path, ALICE, ALICE)
    if there == "gone":
        (alices / GUARD).unlink()
    if there == "roots-own":  # as a hard link to a file of root's would be
        os.chown(alices / GUARD, 0, 0)
    assert fp4patch("revert", alices).status == 0
    for path in alices.rglob("*"):
        at = path.lstat()
        assert not at.st_mode & 0o7000
        assert at.st_uid == ALICE
        assert not at.st_mode & 0o022, "nobody else may write it"


# --- looking changes nothing -----------------------------------------------------------------------------------------


def interrupt(fp4patch: Command, tree: Path, at: str, *command: str) -> None:
    """Runs a command that stops, as if killed, at the first change of the disk with these words."""

    def step(what: str) -> None:
        if killed or at in what:
            killed.append(what)
            raise GeneratorExit  # which nothing catches, and which is no Exception

    killed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "step", step)
        with pytest.raises(GeneratorExit):
            fp4patch(*command, tree)


@pytest.mark.parametrize("at", ["", "create", "next.json to", ".float_subbyte.h.fp4patch-new to", "applied.json to"])
def test_looking_never_writes_also_where_a_command_was_interrupted(fp4patch: Command, tree: Path, at: str) -> None:
    if at:
        interrupt(fp4patch, tree, at, "apply", "--variant", "turbo")
    else:
        assert fp4patch("apply", "--variant", "turbo", tree).status == 0
    before = everything(tree)
    begun = ".fp4patch-new to" in at or "applied.json" in at
    for command in LOOKING:
        said = fp4patch(*command, tree)
        assert said.status in (0, 1), said.err
        assert everything(tree) == before, command
        if command[0] in ("status", "doctor"):
            assert ("a command was interrupted here" in " ".join(said.out.split())) is begun, said.out
    assert fp4patch("apply", "--variant", "turbo", tree).status == 0
    assert {path.name for path in (tree / ".fp4patch").iterdir()} == {".gitignore", "receipt.json", "blobs"}
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"


# --- what is printed -------------------------------------------------------------------------------------------------


def test_names_out_of_a_receipt_and_of_trees_do_not_steer_the_terminal(fp4patch: Command, tree: Path) -> None:
    evil = tree.rename(tree.with_name("\x1b]0;owned\x07\x9b31m\u202e\nerror: forged"))
    plant(evil, {GUARD: (b"x", (evil / GUARD).read_bytes())}, variant="\x1b[2Jturbo\r\n", version="\x1b[0m")
    commands = [("status",), ("apply",), ("apply", "--dry-run"), ("doctor",), ("revert",), ("apply", "--variant", "x")]
    for command in commands:
        said = fp4patch(*command, evil)
        assert said.status in (0, 1, 2), said.err
        for line in (said.out + said.err).splitlines():
            assert line.isprintable() or line == "", ascii(line)
            assert not line.startswith("error: forged")


# --- a fuzzer --------------------------------------------------------------------------------------------------------


NAMED = (*PLANNED, *PLANNED, *FILES, *ELSEWHERE, ".git/HEAD", "/etc/passwd", "include", "", ".", "..", "a\0b")
"""Names for receipts, the files that one may name twice as often."""


def _broken(rng: random.Random, value: Any) -> Any:
    """A document with something in it that is not what it was."""
    if rng.random() < 0.03:
        return rng.choice((None, True, -1, 10**400, 1e308, "", "\ud800", "\x1b[31m", [], {}, [[]], "x" * 5000, "../.."))
    if isinstance(value, dict):
        return {
            rng.choice((key, key, key + "x")) if rng.random() < 0.02 else key: _broken(rng, v)
            for key, v in value.items()
        }
    return [_broken(rng, one) for one in value] if isinstance(value, list) else value


@pytest.mark.usefixtures("toolchain")
def test_a_receipt_that_states_what_is_not_so_does_not_deceive(fp4patch: Command, tree: Path) -> None:
    """The file has its pristine bytes, and the receipt gives their hash as that of the patched ones."""
    assert fp4patch("apply", "--variant", "turbo", tree).status == 0
    receipt = tree / ".fp4patch/receipt.json"
    document = json.loads(receipt.read_text())
    recorded = document["files"][GUARD]
    (tree / GUARD).write_bytes((tree / ".fp4patch/blobs" / recorded["pristine_sha256"]).read_bytes())
    recorded["written_sha256"] = recorded["pristine_sha256"]
    receipt.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    assert fp4patch("apply", "--variant", "turbo", "--check", tree).status == 1
    said = fp4patch("verify", "--no-execute", tree)
    assert (said.status, "is not in the state of turbo" in " ".join(said.err.split())) == (1, True)


def test_hostile_receipts_change_nothing_but_planned_files(fp4patch: Command, tree: Path, tmp_path: Path) -> None:
    """The seeded oracle uses nothing of fp4patch but the list of files above: all else must stay unchanged."""
    rng = random.Random(15)
    checkout(tree)
    pristine = Path(shutil.copytree(tree, tmp_path / "pristine"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/victim.h").write_text("theirs")
    copies = {f".{Path(name).name}.fp4patch-{kind}" for name in PLANNED for kind in ("new", "old")}

    def planned(name: str) -> bool:
        top, _, inside = name.partition("/")
        ours = inside.split("/")[0] == ".fp4patch" or Path(inside).name in copies
        return top == "tree" and (inside in PLANNED or ours)

    refused = 0
    for _ in range(int(os.environ.get("FP4PATCH_HOSTILE", "100"))):
        shutil.rmtree(tree)
        shutil.copytree(pristine, tree, symlinks=True)
        contents = [b"theirs", b"", (tree / GUARD).read_bytes(), (tree / CONVERTER).read_bytes()]
        names = rng.choices((*NAMED, str(tree)), k=rng.randint(1, 3))
        files = {name: (rng.choice(contents), rng.choice(contents)) for name in names}
        receipt = plant(tree, files)
        if rng.random() < 0.5:
            receipt.write_text(json.dumps(_broken(rng, json.loads(receipt.read_text()))))
        if rng.random() < 0.5:
            text = receipt.read_text().replace('"target"', '"state": "applying", "target"')
            (tree / ".fp4patch" / rng.choice(("receipt.json", "next.json"))).write_text(text)
        if rng.random() < 0.3:
            victim = tree / rng.choice((".fp4patch/blobs", ".fp4patch/receipt.json", "include/cutlass/epilogue", GUARD))
            if victim.exists():
                shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
                victim.symlink_to(tmp_path / "outside" / rng.choice(("", "victim.h")))
        before = everything(tmp_path, planned)
        for command in rng.sample((("status",), ("revert",), ("apply",), ("apply", "--variant", "next3")), 3):
            said = fp4patch(*command, tree)
            assert said.status in (0, 1, 2), said.err
            assert all(line.isprintable() for line in said.err.splitlines()), ascii(said.err)
            assert everything(tmp_path, planned) == before
            refused += said.status == 1
        assert not any(path.lstat().st_mode & 0o7000 for path in tree.rglob("*"))
    assert refused > 60
