"""The table of times is measured, a row for each tree."""

import sys
from collections.abc import Callable
from pathlib import Path

from tools.pages import times


def test_a_row_has_a_time_for_each_command_and_leaves_the_tree_alone(tree_copy: Callable[[str, str], Path]) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    row = list(times.measured(tree))
    assert len(row) == len(times.COMMANDS)
    cheap, dear = (row[list(times.COMMANDS).index(name)] for name in ("`git status`", "`apply`"))
    assert 0 < cheap < dear
    assert not (tree / ".fp4patch").exists()
    assert not (tree / ".git").exists()


def test_the_seconds_are_those_of_the_processor(tmp_path: Path) -> None:
    assert times.seconds((sys.executable, "-c", "import time; time.sleep(1)"), tmp_path, {}) < 0.9
