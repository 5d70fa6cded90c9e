"""Output of ``apply``: changes, and what is left, with the reason."""

from pathlib import Path

from rich.console import Console

from fp4patch.commands import apply as report
from fp4patch.core.results import State
from fp4patch.tree.apply import Applied, ApplyState, TreeResult
from fp4patch.tree.receipt import PatchStatus, Remainder
from fp4patch.tree.write import FileResult

PATCHES = (
    PatchStatus("vllm/e2m1-asm", State.APPLIED, ""),
    PatchStatus("vllm/gdn-prefill", State.UPSTREAMED, "since 0.30: the kernel is chosen on SM12x"),
)
LEFT = tuple(Remainder("vllm/e2m1-asm", "c.py", line, "e2m1x2", "it is a test") for line in (3, 4))


CHANGED = FileResult("b.h", ("vllm/e2m1-asm 1",), b"old\n", b"new\n")
TREE = TreeResult(Path("t"), "vllm", "0.33.0", "next3", ApplyState.APPLIED, (CHANGED,), (), PATCHES, ("a note",), LEFT)


def printed(thing: object) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def test_each_file_is_below_the_patch_that_changes_it_and_what_is_left_has_its_reason() -> None:
    text = printed(report.text(Applied("apply", True, (TREE,)), diff=False))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "t: next3 applied to vllm 0.33.0, 1 file changed"
    assert lines[1].startswith("vllm/e2m1-asm: ")
    assert lines[2] == "b.h"
    assert "vllm/gdn-prefill: since 0.30: the kernel is chosen on SM12x" in lines
    assert "2 places: it is a test" in lines
    assert lines[-1] == "next: `fp4patch verify t` compiles and checks the code"
    assert "c.py:3: e2m1x2" in printed(report.text(Applied("apply", True, (TREE,)), diff=True))
