"""Ends a command at each instant at which the disk changes (by SIGKILL, an error, Ctrl-C) and looks at what is left.

SIGKILL needs a process for each instant. Forking one from pytest, which has threads, is not sound; so the kill tests
run this file as a script, which has none.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.tree import disk
from fp4patch.tree.locked import Desired, DesiredFile, Locked

pytestmark = pytest.mark.slow

PRISTINE = {"include/a.h": (b"a\r\n", 0o644), "include/deep/b.h": (b"b", 0o755), "README": (b"no header\n", 0o600)}
VARIANTS = {
    None: {},
    "turbo": {"include/a.h": b"a\r\nturbo", "include/deep/b.h": b"bturbo"},
    "next2": {"include/a.h": b"a\r\nnext2"},
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


def bring(roots: Sequence[Path], variant: str | None) -> None:
    """Act like apply and revert: stage the desired state of each tree, and commit."""
    files = {path: DesiredFile(data, ("cutlass/p 1",)) for path, data in VARIANTS[variant].items()}
    with Locked(roots) as locked:
        for tree in locked:
            assert not tree.stage(Desired("cutlass", "4.2.1", variant or "", (), files)).problems
        locked.commit()


def recover(root: Path) -> None:
    with Locked([root]):
        pass


def snapshot(root: Path) -> Snapshot:
    """Every file of a tree, without what fp4patch keeps there, but with what it may have left elsewhere."""
    files = (p for p in root.rglob("*") if p.is_file() and ".fp4patch" not in p.relative_to(root).parts)
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mode & 0o7777) for p in files}


def expected(variant: str | None) -> Snapshot:
    return {path: (VARIANTS[variant].get(path, data), mode) for path, (data, mode) in PRISTINE.items()}


def state_of(roots: Sequence[Path]) -> str | None:
    """The variant that every one of the trees is in: by its receipt, by its bytes, and with no garbage. Else fails."""
    with Locked(roots) as locked:
        states = {tree.receipt.variant if tree.receipt else None for tree in locked}
        assert len(states) == 1, f"some trees are before, some after: {states}"
        variant = states.pop()
        assert [tree.root for tree in locked] == list(roots)
        for tree in locked:
            root, receipt = tree.root, tree.receipt
            assert snapshot(root) == expected(variant), f"{root} is not as its receipt says"
            kept = {str(p.relative_to(root / ".fp4patch")) for p in (root / ".fp4patch").rglob("*")}
            if receipt is None:
                assert not (root / ".fp4patch").exists(), f"traces: {kept}"
            else:
                assert {tree.pristine(path) for path in receipt.files} == {PRISTINE[p][0] for p in receipt.files}
                blobs = {f"blobs/{f.pristine_sha256}" for f in receipt.files.values()}
                assert kept == {".gitignore", "receipt.json", "blobs", *blobs}
    return variant


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
            setattr(disk, "step", at_step(number, lambda: os.kill(os.getpid(), signal.SIGKILL)))  # noqa: B010 - for mypy
            command()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"the command failed by itself: {status}"
    return status != 0


def kill_everywhere(scenario: str, base: Path, *, recovery_too: bool) -> int:
    """Kills a scenario's command at every step; what the next command finds must be all before or all after."""
    count, before, after = SCENARIOS[scenario]
    seen = []
    number = 0
    while True:
        number += 1
        roots = make_trees(base, count)
        if before:
            bring(roots, before)
        killed = killed_at(number, lambda: bring(roots, after))  # noqa: B023 - called at once
        decided = any((root / ".fp4patch" / "committed.json").exists() for root in roots)
        first = roots[number % count]  # recovery may start from any of the trees, and mends all of them
        if recovery_too and killed:
            attempt = 1
            while killed_at(attempt, lambda: recover(first)):  # noqa: B023
                attempt += 1
        with Locked([first]) as some:
            recovered = some.recovered
        with Locked(roots) as rest:  # a tree that was finished already no longer records the others
            outcomes = {recovery.outcome for recovery in (*recovered, *rest.recovered)}
        seen.append(state_of(roots))
        if not recovery_too:
            assert outcomes <= {"completed" if seen[-1] == after else "rolled back"}
            assert not decided or outcomes == {"completed"}
        bring(roots, None)
        assert state_of(roots) is None
        if not killed:
            break
    assert seen == sorted(seen, key=lambda state: state == after), "once decided, always decided"
    assert {before, after} == set(seen)
    return number - 1


@pytest.mark.parametrize(
    ("scenario", "recovery_too"),
    [*((name, False) for name in SCENARIOS), ("apply-two", True), ("revert-two", True)],
    ids=lambda value: {True: "and-its-recovery-too", False: ""}.get(value, value),
)
def test_a_kill_at_any_instant_leaves_all_before_or_all_after(scenario: str, recovery_too: bool, scratch: Path) -> None:
    command = [sys.executable, "-B", __file__, scenario, str(scratch), "recovery" if recovery_too else ""]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 15 * SCENARIOS[scenario][0]


# --- errors and signals ----------------------------------------------------------------------------------------------


def every_step(
    scenario: str, base: Path, monkeypatch: pytest.MonkeyPatch, do: Callable[[], None], *, also_later: bool = False
) -> list[tuple[str | None, BaseException | None, bool]]:
    """Runs the scenario once for each step, with ``do`` at that step: the state after, what it raised, was it clean."""
    count, before, after = SCENARIOS[scenario]
    results: list[tuple[str | None, BaseException | None, bool]] = []
    error: BaseException | None = KeyboardInterrupt()
    while error:
        roots = make_trees(base, count)
        if before:
            bring(roots, before)
        error = None
        with monkeypatch.context() as patch:
            patch.setattr(disk, "step", at_step(len(results) + 1, do, also_later=also_later))
            try:
                bring(roots, after)
            except (Fp4PatchError, KeyboardInterrupt) as raised:
                error = raised
        with Locked(roots) as locked:
            clean = not locked.recovered
        results.append((state_of(roots), error, clean))
        bring(roots, None)
        assert state_of(roots) is None
    return results


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "here")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_error_at_any_instant_puts_everything_back_and_says_why(
    scenario: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before, after = SCENARIOS[scenario]
    results = every_step(scenario, scratch, monkeypatch, no_space)
    for state, error, clean in results[:-1]:
        assert "No space left on device" in str(error)
        if isinstance(error, Refused):
            assert state == before
            assert clean, "nothing was left to the next command"
        else:
            assert state == after, "only cleaning up may fail when all is decided"
    assert results[-1][:2] == (after, None)
    assert {state for state, _, _ in results} == {before, after}


@pytest.mark.parametrize("scenario", ["apply-one", "reapply-two"])
def test_a_disk_that_dies_at_any_instant_and_comes_back_leaves_all_before_or_all_after(
    scenario: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before, after = SCENARIOS[scenario]
    results = every_step(scenario, scratch, monkeypatch, no_space, also_later=True)
    assert {state for state, _, _ in results} == {before, after}


@pytest.mark.parametrize("scenario", ["apply-two", "revert-two"])
def test_ctrl_c_at_any_instant_undoes_or_finishes_and_then_interrupts(
    scenario: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before, after = SCENARIOS[scenario]
    results = every_step(scenario, scratch, monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
    assert all(isinstance(error, KeyboardInterrupt) and clean for _, error, clean in results[:-1])
    assert {state for state, _, _ in results} == {before, after}


if __name__ == "__main__":
    _, chosen, folder, mode = sys.argv
    os.fsync = lambda fd: None  # a kill loses nothing that was written; waiting for the disk would prove nothing
    print(kill_everywhere(chosen, Path(folder), recovery_too=bool(mode)))  # noqa: T201 - to the test above
