"""The tree's own CMake functions, run: what a list of architectures becomes, and how a tree that stops is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.doctor.build_lists import cmake, configure, gencode

pytestmark = pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake")


def test_pytorchs_flags_know_semicolons_spaces_and_ptx() -> None:
    assert gencode("9.0 12.1a") == gencode("9.0;12.1a")
    assert gencode("12.0+PTX") == ("-gencode arch=compute_120,code=sm_120 -gencode arch=compute_120,code=compute_120")


def test_a_tree_in_a_folder_with_an_awkward_name_is_evaluated(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    awkward = tmp_path / 'a "strange" $HOME folder'  # CMake itself has no way with a semicolon
    awkward.symlink_to(pristine_tree("vllm", "0.33.0"))
    made = configure(awkward, "13.0", "12.0a;12.1a", tmp_path)
    assert made.error == ""
    assert made.of(r"nvfp4_quant_kernels\.cu$") == ("12.0a",)


def test_a_tree_that_stops_says_why(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text('cmake_minimum_required(VERSION 3.26)\nmessage(FATAL_ERROR "not today")\n')
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    made = configure(tmp_path, "13.0", "12.1a", scratch)
    assert "not today" in made.error
    assert made.sources == {}
