"""Conditions in text that an edit leaves as it is, and lines of which a condition does not look at everything."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Patch
from fp4patch.core.results import NothingToDo, State
from fp4patch.edits.operation import Condition
from fp4patch.edits.replace import Replace
from fp4patch.proof import conditions
from fp4patch.proof.subject import Idle
from fp4patch.proof.toolchain import Toolchain

FILE = "generate_kernels.py"
NEW = "def chosen(arch):\n    return arch in [89, 120, 121]\n"
OLD = NEW.replace(", 121", "")
SHIM = """
import sys
from pathlib import Path
there = {"HEAD": 128}
exec(Path(sys.argv[1]).read_text(), there)
print(*(one for one in sys.argv[2:] if there["chosen"](int(one.replace(".", "")))))
"""


@pytest.fixture
def patch(tmp_path: Path) -> Patch:
    """A patch with one edit, whose condition runs ``chosen`` of a file."""
    (tmp_path / "chosen.py").write_text(SHIM)
    real = load().patches["vllm/sm120-family"]
    named = (edit for edit in real.edits if isinstance(edit, Replace) and edit.condition)
    edit = next(edit for edit in named if edit.language == "python")
    condition = Condition(shim="chosen.py", begins="chosen", before=("8.9", "12.0"), after=("8.9", "12.0", "12.1"))
    return replace(real, directory=str(tmp_path), edits=(replace(edit, search=(FILE,), condition=condition),))


@pytest.mark.parametrize(
    ("content", "state", "details", "asides"),
    [
        (NEW, State.UPSTREAMED, [""], 0),
        (OLD, State.UPSTREAMED, ["expected 8.9 12.0 12.1, got 8.9 12.0"], 0),
        (OLD, State.NOT_NEEDED, [], 1),
        (NEW.replace("121", "121, 130"), State.UPSTREAMED, [], 1),
        ("def other(): ...\n", State.UPSTREAMED, [], 1),
    ],
)
def test_what_is_upstreamed_on_a_patchs_word_alone_fails(
    patch: Patch,
    toolchain: Toolchain,
    content: str,
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED],
    details: list[str],
    asides: int,
) -> None:
    ((_, condition),) = patch.conditions
    idle = Idle(FILE, content.encode(), patch, condition, NothingToDo(state, "of a sign"))
    results, aside = conditions.evaluate_idle([idle], toolchain)
    assert [result.detail for result in results] == details
    assert len(aside) == asides
    assert all("since of a sign" in one.because for one in aside)


@pytest.mark.parametrize(
    ("new", "loose"),
    [
        ("def chosen(arch):\n    return arch in [89, 120, 121]\n", set()),
        ("def chosen(arch):\n    return (arch in [89, 120, 121]\n        and HEAD == 128)\n", {3}),
        ("def chosen(arch):\n    return (HEAD > 1 and arch in [89, 120, 121])\n", {2}),
    ],
)
def test_a_line_that_the_condition_does_not_tell_from_a_mutant_is_loose(
    patch: Patch, toolchain: Toolchain, new: str, loose: set[int]
) -> None:
    (result,), (cut,) = conditions.evaluate({FILE: OLD.encode()}, {FILE: new.encode()}, [patch], toolchain)
    assert result.detail == ""
    assert cut.loose == loose


def test_mutants_that_do_not_end_leave_their_lines_loose(
    patch: Patch, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "_LIMIT", 3)
    endless = OLD.replace(
        "    return", "    n = 1\n    while n == 0 or n > 1 and n > 2 and n > 3:\n        n += 0\n    return"
    )
    new = endless.replace("[89, 120]", "[89, 120, 121]")
    _, (cut,) = conditions.evaluate({FILE: OLD.encode()}, {FILE: new.encode()}, [patch], toolchain)
    assert 3 in cut.loose
