"""Preconditions of probes: a probe runs on a tree that meets them, and else there is a reason."""

from pathlib import Path
from typing import Any

import pytest

from fp4patch.catalog.probe import Needs, Probe
from fp4patch.proof.view import SourceView, nothing_to_show


def probe(needs: Needs | None = None, **settings: Any) -> Probe:
    return Probe(name="x16", title="", source="x16.cu", patch="vllm/e2m1-asm", needs=needs, **settings)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "a/csrc").mkdir(parents=True)
    (tmp_path / "a/csrc/fp4.cuh").write_text("// wide(x) was here once\nint narrow(int);\n")
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("needs", "runs"),
    [
        (None, True),
        (Needs(search=("csrc/**/fp4.cuh",)), True),
        (Needs(search=("csrc/other.cuh", "csrc/fp4.cuh")), True),
        (Needs(search=("csrc/other.cuh",)), False),
        (Needs(search=("csrc/**/fp4.cuh",), tokens="narrow( int )"), True),
        (Needs(search=("csrc/**/fp4.cuh",), tokens="wide("), False),  # a comment is no function
    ],
)
def test_a_probe_runs_where_the_tree_has_what_it_needs(small: Path, needs: Needs | None, runs: bool) -> None:
    assert (nothing_to_show(probe(needs), SourceView(small), {}) == "") is runs


def test_what_a_probe_needs_is_looked_for_in_the_pristine_source(small: Path) -> None:
    needs = probe(Needs(search=("csrc/fp4.cuh",), tokens="wide("))
    pristine = SourceView(small, {"csrc/fp4.cuh": b"int wide(int);\n"})
    assert nothing_to_show(needs, pristine, {}) == ""
    assert "`wide(` in csrc/fp4.cuh" in nothing_to_show(needs, SourceView(small, {"csrc/fp4.cuh": None}), {})


def test_a_file_that_is_not_understood_does_not_excuse_a_probe(small: Path) -> None:
    (small / "csrc/fp4.cuh").write_text("/* open")
    assert nothing_to_show(probe(Needs(search=("csrc/fp4.cuh",), tokens="wide(")), SourceView(small), {}) == ""


def test_a_probe_that_takes_pytorchs_headers_runs_where_they_are(small: Path, tmp_path: Path) -> None:
    takes = probe(uses=("torch",))
    assert "torch" in nothing_to_show(takes, SourceView(small), {})
    assert nothing_to_show(takes, SourceView(small), {"torch": (tmp_path,)}) == ""
