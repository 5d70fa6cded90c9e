"""Conditions in CMake, cut out of a file and run. Those in C++ and Python have tests with their patches."""

import pytest
from cases import cases

from fp4patch.catalog.manifest import load
from fp4patch.proof import conditions
from fp4patch.proof.result import BuildResult
from fp4patch.proof.toolchain import Toolchain

PATCH, FILE = "mlx/fp4-suffix", "mlx/backend/cuda/CMakeLists.txt"
CASE = cases(PATCH)["short.cmake"]


def evaluated(after: str, toolchain: Toolchain) -> tuple[BuildResult, list[range]]:
    before, patch = CASE.before.encode(), load().patches[PATCH]
    (result,), cuts = conditions.evaluate({FILE: before}, {FILE: after.encode()}, [patch], toolchain)
    return result, [lines for cut in cuts for lines in cut.after]


def test_the_commands_from_one_to_another_are_run_and_no_other_line_is_judged(toolchain: Toolchain) -> None:
    result, lines = evaluated(f"command_of_nobody()\n{CASE.after}command_of_nobody()\n", toolchain)
    assert (result.before, result.after, result.detail) == ("none", "12.0 12.1", "")
    assert lines == [range(2, 2 + CASE.after.count("\n"))]


@pytest.mark.parametrize("lost", ["message(STATUS", "set_target_properties("])
def test_a_file_without_one_of_the_two_is_refused(lost: str, toolchain: Toolchain) -> None:
    result, _ = evaluated(CASE.after.replace(lost, f"another_{lost}"), toolchain)
    assert "there is no one `message(STATUS" in result.after


def test_what_is_no_cmake_is_refused(toolchain: Toolchain) -> None:
    result, _ = evaluated(CASE.after + "endif(", toolchain)
    assert result.after == "the file is not understood"


def test_without_cmake_the_verdict_names_what_to_install(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "cmake", lambda: None)
    result, _ = evaluated(CASE.after, toolchain)
    assert result.detail.endswith("pip install cmake")
