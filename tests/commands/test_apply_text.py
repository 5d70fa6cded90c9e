"""Output of ``apply`` and ``status``: changes, reasons of edits with nothing to do, refusals, states."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fp4patch.commands import apply as report
from fp4patch.commands import status
from fp4patch.console import document
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree.apply import Applied, ApplyState, FileResult, Retired, TreeResult
from fp4patch.tree.status import FileStatus, PatchStatus, TreeStatus

RETIRED = (
    Retired("vllm/cmake", State.UPSTREAMED, "0.19", "each list has it"),
    Retired("vllm/family", State.UPSTREAMED, "0.22", "the test is for the family"),
    Retired("vllm/family", State.UPSTREAMED, "0.23", "so is the other"),
    Retired("vllm/family", State.NOT_NEEDED, "", "there is no third"),
)
FOREIGN = Problem("the pristine bytes", "a file that was edited since", file="a.h", state=State.FOREIGN)


def tree(name: str, state: ApplyState, *problems: Problem) -> TreeResult:
    changed = FileResult("b.h", State.APPLIED, ("vllm/asm 1",), b"old\n", b"new\n")
    return TreeResult(Path(name), "vllm", "0.33.0", "next3", state, (changed,), problems, RETIRED, ("a note",))


def printed(thing: object) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def test_several_edits_with_nothing_to_do_are_counted_and_one_says_its_reason() -> None:
    text = printed(report.text(Applied("apply", True, (tree("t", ApplyState.APPLIED),)), diff=False))
    assert "b.h  (vllm/asm 1)" in text
    assert "vllm/cmake: upstreamed since 0.19: each list has it" in text
    assert (
        "vllm/family: 3 of its edits have nothing to do here (2 upstreamed, 1 not-needed); --diff shows the reasons"
        in text
    )
    assert "so is the other" not in text


def test_diff_says_each_reason() -> None:
    text = printed(report.text(Applied("apply", True, (tree("t", ApplyState.APPLIED),)), diff=True))
    assert "vllm/family: upstreamed since 0.23: so is the other" in text
    assert "vllm/family: not-needed: there is no third" in text


def test_the_document_has_every_reason() -> None:
    found = document(Applied("apply", True, (tree("t", ApplyState.APPLIED),)))
    assert found["trees"][0]["notes"] == [*map(str, RETIRED), "a note"]


def test_a_refusal_names_the_tree_and_the_file_and_says_a_thing_once() -> None:
    refused = Applied(
        "apply", True, (tree("one", ApplyState.REFUSED, FOREIGN, FOREIGN), tree("two", ApplyState.REFUSED))
    )
    assert "b.h" not in printed(report.text(refused, diff=False))
    lines = printed(report.refusal(refused)).splitlines()
    assert lines[:2] == ["one:", "error: a.h: foreign"]
    assert len(lines) == 3


def test_status_has_each_state_with_its_name_and_reason() -> None:
    patch = PatchStatus("vllm/cmake-sm121a", State.UPSTREAMED, "since 0.19: each list has it")
    states = TreeStatus(Path("t"), "vllm", "0.33.0", "next3", (FileStatus("b.h", State.OUTDATED, ()),), (patch,), ())
    heading, *rows = (" ".join(line.split()) for line in printed(status.text((states,))).splitlines())
    assert heading == "t: vllm 0.33.0, next3: outdated"
    assert rows == ["patch upstreamed vllm/cmake-sm121a since 0.19: each list has it", "file outdated b.h"]
