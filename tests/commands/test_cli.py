"""The command line as its users and their scripts meet it: exit statuses, lists, help, completion."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from command import Said, snapshot, without_privileges
from processes import becomes, running
from small_cutlass import CONVERTER, GUARD

from fp4patch import __version__, cli
from fp4patch.catalog.manifest import data_root
from fp4patch.commands.explore_page import MATRIX

GetTree = Callable[[str, str], Path]
Ended = subprocess.CompletedProcess[str]


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
        ["apply", "--variant", "next2", "TREE", ""],
        ["doctor", ""],
        ["fetch", "cutlass==4.2.1", ""],
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply", "--json"],
        ["apply", "--no-such", "--json", "x"],
        ["no-such-verb", "--json"],
        ["show", "a", "b", "--json"],
    ],
)
def test_a_command_line_that_cannot_be_parsed_is_a_document_under_json(
    fp4patch: Callable[..., Said], arguments: list[str]
) -> None:
    said = fp4patch(*arguments)
    assert (said.status, said.document["state"]) == (2, "refused")
    assert said.document["error"] in said.err
    assert said.document["help"].startswith("Usage: fp4patch")


@pytest.mark.parametrize(("name", "summary"), [(n, s) for group in cli.GROUPS.values() for n, (_, s) in group.items()])
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name: str, summary: str) -> None:
    command = cli.fp4patch.get_command(click.Context(cli.fp4patch), name)
    assert command
    assert command.name == name
    assert summary == (command.help or "").partition("\n")[0]
    assert len(summary) <= 68  # beside the name, in 80 columns
    assert summary.endswith(".")
    assert f"  {name} " in CliRunner().invoke(cli.fp4patch, ["-h"]).output


def test_a_bug_of_ours_is_status_3_and_shows_a_traceback(
    fp4patch: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fp4patch.commands.show.load", lambda: 1 / 0)
    said = fp4patch("show")
    assert said.status == 3
    assert "Traceback" in said.err
    assert "bug of ours" in said.err


def test_version_and_help(fp4patch: Callable[..., Said]) -> None:
    assert fp4patch("--version").out == f"fp4patch, version {__version__}\n"
    assert fp4patch("-h").out == fp4patch("--help").out
    assert fp4patch("apply", "-h").status == 0


def test_show_names_everything_in_text_and_json(fp4patch: Callable[..., Said]) -> None:
    document, text = fp4patch("show", "--json").document, fp4patch("show").out
    for kind in ("variants", "patches", "targets"):
        assert document[kind]
        for thing in document[kind]:
            name = f"{thing['target']}/{thing['name']}" if kind == "patches" else thing["name"]
            assert f"  {name}  {thing['title']}" in text
            assert fp4patch("show", name, "--json").document[kind] == [thing]
            assert thing["title"] in fp4patch("show", name).out
    (patch,) = fp4patch("show", "e2m1-encode", "--json").document["patches"]
    family = [edit["about"] for edit in patch["edits"][13:19]]
    assert family == [f"{source}_to_e2m1_x{values}" for source in ("half", "bfloat16") for values in (2, 4, 8)]
    (shown,) = fp4patch("show", "e2m1-guard", "--json").document["patches"]
    assert "next2" in shown["variants"]
    assert " ".join(shown["reason"].split()) in fp4patch("show", "e2m1-guard").out  # a pipe gets it whole


@pytest.mark.parametrize("version", ["4.0.0", "4.2.1", "4.5.0"])
def test_the_recorded_matrix_is_what_the_real_trees_say(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, version: str
) -> None:
    rows = json.loads((data_root() / MATRIX).read_text())["rows"]
    (row,) = [row for row in rows if (row["target"], row["version"]) == ("cutlass", version)]
    found = fp4patch("status", "--json", pristine_tree("cutlass", version)).tree
    assert {p["patch"]: p["state"].replace("pristine", "applied") for p in found["patches"]} == row["states"]


@pytest.mark.parametrize(
    ("words", "incomplete", "offered"),
    [
        ("apply --variant", "tur", {"turbo", "turbo2"}),
        ("show", "cutlass/sm121", {"cutlass/sm121-family", "cutlass/sm121-operand"}),
        ("fetch", "vllm==0.33", {"vllm==0.33.0"}),
        ("export --variant next3 --patch", "fp6", {"fp6-convert"}),
        ("doctor --for", "gb10,rtx-pro-6", {"gb10,rtx-pro-6000"}),
        ("doctor --cuda", "13", {"13.0"}),
        ("doctor --arch-list", "12.0a,12.1", {"12.0a,12.1a", "12.0a,12.1f"}),
        ("verify --arch", "sm_121a,sm_120", {"sm_121a,sm_120", "sm_121a,sm_120a", "sm_121a,sm_120f"}),
        ("build --arch", "12.1", {"12.1a", "12.1f"}),
    ],
)
def test_a_shell_completes_each_name(words: str, incomplete: str, offered: set[str]) -> None:
    complete = ShellComplete(cli.fp4patch, {}, "fp4patch", "_FP4PATCH_COMPLETE").get_completions
    assert {item.value for item in complete(words.split(), incomplete)} == offered


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["apply", "--variant", "nativ", "TREE"], "native"),
        (["show", "e2m1-gard"], "e2m1-guard"),
        (["fetch", "cutlas==4.2.1", "x"], "cutlass"),
        (["doctor", "--for", "rtx-5091"], "rtx-5090"),
        (["doctor", "--arch-list", "12.1a", "vllm==0.33.1"], "0.33.0"),
        (["export", "--variant", "next3", "--patch", "e2m1-encod", "TREE"], "e2m1-encode"),
    ],
)
def test_a_name_that_does_not_exist_recommends_the_nearest(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, arguments: list[str], meant: str
) -> None:
    said = fp4patch(*[str(pristine_tree("cutlass", "4.2.1")) if a == "TREE" else a for a in arguments])
    assert said.status == 2
    assert f"did you mean {meant}?" in " ".join(said.err.split())


@pytest.mark.parametrize(("typed", "meant"), [("aply", "apply"), ("docter", "doctor"), ("new_patch", "new-patch")])
def test_a_command_that_does_not_exist_recommends_the_nearest(
    fp4patch: Callable[..., Said], typed: str, meant: str
) -> None:
    said = fp4patch(typed, "TREE")
    assert (said.status, said.out) == (2, "")
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in said.err
    assert f"Did you mean '{meant}'?" in fp4patch(typed, "TREE", "--json").document["error"]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_has_an_example_that_can_be_parsed_and_fits_80_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("40191.diff").touch()
    command = cli.fp4patch.get_command(click.Context(cli.fp4patch), name)
    assert command
    program, called, *arguments = shlex.split((command.epilog or "").removeprefix("Example: "))
    assert (program, called) == ("fp4patch", name)
    command.make_context(name, arguments)
    shown = CliRunner().invoke(cli.fp4patch, [name, "-h"], terminal_width=80).output
    assert max(map(len, shown.splitlines())) <= 80


def test_an_interrupt_is_status_130_and_leaves_the_tree_alone(tree_copy: GetTree, tmp_path: Path) -> None:
    """Another process holds the tree; ours waits for it, is interrupted, and reports that."""
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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_verify_that_is_ended_leaves_no_compiler_and_no_folder(
    whole_tree: GetTree, tmp_path: Path, stop: signal.Signals
) -> None:
    """CI jobs are ended by SIGTERM, and a terminal that is closed by SIGHUP."""
    tree = whole_tree("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environ = os.environ | {"TMPDIR": str(scratch), "FP4PATCH_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "fp4patch", "verify", "--variant", "next2", "--no-execute", str(tree)]
    compilers = os.fsencode(scratch) + b"/fp4patch-"  # their temporary files are there
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert becomes(lambda: running(compilers))
        process.send_signal(stop)
        assert process.stderr
        assert process.stderr.read().rstrip().endswith("interrupted")
    assert process.returncode == 130
    assert not any(scratch.iterdir())
    assert becomes(lambda: not running(compilers), 5)


def fp4patch_process(*arguments: str, environ: dict[str, str] | None = None, out: int = subprocess.PIPE) -> Ended:
    command = [sys.executable, "-m", "fp4patch", *arguments]
    whole = os.environ | (environ or {})
    return subprocess.run(command, env=whole, stdout=out, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_leaves_changes_no_exit_status(pristine_tree: GetTree, tmp_path: Path, form: list[str]) -> None:
    """In ``fp4patch apply --check TREE | head -1`` with pipefail, pending changes must not count as done."""
    tree, statuses = pristine_tree("cutlass", "4.2.1"), []
    for command in (f"status {tree}", f"apply --check --variant next2 {tree}", f"status {tmp_path}"):
        reader, writer = os.pipe()
        os.close(reader)
        ended = fp4patch_process(*command.split(), *form, out=writer)
        os.close(writer)
        assert "Traceback" not in ended.stderr
        statuses.append(ended.returncode)
    assert statuses == [0, 1, 1]


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_closed_output_swallows_what_is_said(form: str) -> None:
    command = f"exec {sys.executable} -m fp4patch show {form} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


def test_an_encoding_without_our_signs_gets_them_escaped() -> None:
    ended = fp4patch_process("show", "e2m1-guard", environ={"PYTHONIOENCODING": "ascii"})
    assert ended.returncode == 0
    assert r"float \u2192 E2M1" in ended.stdout


def test_a_current_folder_that_is_gone_is_no_bug_of_ours(tmp_path: Path) -> None:
    command = f"cd {tmp_path} && rmdir {tmp_path} && exec {sys.executable} -m fp4patch status ."
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: the current directory does not exist any more: change to another\n"


@pytest.mark.parametrize("form", [[], ["--json"], ["--diff"]])
def test_an_output_without_room_is_an_error_and_no_bug(tree_copy: GetTree, form: list[str]) -> None:
    tree = str(tree_copy("cutlass", "4.2.1"))
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = fp4patch_process("apply", "--variant", "turbo", "--dry-run", *form, tree, out=full.fileno())
    no_room = "error: the output cannot be written: No space left on device"
    assert (ended.returncode, ended.stderr.strip()) == (1, no_room)


def test_a_file_that_may_not_be_read_is_not_called_foreign(fp4patch: Callable[..., Said], tree_copy: GetTree) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    fp4patch("apply", "--variant", "next2", tree)
    (tree / GUARD).chmod(0)
    said = without_privileges("status", tree)
    assert said.returncode == 1
    assert f"{GUARD}: expected a readable file, found Permission denied" in said.stderr
    assert "run fp4patch as a user who may read it" in said.stderr
    (tree / GUARD).chmod(0o644)
    (tree / CONVERTER).write_bytes(b"\0")
    files = {file["path"]: file["state"] for file in fp4patch("status", "--json", tree).tree["files"]}
    assert files == {GUARD: "applied", CONVERTER: "foreign"}


def test_numpy_starts_no_thread_beside_our_own() -> None:
    """On 32 cores those of its algebra took half of the processor time of a verify in which everything was cached."""
    script = (
        "import atexit, os, sys\n"
        "from fp4patch import cli\n"
        "atexit.register(lambda: print(__import__('numpy').__name__, len(os.listdir('/proc/self/task'))))\n"
        "cli.main()\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "OMP_"))}
    ended = subprocess.run(
        [sys.executable, "-c", script, "--version"], env=environ, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "numpy 1"
