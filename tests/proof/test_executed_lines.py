"""Lines of a build file that an evaluation executed."""

from collections.abc import Callable
from pathlib import Path

from fp4patch.adapters import evaluate
from fp4patch.catalog.manifest import load
from fp4patch.proof.builds import executed_lines

CMAKE = """set(A
    1)
if(A)
  set(B 2)
else()
  set(C 3)
endif()
"""
PYTHON = "if a:\n    b = [\n        1,\n    ]\nelse:\n    c = 2\n"


def lines(path: str, text: str, ran: set[int]) -> set[int]:
    return {line for span in executed_lines(path, text, ran) for line in span}


def test_a_command_counts_with_all_its_lines_and_one_that_did_not_run_does_not() -> None:
    assert lines("CMakeLists.txt", CMAKE, {1, 3, 4}) == {1, 2, 3, 4, 5}
    assert lines("CMakeLists.txt", CMAKE, {1, 3, 6}) == {1, 2, 3, 5, 6, 7}
    assert lines("CMakeLists.txt", "if(", {1}) == set()


def test_a_statement_counts_with_all_its_lines_and_one_that_did_not_run_does_not() -> None:
    assert lines("setup.py", PYTHON, {1, 2}) == {1, 2, 3, 4}
    assert lines("setup.py", PYTHON, {1, 6}) == {1, 6}
    assert lines("setup.py", "if (", {1}) == set()


def test_vllms_own_build_tells_which_lines_it_executed(pristine_tree: Callable[[str, str], Path]) -> None:
    tree, build = pristine_tree("vllm", "0.33.0"), load().target("vllm").build
    assert build
    (row,) = evaluate(tree, build, [("13.0", "12.1a")], parts=True, traced=["CMakeLists.txt"])
    text = (tree / "CMakeLists.txt").read_text(encoding="utf-8").split("\n")
    of_hip = next(at for at, line in enumerate(text, 1) if "enable_language(HIP)" in line)
    lists = {at for at, line in enumerate(text, 1) if "cuda_archs_loose_intersection(" in line}
    assert of_hip not in row.ran["CMakeLists.txt"]
    assert lists & row.ran["CMakeLists.txt"]
    assert evaluate(tree, build, [("13.0", "12.1a")], parts=True)[0].ran == {}


def test_flashinfers_own_functions_tell_which_lines_they_executed(pristine_tree: Callable[[str, str], Path]) -> None:
    tree, build = pristine_tree("flashinfer", "0.7.2"), load().target("flashinfer").build
    assert build
    (row,) = evaluate(tree, build, [("13.0", "12.1a")], parts=True, traced=["compilation_context.py"])
    path = next(path for path in row.ran if path.endswith("compilation_context.py"))
    text = (tree / path).read_text(encoding="utf-8").split("\n")
    assert row.ran[path]
    assert len(row.ran[path]) < len(text)
