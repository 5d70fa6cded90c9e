"""Each patch's ``cases.diff``: excerpts of shapes that upstream's source has had, and what the patch makes of them.

An edited excerpt is in turn left alone or refused, never edited twice. Any other comes to the state that the case
names: not-needed, upstreamed or drifted. All edits of the patch run on each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from cases import Case, cases
from mutations_vllm import ENCODER, OPTIONS

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Patch
from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import Edit, WrapAsm
from fp4patch.edits.edit import fold

CASES = [
    pytest.param(patch, case, id=f"{patch.id}-{case.name}")
    for patch in load().patches.values()
    for case in cases(patch.id).values()
]
EDITED = [parameters for parameters in CASES if parameters.values[1].state == "edited"]  # type: ignore[union-attr]


@dataclass(frozen=True)
class Beside:
    """An edit whose templates are located beside its patch."""

    patch: Patch
    edit: Edit

    @property
    def options(self) -> dict[str, str]:
        gates = isinstance(self.edit, WrapAsm) and self.edit.gates
        return OPTIONS | {"stochastic_encoder": "stochastic", "stochastic_guard": "!RS"} if gates else OPTIONS

    def template(self, name: str) -> str:
        if name.startswith("../../../encoders/"):  # a placeholder: the encoders have tests of their own
            encoder = Path(name).stem
            return ENCODER.replace("threshold", encoder).replace("THRESHOLD", encoder.upper())
        return Path(self.patch.directory, name).read_text(encoding="utf-8")


def steps(patch: Patch) -> list[Beside]:
    return [Beside(patch, edit) for edit in patch.edits]


def of_another_file(outcome: Outcome, edit: Edit) -> bool:
    """Return whether the edit is about other files of the release, or about none of it."""
    otherwise = getattr(edit, "otherwise", "") or None
    return isinstance(outcome, NothingToDo) and (outcome.elsewhere or outcome.because == otherwise)


@pytest.mark.parametrize(("patch", "case"), CASES)
def test_a_shape_comes_to_what_its_case_says(patch: Patch, case: Case) -> None:
    done = fold(case.before, steps(patch))
    if case.state == "edited":
        assert done.text == case.after
        assert any(isinstance(outcome, Rewritten) for outcome in done.outcomes)
        return
    here = [o for o, edit in zip(done.outcomes, patch.edits, strict=True) if not of_another_file(o, edit)]
    here = here or list(done.outcomes)  # an edit that searches for its files may find this is none of them
    if case.state == State.DRIFTED:  # of one condition; another one may be understood
        assert any(isinstance(outcome, Drift) for outcome in here)
    else:
        assert done.text == case.before
        assert {o.state if isinstance(o, NothingToDo) else type(o) for o in here} == {State(case.state)}


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_no_shape_is_edited_twice(patch: Patch, case: Case) -> None:
    once = fold(case.before, steps(patch)).text
    assert fold(once, steps(patch)).text == once


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_line_endings_and_byte_order_marks_pass_through(patch: Patch, case: Case) -> None:
    windows = "\ufeff" + case.before.replace("\n", "\r\n")
    assert fold(windows, steps(patch)).text == "\ufeff" + case.after.replace("\n", "\r\n")
    assert fold(case.before.removesuffix("\n"), steps(patch)).text == case.after.removesuffix("\n")


@pytest.mark.parametrize("patch", load().patches.values(), ids=lambda patch: patch.id)
def test_every_patch_has_a_shape_that_it_edits_and_one_that_it_leaves(patch: Patch) -> None:
    states = {case.state for case in cases(patch.id).values()}
    assert "edited" in states
    assert states & {"not-needed", "upstreamed"}


@pytest.mark.parametrize("patch", load().patches.values(), ids=lambda patch: patch.id)
def test_excerpts_are_short(patch: Patch) -> None:
    for case in cases(patch.id).values():
        assert case.before.count("\n") <= 40, case.name  # what the patch itself adds may be longer
