"""Evaluations of a build that are kept: a file that CMake read as data is part of the question."""

from pathlib import Path

import pytest

from fp4patch.adapters import vllm
from fp4patch.adapters.kept import BuildFiles
from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.manifest import load
from fp4patch.core.store import Store

CMAKE = """
cmake_minimum_required(VERSION 3.26)
project(small LANGUAGES CXX)
file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/macros.list" macros)
foreach(macro ${macros})
  add_compile_definitions(${macro})
endforeach()
"""
QUESTION = ("13.0", "12.1a")


def test_a_kept_evaluation_is_made_anew_where_a_file_that_it_read_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = load().target("vllm").build
    assert build
    tree, store = tmp_path / "tree", Store(tmp_path / "store")
    tree.mkdir()
    (tree / "CMakeLists.txt").write_text(CMAKE)
    (tree / "macros.list").write_text("FIRST\n")
    runs = []
    configure = vllm.configure

    def counted(*arguments: object, **options: object) -> BuildRow:
        runs.append(arguments)
        return configure(*arguments, **options)  # type: ignore[arg-type]  # what it was called with

    monkeypatch.setattr(vllm, "configure", counted)

    def definitions() -> tuple[str, ...]:
        kept = BuildFiles(tree, build, store).over({})
        (row,) = vllm.evaluate(tree, build, [QUESTION], kept=kept)
        assert not row.error
        return row.parts["", "definition"]

    assert [definitions(), definitions()] == [("FIRST",), ("FIRST",)]
    assert len(runs) == 1  # the second answer was kept
    (tree / "macros.list").write_text("OTHER\n")
    assert [definitions(), definitions()] == [("OTHER",), ("OTHER",)]
    assert len(runs) == 2
    names = (*QUESTION, vllm.cmake_identity())
    assert BuildFiles(tree, build, store).over({}).row(*names)
    assert BuildFiles(tree, build, store).over({"macros.list": b"VIEW\n"}).row(*names) is None  # a file over the tree's
