from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from fp4patch.core.errors import Refused
from fp4patch.tree import disk
from fp4patch.tree.locked import Desired, DesiredFile, Locked
from fp4patch.tree.receipt import ReceiptFile

A, B = "include/a.h", "include/b.h"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # what runs here runs there
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Two trees of two files."""
    trees = [tmp_path / "one", tmp_path / "two"]
    for root in trees:
        (root / "include").mkdir(parents=True)
        (root / A).write_bytes(b"pristine a\n")
        (root / B).write_bytes(b"pristine b\n")
        (root / B).chmod(0o755)
    return trees


def stage_all(locked: Locked, word: str, paths: Sequence[str] = (A, B)) -> None:
    """Stage each file with a word appended to its pristine bytes."""
    patches = ("cutlass/p 1",)
    for tree in locked:
        files = {path: DesiredFile((tree.pristine(path) or b"") + word.encode(), patches) for path in paths}
        tree.stage(Desired("cutlass", "4.2.1", word, patches, files))


def apply(roots: Sequence[Path], word: str = "turbo", paths: Sequence[str] = (A, B)) -> None:
    with Locked(roots) as locked:
        stage_all(locked, word, paths)
        locked.commit()


def revert(roots: Sequence[Path]) -> None:
    with Locked(roots) as locked:
        for tree in locked:
            tree.stage(Desired())
        locked.commit()


def everything(*roots: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every name below the roots: mode, and bytes or link target or nothing."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(p for root in roots for p in root.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else str(path.readlink()) if stat.S_ISLNK(mode) else ""
        found[str(path)] = (mode, content)
    return found


def refuses_and_leaves_all(roots: Sequence[Path], match: str) -> Refused:
    before = everything(*roots)
    with pytest.raises(Refused, match=match) as refused:
        apply(roots)
    assert everything(*roots) == before
    assert refused.value.help
    return refused.value


# --- what it does ---


def test_apply_then_revert_gives_every_byte_and_mode_back_and_no_trace(roots: list[Path]) -> None:
    before = everything(*roots)
    apply(roots)
    assert (roots[1] / B).read_bytes() == b"pristine b\nturbo"
    assert stat.S_IMODE((roots[1] / B).stat().st_mode) == 0o755
    with Locked(roots) as locked:
        tree = locked[roots[0]]
        assert tree.receipt
        assert tree.receipt.variant == "turbo"
        assert tree.pristine(A) == b"pristine a\n"
        assert tree.current(A) == b"pristine a\nturbo"
    revert(roots)
    assert everything(*roots) == before


def test_leaving_without_a_commit_changes_nothing(roots: list[Path]) -> None:
    before = everything(*roots)
    with Locked(roots) as locked:
        stage_all(locked, "turbo")
    assert everything(*roots) == before


def test_another_variant_over_the_first_is_as_if_the_first_had_never_been(roots: list[Path], tmp_path: Path) -> None:
    shutil.copytree(roots[0], tmp_path / "fresh")
    apply(roots, "turbo")
    apply(roots, "next2", [A])
    apply([tmp_path / "fresh"], "next2", [A])

    def undated(root: Path) -> list[object]:  # a second may end between two applies
        when = re.compile(rb'"applied_at": "[^"]+"')
        found = everything(root).values()
        return [(mode, when.sub(b"", one) if isinstance(one, bytes) else one) for mode, one in found]

    assert undated(roots[0]) == undated(tmp_path / "fresh")


def test_the_same_again_writes_nothing(roots: list[Path]) -> None:
    apply(roots)
    before = {path: path.stat().st_mtime_ns for root in roots for path in root.rglob("*")}
    apply(roots)
    assert {path: path.stat().st_mtime_ns for root in roots for path in root.rglob("*")} == before


def test_a_tree_named_twice_or_by_a_symlink_is_one_tree(roots: list[Path], tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(roots[0])
    with Locked([roots[0], tmp_path / "alias", roots[0]]) as locked:
        assert [locked[tmp_path / "alias"]] == list(locked)
        stage_all(locked, "turbo")
        locked.commit()
    assert (roots[0] / A).read_bytes() == b"pristine a\nturbo"


def test_modification_times_are_fresh_on_apply_and_on_revert_and_strictly_newer(roots: list[Path]) -> None:
    future = time.time_ns() + 3600 * 10**9
    os.utime(roots[0] / A, ns=(future, future))
    os.utime(roots[0] / B, ns=(10**18, 10**18))
    seen = [[(roots[0] / p).stat().st_mtime_ns for p in (A, B)]]
    started = time.time_ns()
    for act in (apply, revert, apply, revert):
        act(roots)
        seen.append([(roots[0] / p).stat().st_mtime_ns for p in (A, B)])
    for earlier, later in pairwise(seen):
        assert later[0] > earlier[0]
        assert later[1] > earlier[1]
    assert seen[1][1] > started - 10**9


def test_other_hard_links_of_a_file_keep_their_bytes(roots: list[Path], tmp_path: Path) -> None:
    shared = tmp_path / "package-cache.h"
    os.link(roots[0] / A, shared)
    inode = shared.stat()
    apply(roots)
    assert shared.read_bytes() == b"pristine a\n"
    assert shared.stat().st_mtime_ns == inode.st_mtime_ns
    assert not (roots[0] / A).samefile(shared)


def test_a_file_deleted_since_is_made_again_by_revert(roots: list[Path]) -> None:
    before = everything(*roots)
    apply(roots)
    (roots[0] / B).unlink()
    revert(roots)
    assert everything(*roots) == before


def test_git_sees_only_the_patched_files_and_after_revert_nothing(roots: list[Path]) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        run = subprocess.run(["git", *identity, *words], cwd=roots[0], capture_output=True, text=True, check=True)
        return run.stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "upstream")
    exclude = everything(roots[0] / ".git/info")
    apply(roots, paths=[A])
    assert git("status", "--porcelain", "--untracked-files=all") == f" M {A}\n"
    revert(roots)
    assert git("status", "--porcelain", "--untracked-files=all", "--ignored") == ""
    assert everything(roots[0] / ".git/info") == exclude


def test_the_receipt_says_what_every_file_was_and_is(roots: list[Path]) -> None:
    apply(roots, paths=[A])
    apply(roots, "next2")
    with Locked(roots) as locked:
        for tree in locked:
            assert tree.receipt
            assert tree.receipt.files == {
                path: ReceiptFile(
                    hashlib.sha256(pristine).hexdigest(),
                    hashlib.sha256((tree.root / path).read_bytes()).hexdigest(),
                    mode,
                    ("cutlass/p 1",),
                )
                for path, pristine, mode in ((A, b"pristine a\n", 0o644), (B, b"pristine b\n", 0o755))
            }


def test_a_file_that_is_staged_without_a_change_is_on_no_receipt(roots: list[Path]) -> None:
    before = everything(*roots)
    with Locked(roots) as locked:
        for tree in locked:
            pristine = {A: DesiredFile(tree.pristine(A), ("cutlass/p 1",))}
            assert not tree.stage(Desired("cutlass", "4.2.1", "turbo", (), pristine)).changed
        locked.commit()
    assert everything(*roots) == before


def test_an_undecided_file_is_left_and_makes_every_commit_a_bug_of_ours(roots: list[Path]) -> None:
    apply(roots)
    before = everything(*roots)
    with Locked(roots) as locked:
        staged = locked[roots[0]].stage(Desired(undecided=frozenset([A])))
        assert (list(staged.files), staged.receipt) == ([B], None)
        with pytest.raises(ValueError, match=A):
            locked.commit()
    assert everything(*roots) == before


# --- hostile trees ---


def test_refuses_all_when_one_file_is_read_only_and_names_every_one(roots: list[Path]) -> None:
    (roots[0] / A).chmod(0o444)
    (roots[1] / B).chmod(0o700)
    (roots[1] / A).chmod(0o440)
    refused = refuses_and_leaves_all(roots, "read-only file")
    assert [problem.file for problem in refused.problems] == [A, A]


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (lambda p: p.symlink_to("/etc/passwd"), "a symlink"),
        (os.mkfifo, "a named pipe"),
        (Path.mkdir, "a directory"),
        (lambda p: None, "none"),
    ],
)
def test_refuses_what_is_no_regular_file(roots: list[Path], place: Callable[[Path], None], found: str) -> None:
    (roots[1] / A).unlink()
    place(roots[1] / A)
    for path in (A, f"../one/{A}"):
        with Locked(roots) as locked:
            staged = locked[roots[1]].stage(Desired(files={path: DesiredFile(b"", ("cutlass/p 1",))}))
            (problem,) = staged.problems
            assert path != A or problem.found == found
            with pytest.raises(Refused, match="nothing was changed"):
                locked.commit()


@pytest.mark.parametrize(
    "make", [lambda p, out: p.symlink_to(out), lambda p, out: p.write_text("")], ids=["symlink", "file"]
)
@pytest.mark.parametrize("name", [".fp4patch", ".fp4patch/blobs"])
def test_refuses_state_that_leads_elsewhere(
    roots: list[Path], tmp_path: Path, name: str, make: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (roots[1] / name).parent.mkdir(exist_ok=True)
    make(roots[1] / name, outside)
    refuses_and_leaves_all(roots, "not a directory of fp4patch's making")
    assert not list(outside.iterdir())


@pytest.mark.parametrize("name", ["include/.a.h.fp4patch-new", ".fp4patch/.gitignore"])
def test_never_writes_through_a_symlink_planted_where_it_writes(roots: list[Path], tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (roots[0] / name).parent.mkdir(exist_ok=True)
    (roots[0] / name).symlink_to(victim)
    try:
        apply(roots)
    except Refused:
        assert (roots[0] / A).read_bytes() == b"pristine a\n"
    else:
        assert (roots[0] / A).read_bytes() == b"pristine a\nturbo"
    assert victim.read_text() == "untouched"


def test_a_file_edited_between_reading_and_writing_refuses_all(roots: list[Path]) -> None:
    before = everything(roots[0])
    with Locked(roots) as locked:
        stage_all(locked, "turbo")
        (roots[1] / A).write_text("an edit, just now")
        with pytest.raises(Refused, match="edited while we looked") as refused:
            locked.commit()
    assert [problem.file for problem in refused.value.problems] == [A]
    assert everything(roots[0]) == before
    assert (roots[1] / A).read_text() == "an edit, just now"
    assert not (roots[1] / ".fp4patch").exists()


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "damaged"])
def test_refuses_when_a_pristine_copy_is_lost(roots: list[Path], gone: bool) -> None:
    apply(roots)
    (blob, *_) = (roots[0] / ".fp4patch/blobs").iterdir()
    blob.unlink() if gone else blob.write_text("damaged")
    with pytest.raises(Refused, match="gone" if gone else "damaged"):
        revert(roots)


def test_refuses_when_the_receipt_is_lost_but_keeps_the_pristine_copies(roots: list[Path]) -> None:
    apply(roots)
    (roots[0] / ".fp4patch/receipt.json").unlink()
    refuses_and_leaves_all(roots, r"receipt\.json is gone")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"txid": "1", "primary": "", "roots": [1], "entries": []}',
        '{"txid": "1", "primary": "", "roots": [], "entries": [{"path": 1, "before": null, "after": null}]}',
        '{"txid": "1", "primary": "", "roots": [], "entries": [{}]}',
    ],
)
def test_refuses_a_damaged_journal(roots: list[Path], text: str) -> None:
    apply(roots)
    (roots[0] / ".fp4patch/journal.json").write_text(text)
    refuses_and_leaves_all(roots, "journal of an interrupted command, is damaged")


def test_a_tree_that_cannot_be_written_can_still_be_read(roots: list[Path]) -> None:
    apply(roots)
    folders = [p for p in [roots[0], *roots[0].rglob("*")] if p.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        with Locked(roots) as locked:
            assert locked[roots[0]].receipt
            assert locked[roots[0]].current(A) == b"pristine a\nturbo"
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_refuses_a_file_system_without_locks(roots: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    refuses_and_leaves_all(roots, "cannot be locked: No locks available")


def test_a_transaction_sees_what_it_committed(roots: list[Path]) -> None:
    with Locked(roots) as locked:
        stage_all(locked, "turbo")
        locked.commit()
        tree = locked[roots[0]]
        assert tree.current(A) == b"pristine a\nturbo"
        assert tree.pristine(A) == b"pristine a\n"
        stage_all(locked, "next2")
        assert tree.staged
        written = tree.staged.receipt
        locked.commit()
        assert tree.receipt == written
        assert tree.receipt
        assert tree.receipt.variant == "next2"
    assert (roots[0] / A).read_bytes() == b"pristine a\nnext2"


# --- no room ---


def run_here(code: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a function of this file in a process of its own."""
    command = [sys.executable, "-B", __file__, code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, **options)  # type: ignore[call-overload,no-any-return]


def main_apply_with_small_files(*names: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    apply([Path(name) for name in names], "x" * 5000, [A])


def test_a_file_that_may_not_grow_that_large_leaves_all_as_it_was(roots: list[Path]) -> None:
    before = everything(*roots)
    run = run_here("main_apply_with_small_files", *roots)
    assert "Refused" in run.stderr
    assert "File too large; nothing was changed" in run.stderr
    assert everything(*roots) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine lets nobody mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@needs_root
def test_a_full_disk_leaves_all_as_it_was_and_more_room_is_all_it_needs(roots: list[Path], small_disk: Path) -> None:
    tree = small_disk / "tree"
    shutil.copytree(roots[0], tree)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 40_000)
    before = everything(roots[1], tree)
    with pytest.raises(Refused, match="No space left on device; nothing was changed"):
        apply([roots[1], tree], "x" * 9000)
    assert everything(roots[1], tree) == before
    filler.unlink()
    apply([roots[1], tree], "x" * 3000)
    revert([roots[1], tree])
    assert everything(roots[1], tree) == before


@needs_root
def test_a_folder_on_another_file_system_is_no_obstacle(roots: list[Path], small_disk: Path) -> None:
    before = everything(*roots)
    shutil.copytree(roots[0] / "include", small_disk / "include")
    subprocess.run(["mount", "--bind", small_disk / "include", roots[0] / "include"], check=True)
    try:
        assert (roots[0] / "include").stat().st_dev != roots[0].stat().st_dev
        apply(roots)
        assert (roots[0] / A).read_bytes() == b"pristine a\nturbo"
        revert(roots)
        assert everything(*roots) == before
    finally:
        subprocess.run(["umount", "-l", roots[0] / "include"], check=True)


@needs_root
def test_a_file_that_cannot_be_replaced_after_the_decision_puts_all_back(roots: list[Path], small_disk: Path) -> None:
    (small_disk / "b.h").write_bytes(b"pristine b\n")
    subprocess.run(["mount", "--bind", small_disk / "b.h", roots[1] / B], check=True)  # a mount point is busy
    try:
        refuses_and_leaves_all(roots, "busy; nothing was changed")
    finally:
        subprocess.run(["umount", "-l", roots[1] / B], check=True)


# --- interrupted before ---


class Died(BaseException):
    """Exception that simulates a kill: nothing of ours runs after it."""


@pytest.fixture
def interrupted(roots: list[Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Applies to both trees, and stops without any cleaning up at the first step that has these words."""

    def until(words: str) -> None:
        def step(what: str) -> None:
            if stopped or words in what:
                stopped.append(what)
                raise Died

        stopped: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(disk, "step", step)
            with pytest.raises(Died):
                apply(roots)

    return until


DECIDED, HALFWAY = "include/.a.h.fp4patch-new to", "two/include/.b.h.fp4patch-new to"


def test_tells_what_it_finished_or_rolled_back(roots: list[Path], interrupted: Callable[[str], None]) -> None:
    interrupted("committed.json")
    with Locked(roots[:1]) as locked:
        assert [(r.root, r.outcome) for r in locked.recovered] == [(root, "rolled back") for root in roots]
    interrupted(HALFWAY)
    with Locked(roots[1:]) as locked:
        assert [(r.root, r.outcome) for r in locked.recovered] == [(root, "completed") for root in roots]
        assert len({r.txid for r in locked.recovered}) == 1
    with Locked(roots) as locked:
        assert not locked.recovered


def test_an_edit_made_after_an_interruption_is_never_overwritten(
    roots: list[Path], interrupted: Callable[[str], None]
) -> None:
    interrupted(HALFWAY)
    (roots[1] / B).write_text("mine")
    refused = refuses_and_leaves_all(roots[:1], "interrupted here")
    assert [problem.file for problem in refused.problems] == [str(roots[1] / B)]
    assert f"delete {roots[1] / B}" in refused.help
    (roots[1] / B).unlink()
    with Locked(roots) as locked:
        assert {r.outcome for r in locked.recovered} == {"completed"}
    assert (roots[1] / B).read_bytes() == b"pristine b\nturbo"
    assert stat.S_IMODE((roots[1] / B).stat().st_mode) == 0o755


def test_a_related_tree_that_vanished_is_no_obstacle(roots: list[Path], interrupted: Callable[[str], None]) -> None:
    interrupted(HALFWAY)
    shutil.rmtree(roots[1])
    with Locked(roots[:1]) as locked:
        assert [r.outcome for r in locked.recovered] == ["completed"]
    assert (roots[0] / A).read_bytes() == b"pristine a\nturbo"


@pytest.mark.parametrize("words", ["committed.json", HALFWAY], ids=["before-the-decision", "after-the-decision"])
@pytest.mark.parametrize("how", ["gone", "moved", "made-anew"])
def test_without_the_tree_that_decides_the_others_are_refused_and_it_is_named(
    roots: list[Path], interrupted: Callable[[str], None], how: str, words: str
) -> None:
    """One tree must not go back where the other goes forward."""
    interrupted(words)
    place = roots[0].rename(roots[0].with_name("moved"))
    if how != "moved":
        shutil.rmtree(place)
    if how == "made-anew":
        (roots[0] / "include").mkdir(parents=True)
    refused = refuses_and_leaves_all(roots[1:], f"on record in {roots[0]}, where there is no journal")
    assert str(roots[1] / ".fp4patch") in refused.help
    if how == "moved":
        with Locked([roots[1], place]) as locked:
            assert {r.outcome for r in locked.recovered} == {"completed" if words == HALFWAY else "rolled back"}
            assert locked[place].current(A) == locked[roots[1]].current(A)


def test_a_tree_that_was_moved_since_recovers_at_its_new_place(
    roots: list[Path], interrupted: Callable[[str], None]
) -> None:
    interrupted(HALFWAY)
    moved = roots[0].rename(roots[0].with_name("moved"))
    with Locked([moved]) as locked:
        assert moved in [r.root for r in locked.recovered]
    assert (moved / B).read_bytes() == b"pristine b\nturbo"


def test_a_lost_copy_refuses_instead_of_guessing(roots: list[Path], interrupted: Callable[[str], None]) -> None:
    interrupted(HALFWAY)
    (roots[1] / "include/.b.h.fp4patch-new").unlink()
    refuses_and_leaves_all(roots, "none, or a damaged one")


# --- two at once ---


def main_hammer(name: str, *places: str) -> None:
    roots = [Path(place) for place in places]
    waited: list[Path] = []
    for number in range(15):
        with Locked(roots, waited.append) as locked:
            assert not locked.recovered
            assert locked[roots[0]].current(A) == locked[roots[1]].current(A)
            stage_all(locked, f"{name} {number}")
            locked.commit()
            for root in roots:
                assert (root / A).read_bytes() == f"pristine a\n{name} {number}".encode()
    print(len(waited))  # noqa: T201 - to the test below


def test_two_processes_on_the_same_trees_do_not_interleave(roots: list[Path]) -> None:
    before = everything(*roots)
    command = [sys.executable, "-B", __file__, "main_hammer"]
    orders = {"first": roots, "second": roots[::-1]}
    runs = [
        subprocess.Popen([*command, name, *map(str, order)], stdout=-1, stderr=-1, text=True, env=ENVIRONMENT)
        for name, order in orders.items()
    ]
    results = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], results
    assert sum(int(out) for out, _ in results) > 0, "they never met, so this showed nothing"
    revert(roots)
    assert everything(*roots) == before


def test_says_which_tree_it_waits_for(roots: list[Path]) -> None:
    waited: list[Path] = []
    told = threading.Event()

    def on_wait(root: Path) -> None:
        waited.append(root)
        told.set()

    def second() -> None:
        with Locked(roots, on_wait) as locked:
            seen.append(locked[roots[1]].current(A))

    seen: list[bytes | None] = []
    waiting = threading.Thread(target=second)
    with Locked(roots[1:]) as locked:
        waiting.start()
        assert told.wait(30)
        stage_all(locked, "turbo")
        locked.commit()
        assert not seen
    waiting.join(30)
    assert waited == [roots[1]]
    assert seen == [b"pristine a\nturbo"]


def main_terminated_in_the_middle(words: str, *places: str) -> None:
    def step(what: str) -> None:
        if words in what:
            os.kill(os.getpid(), signal.SIGTERM)

    disk.step = step
    apply([Path(place) for place in places])


@pytest.mark.parametrize(("words", "done"), [("journal.new", False), (DECIDED, True)])
def test_a_terminated_command_first_leaves_all_before_or_all_after(roots: list[Path], words: str, done: bool) -> None:
    before = everything(*roots)
    run = run_here("main_terminated_in_the_middle", words, *roots)
    assert run.returncode == -signal.SIGTERM, run.stderr
    if done:
        with Locked(roots) as locked:
            assert not locked.recovered
            assert all(tree.receipt for tree in locked)
            assert {tree.current(A) for tree in locked} == {b"pristine a\nturbo"}
        revert(roots)
    assert everything(*roots) == before


def test_state_is_plain_json_without_paths_of_this_machine(roots: list[Path]) -> None:
    apply(roots)
    text = (roots[0] / ".fp4patch/receipt.json").read_text()
    assert json.loads(text)["schema"] == 1
    assert str(roots[0]) not in text


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
