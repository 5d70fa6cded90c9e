"""Ends a command at each instant at which the disk changes (by SIGKILL, an error, Ctrl-C) and looks at what is left.

SIGKILL needs a process for each instant. Forking one from pytest, which has threads, is not sound; so the kill tests
run this file as a script, which has none.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.tree import files
from fp4patch.tree.fold import FoldedFile, FoldedTree
from fp4patch.tree.locked import LockedTree, locked
from fp4patch.tree.receipt import Receipt
from fp4patch.tree.write import stage, write

pytestmark = pytest.mark.slow

A, B = "include/cutlass/float_subbyte.h", "include/cutlass/arch/b.h"
C = "include/cutlass/gemm/new/deep/c.hpp"
"""A file that only a patch makes, with its directories."""
PRISTINE = {A: (b"a\r\n", 0o644), B: (b"b", 0o755), "README": (b"no header\n", 0o600)}
VARIANTS: dict[str | None, dict[str, bytes | None]] = {
    None: {},
    "turbo": {A: b"a\r\nturbo", B: b"bturbo", C: b"c"},
    "next2": {A: b"a\r\nnext2", B: None},
}
SCENARIOS = {
    "apply-one": (1, None, "turbo"),
    "apply-two": (2, None, "turbo"),
    "reapply-two": (2, "turbo", "next2"),
    "revert-two": (2, "turbo", None),
}
Snapshot = dict[str, tuple[bytes, int]]


def make_trees(base: Path, count: int) -> list[Path]:
    roots = [base / f"tree{i}" for i in range(count)]
    for root in roots:
        shutil.rmtree(root, ignore_errors=True)
        for path, (data, mode) in PRISTINE.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
            (root / path).chmod(mode)
    return roots


def trees_at(roots: Sequence[Path]) -> AbstractContextManager[Sequence[LockedTree]]:
    return locked([Identified(root, load().target("cutlass"), None) for root in roots])


def bring(roots: Sequence[Path], variant: str | None) -> None:
    """Act like apply and revert: stage the desired state of each tree, and write."""
    desired = {path: FoldedFile(data, ("cutlass/p 1",)) for path, data in VARIANTS[variant].items()}
    record = Receipt("0.1.0", "cutlass", "4.2.1", variant or "", (), {})
    with trees_at(roots) as trees:
        pristine = ({path: FoldedFile(tree.pristine(path)) for path in tree.on_record} for tree in trees)
        folds = (FoldedTree((), before | desired, (), (), ()) for before in pristine)
        staged = [stage(tree, fold, record) for tree, fold in zip(trees, folds, strict=True)]
        assert not any(change.problems for change in staged)
        write(staged)


def snapshot(root: Path) -> Snapshot:
    """Every file of a tree, without what fp4patch keeps there, but with what it may have left elsewhere."""
    found = (p for p in root.rglob("*") if p.is_file() and ".fp4patch" not in p.relative_to(root).parts)
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mode & 0o7777) for p in found}


def expected(variant: str | None) -> Snapshot:
    wanted = {path: VARIANTS[variant].get(path, data) for path, (data, _) in PRISTINE.items()} | VARIANTS[variant]
    modes = {path: mode for path, (_, mode) in PRISTINE.items()}
    return {path: (data, modes.get(path, 0o644)) for path, data in wanted.items() if data is not None}


def must_be(roots: Sequence[Path], variant: str | None) -> None:
    """Fails unless every tree is in the variant's state: by its receipt, by its bytes, and with no garbage."""
    with trees_at(roots) as trees:
        for tree in trees:
            assert (tree.receipt.variant if tree.receipt else None) == variant
            assert not tree.interrupted
            assert snapshot(tree.root) == expected(variant), f"{tree.root} is not as its receipt says"
            assert (tree.root / C).parent.parent.exists() == (C in VARIANTS[variant])
            kept = {str(p.relative_to(tree.root / ".fp4patch")) for p in (tree.root / ".fp4patch").rglob("*")}
            if tree.receipt is None:
                assert not (tree.root / ".fp4patch").exists(), f"traces: {kept}"
            else:
                assert {path: tree.pristine(path) for path in tree.receipt.files} == {
                    path: PRISTINE[path][0] if path in PRISTINE else None for path in VARIANTS[variant]
                }
                blobs = {f"blobs/{f.pristine_sha256}" for f in tree.receipt.files.values() if f.pristine_sha256}
                assert kept == {".gitignore", "receipt.json", "blobs", *blobs}


def begun_and_intact(roots: Sequence[Path], before: str | None, after: str | None) -> bool:
    """Fails unless each file has bytes that are known, and its mode. Returns whether a receipt says `applying`."""
    for root in roots:
        found = snapshot(root)
        for path in {*PRISTINE, C}:
            assert found.get(path) in {expected(variant).get(path) for variant in (before, after)}
        for path in set(found) - {*PRISTINE, C}:
            assert path.endswith(".fp4patch-new"), path
            assert found[path][1] in {0o644, *(mode for _, mode in PRISTINE.values())}, path
    with trees_at(roots) as trees:
        return any(tree.interrupted for tree in trees)


def at_step(number: int, do: Callable[[], None], *, also_later: bool = False) -> Callable[[str], None]:
    count = 0

    def step(_: str) -> None:
        nonlocal count
        count += 1
        if count == number or (also_later and count > number):
            do()

    return step


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory if there is one: thousands of renames make a disk's journal the slowest part."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder).resolve()


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def killed_at(number: int, command: Callable[[], None]) -> bool:
    """Runs the command in a child that dies before its n-th change of the disk; False if it made fewer, and ended."""
    child = os.fork()
    if child == 0:
        try:
            setattr(files, "step", at_step(number, lambda: os.kill(os.getpid(), signal.SIGKILL)))  # noqa: B010 - for mypy
            command()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"the command failed by itself: {status}"
    return status != 0


def kill_everywhere(scenario: str, base: Path) -> tuple[int, int]:
    """Kills a scenario's command at every step, and what completes it or takes it back at a step of its own.

    Returns the number of steps, and at how many of them a change had begun.
    """
    count, before, after = SCENARIOS[scenario]
    number = 0
    begun = 0
    killed = True
    while killed:
        number += 1
        for then in (after, None, "next2"):
            roots = make_trees(base, count)
            if before:
                bring(roots, before)
            killed = killed_at(number, lambda: bring(roots, after))  # noqa: B023 - called at once
            begun += begun_and_intact(roots, before, after)
            again = killed_at(1 + number * 7 % 23, lambda: bring(roots, then))  # noqa: B023
            bring(roots, then) if again else None
            must_be(roots, then)
            bring(roots, None)
            must_be(roots, None)
    return number - 1, begun // 3


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_after_a_kill_at_any_instant_apply_completes_and_revert_restores(scenario: str, scratch: Path) -> None:
    command = [sys.executable, "-B", __file__, scenario, str(scratch)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    steps, begun = map(int, run.stdout.split())
    assert steps > 10 * SCENARIOS[scenario][0]
    assert begun >= 2 * SCENARIOS[scenario][0]


# --- errors and signals ----------------------------------------------------------------------------------------------


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "here")


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(("do", "also_later"), [(no_space, False), (no_space, True), (interrupt, False)])
def test_an_error_or_ctrl_c_at_any_instant_leaves_all_as_it_was_or_a_change_to_complete(
    scenario: str, do: Callable[[], None], also_later: bool, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, before, after = SCENARIOS[scenario]
    number, unchanged = 0, 0
    error: BaseException | None = KeyboardInterrupt()
    while error:
        number += 1
        roots = make_trees(scratch, count)
        if before:
            bring(roots, before)
        error = None
        with monkeypatch.context() as patch:
            patch.setattr(files, "step", at_step(number, do, also_later=also_later))
            try:
                bring(roots, after)
            except (Fp4PatchError, KeyboardInterrupt) as raised:
                error = raised
        begun = begun_and_intact(roots, before, after)
        if do is no_space and error:
            assert "No space left on device" in str(error)
            assert not begun or not isinstance(error, Refused)
        if isinstance(error, Refused):
            assert not begun
            assert all(
                snapshot(root).get(path) == expected(before).get(path) for root in roots for path in (*PRISTINE, C)
            )
            if not also_later:  # then nothing can be tidied up
                unchanged += 1
                must_be(roots, before)
        bring(roots, after)
        must_be(roots, after)
    assert number > 10 * count
    assert unchanged > 5 or do is interrupt or also_later


if __name__ == "__main__":
    _, chosen, place = sys.argv
    os.fsync = lambda fd: None  # a kill loses nothing that was written; waiting for the disk would prove nothing
    print(*kill_everywhere(chosen, Path(place)))  # noqa: T201 - to the test above
