"""Results of the tree's own CMake functions for an arch list, and reports of trees whose build stops."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.adapters import vllm as adapter
from fp4patch.adapters.vllm import cmake, configure
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Archive
from fp4patch.core import progress
from fp4patch.core.arch import GB10, Arch, Reach
from fp4patch.core.errors import ToolchainError
from fp4patch.sources.index import download

DEBIAN_12 = Archive(
    version="3.25.2",
    project="cmake",
    filename="cmake-3.25.2-py2.py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    sha256="f9587645cea5298d5eb20649f58a83cc53c9efa7d57b0716449a39f366a74986",
    subtree="",
)
"""The CMake release of Debian 12, from the package index."""

pytestmark = pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake")


def test_a_tree_in_a_folder_with_an_awkward_name_is_evaluated(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    awkward = tmp_path / 'a "strange" $HOME folder'  # CMake itself has no way with a semicolon
    awkward.symlink_to(pristine_tree("vllm", "0.33.0"))
    made = configure(awkward, "13.0", "12.0a;12.1a", tmp_path)
    assert made.error == ""
    assert made.code["csrc/quantization/fp4/nvfp4_quant_kernels.cu"] == ("12.0a",)


@pytest.mark.parametrize(("version", "served"), [("0.22.1", False), ("0.33.0", True)])
def test_a_list_that_is_not_set_is_evaluated_on_each_machine(
    pristine_tree: Callable[[str, str], Path], version: str, served: bool
) -> None:
    """PyTorch up to 2.11 makes arch=compute_20,code=sm_121 of a detected GB10."""
    build = load().target("vllm").build
    assert build
    (row,) = adapter.evaluate(pristine_tree("vllm", version), build, [("13.0", "")])
    assert row.reaches == {Arch(12, 0): Reach.SUFFIXED, GB10: Reach.SUFFIXED if served else Reach.NOTHING}
    assert row.on[GB10].modules == {"kernels": ("12.0f",) if served else ()}


def test_a_tree_that_stops_says_why(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text('cmake_minimum_required(VERSION 3.26)\nmessage(FATAL_ERROR "not today")\n')
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    made = configure(tmp_path, "13.0", "12.1a", scratch)
    assert "not today" in made.error
    assert made.code == {}


# --- this machine's CMake --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def older_cmake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """CMake 3.25, which is older than the 3.26 that vLLM asks for."""
    folder = tmp_path_factory.mktemp("cmake")
    with zipfile.ZipFile(download(DEBIAN_12, progress.silent)) as wheel:
        wheel.extractall(folder)
    program = folder / "cmake/data/bin/cmake"
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("version", ["0.10.2", "0.14.1", "0.33.0"])
def test_an_older_cmake_evaluates_a_tree_as_the_newest_does(
    pristine_tree: Callable[[str, str], Path],
    tmp_path: Path,
    older_cmake: str,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    tree = pristine_tree("vllm", version)
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    newest = configure(tree, "13.0", "12.0a;12.1a", tmp_path / "new")
    assert newest.code
    monkeypatch.setattr(adapter, "cmake", lambda: older_cmake)
    older = configure(tree, "13.0", "12.0a;12.1a", tmp_path / "old")
    assert older.error == ""
    assert {k: v for k, v in older.code.items() if not k.startswith(str(tmp_path))} == {
        k: v for k, v in newest.code.items() if not k.startswith(str(tmp_path))
    }


def test_a_cmake_that_is_too_old_is_named_and_the_tree_is_not_blamed(
    vllm: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = vllm("0.33.0")
    text = (tree / "CMakeLists.txt").read_text()
    (tree / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 99.0)\nno_such_command()\n{text}")
    cli.run(["doctor", "--cuda", "13.0", str(tree)])
    said = " ".join(capsys.readouterr().out.split())
    assert "too old for this tree" in said
    assert "newer cmake on PATH" in said
    assert "that fp4patch has not seen" not in said


@pytest.mark.parametrize("script", ["exit 127", "echo 'CMake Error: Could not find CMAKE_ROOT !!!' >&2; exit 1"])
def test_a_cmake_that_does_not_run_is_named_and_nothing_is_judged(
    pristine_tree: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
) -> None:
    broken = tmp_path / "cmake"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(adapter, "cmake", lambda: str(broken))
    assert cli.run(["doctor", "--cuda", "13.0", str(pristine_tree("vllm", "0.33.0"))]) == 1
    said = "".join(capsys.readouterr().out.split())  # a long path is broken at the width
    assert f"{broken}doesnotrun" in said
    assert "notjudged" in said
    assert "doctor--arch-list12.1avllm==VERSION" in said


def test_without_a_cmake_there_is_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "cmake", lambda: None)
    with pytest.raises(ToolchainError, match="there is no cmake") as error:
        configure(tmp_path, "13.0", "12.1a", tmp_path)
    assert "pip install" in error.value.help


# --- what a tree's CMake can do --------------------------------------------------------------------------------------

REPLACED = """
execute_process(COMMAND touch ${made}/execute_process)
exec_program(touch ARGS ${made}/exec_program)
file(WRITE ${made}/file "")
file(TOUCH ${made}/touch)
configure_file(${CMAKE_CURRENT_LIST_FILE} ${made}/configure_file)
write_file(${made}/write_file "")
make_directory(${made}/make_directory)
try_compile(ok ${made}/try_compile ${CMAKE_CURRENT_LIST_FILE})
"""
HARM = {
    "_execute_process(COMMAND touch ${made}/execute_process COMMAND_ERROR_IS_FATAL ANY)": "failed command",
    '_file(WRITE ${made}/file "")': "Permission denied",
    "_file(TOUCH ${made}/touch)": "problem touching",
    "_file(REMOVE ${made}/kept)\nif(NOT EXISTS ${made}/kept)\nelse()\nmessage(FATAL_ERROR kept)\nendif()": "kept",
    "_file(CHMOD ${made}/kept PERMISSIONS OWNER_READ)": "Failed to set permissions",
    "_file(DOWNLOAD http://127.0.0.1:1/ ${made}/down STATUS s)\nmessage(FATAL_ERROR ${s})": "",
    "_configure_file(${CMAKE_CURRENT_LIST_FILE} ${made}/configure_file)": "",
    "set(x xxxxxxxxxxxxxxxx)\nwhile(TRUE)\nset(x ${x}${x})\nendwhile()": "",
}
"""What the originals do, and what is said of it."""


def test_the_usual_commands_that_write_do_nothing(tmp_path: Path) -> None:
    made, tree, scratch = (tmp_path / name for name in ("made", "tree", "scratch"))
    for folder in (made, tree, scratch):
        folder.mkdir()
    (tree / "CMakeLists.txt").write_text(f"set(made {made})\n{REPLACED}")
    assert configure(tree, "13.0", "12.1a", scratch).error == ""
    assert list(made.iterdir()) == []


@pytest.mark.parametrize(("text", "said"), HARM.items())
def test_the_kernel_refuses_what_the_originals_do(tmp_path: Path, text: str, said: str) -> None:
    made, tree, scratch = (tmp_path / name for name in ("made", "tree", "scratch"))
    for folder in (made, tree, scratch):
        folder.mkdir()
    (made / "kept").write_text("kept")
    before = (made / "kept").stat()
    (tree / "CMakeLists.txt").write_text(f"set(made {made})\n{text}")
    error = configure(tree, "13.0", "12.1a", scratch).error
    assert error
    assert said in error
    assert (made / "kept").stat() == before
    assert [path.name for path in made.iterdir()] == ["kept"]
