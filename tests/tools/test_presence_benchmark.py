"""The benchmark of `fp4patch plan`, on a repository of a few commits."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from project import Project

from fp4patch.stack import plan
from fp4patch.stack.presence import Found, HunkFound
from tools import presence_benchmark

SOURCE = "".join(f"int v{number}() {{\n  return {number};\n}}\n\n" for number in range(12))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made, text = Project(tmp_path / "project"), SOURCE
    made.commit({"a.cu": text}, "First", "v1.0")
    for number in (1, 5, 9):
        text = text.replace(f"  return {number};\n", f"  count_calls({number});\n  return {number};\n")
        last = made.commit({"a.cu": text}, f"Count the calls of {number} (#{number})", f"v1.{number}")
    made.revert(last, "v2.0")
    return made


def rows(project: Project) -> tuple[int, dict[str, int]]:
    done = CliRunner().invoke(presence_benchmark.main, [str(project.folder), "--commits", "9", "--since", "v1.0"])
    found = [line.strip().partition(" ") for line in done.stdout.splitlines()]
    return done.exit_code, {name: int(number) for number, _, name in found if number.isdecimal()}


def test_commits_and_reverts_are_counted(project: Project) -> None:
    status, counts = rows(project)
    assert status == 0
    assert counts["commits"] == 4
    assert counts["in by the log, on the newest"] == counts["with the log: on the newest: in the release"] == 3
    assert counts["applies"] > 0


def test_a_wrong_answer_is_counted_and_fails(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "hunks_in", lambda change, _: [HunkFound(Found.IN)] * len(change.hunks))
    status, counts = rows(project)
    assert status == 1
    assert counts["text alone: FALSE in"] > 0
