"""Each patch's ``cases/``: excerpts of the shapes that upstream's source has had, and what the patch makes of them.

``<shape>.before.*`` becomes ``<shape>.after.*``, which in turn is left alone or refused, never edited twice;
``<shape>.<state>.*`` comes to that state: not-needed, upstreamed or drifted. All edits of the patch run on each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
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
    for case in sorted(Path(patch.directory, "cases").iterdir())
]
EDITED = [case for case in CASES if ".before." in str(case.id)]


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


def read(path: Path) -> str:
    return path.read_bytes().decode()


def of_another_file(outcome: Outcome, edit: Edit) -> bool:
    """Return whether the edit is about other files of the release, or about none of it."""
    otherwise = getattr(edit, "otherwise", "") or None
    return isinstance(outcome, NothingToDo) and (outcome.elsewhere or outcome.because == otherwise)


def expectation(case: Path) -> str:
    return case.suffixes[-2].removeprefix(".")


@pytest.mark.parametrize(("patch", "case"), CASES)
def test_a_shape_comes_to_what_its_name_says(patch: Patch, case: Path) -> None:
    before = read(case)
    match expectation(case):
        case "before":
            done = fold(before, steps(patch))
            assert done.text == read(case.with_name(case.name.replace(".before.", ".after.")))
            assert any(isinstance(outcome, Rewritten) for outcome in done.outcomes)
        case "after":
            assert case.with_name(case.name.replace(".after.", ".before.")).is_file()
        case state:
            done = fold(before, steps(patch))
            here = [o for o, edit in zip(done.outcomes, patch.edits, strict=True) if not of_another_file(o, edit)]
            here = here or list(done.outcomes)  # an edit that searches for its files may find this is none of them
            if state == State.DRIFTED:  # of one condition; another one may be understood
                assert any(isinstance(outcome, Drift) for outcome in here)
            else:
                assert done.text == before
                assert {o.state if isinstance(o, NothingToDo) else type(o) for o in here} == {State(state)}


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_no_shape_is_edited_twice(patch: Patch, case: Path) -> None:
    once = fold(read(case), steps(patch)).text
    assert fold(once, steps(patch)).text == once


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_line_endings_and_byte_order_marks_pass_through(patch: Patch, case: Path) -> None:
    before, after = read(case), read(case.with_name(case.name.replace(".before.", ".after.")))
    windows = "\ufeff" + before.replace("\n", "\r\n")
    assert fold(windows, steps(patch)).text == "\ufeff" + after.replace("\n", "\r\n")
    assert fold(before.removesuffix("\n"), steps(patch)).text == after.removesuffix("\n")


@pytest.mark.parametrize("patch", load().patches.values(), ids=lambda patch: patch.id)
def test_every_patch_has_a_shape_that_it_edits_and_one_that_it_leaves(patch: Patch) -> None:
    found = {expectation(case) for case in Path(patch.directory, "cases").iterdir()}
    assert "before" in found
    assert found & {"not-needed", "upstreamed"}


@pytest.mark.parametrize("patch", load().patches.values(), ids=lambda patch: patch.id)
def test_excerpts_are_short(patch: Patch) -> None:
    for case in Path(patch.directory, "cases").iterdir():
        if expectation(case) != "after":  # what the patch itself adds may be longer
            assert read(case).count("\n") <= 40, case.name
