"""A tree's own build, evaluated before and after the patches, for the lists of architectures that a patch names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.commands.verify import builds
from fp4patch.core.errors import ToolchainError
from fp4patch.core.verdict import Verdict
from fp4patch.proof.view import SourceView

LISTS = "CMakeLists.txt"


@pytest.fixture
def evaluated(pristine_tree: Callable[[str, str], Path]) -> Callable[[dict[str, bytes | None]], builds.Evaluated]:
    """``evaluated(overlay)``: of vLLM 0.33.0, pristine with this over it and "patched" as upstream released it."""
    catalog, tree = load(), pristine_tree("vllm", "0.33.0").resolve()
    (found,) = identify_all([tree], catalog)
    patch = catalog.patches["vllm/cmake-sm121a"]
    assert found.target.build
    target = replace(found.target, build=replace(found.target.build, cuda=("13.0",)))

    def get(overlay: dict[str, bytes | None]) -> builds.Evaluated:
        return builds.evaluate(SourceView(tree, overlay), replace(found, target=target), [patch])

    return get


def test_a_list_that_does_not_reach_sm121_fails_and_says_so(evaluated: Callable[..., builds.Evaluated]) -> None:
    found = {one.asked: one for one in evaluated({}).results}
    assert (found["12.0a"].verdict, found["12.0a"].detail) == (Verdict.PASS, "")
    assert (found["12.0a;12.1a"].after, found["12.0a;12.1a"].verdict) == ("12.0a", Verdict.FAIL)
    assert found["12.0a;12.1a"].detail == "no code with the instruction for sm_121"


def test_what_must_stay_as_it_was_is_compared_with_the_pristine_build(
    evaluated: Callable[..., builds.Evaluated], pristine_tree: Callable[[str, str], Path]
) -> None:
    text = (pristine_tree("vllm", "0.33.0") / LISTS).read_text(encoding="utf-8")
    line = 'cuda_archs_loose_intersection(FP4_SM120_ARCHS "12.0f"'
    assert text.count(line) == 1
    changed = text.replace(line, line.replace("12.0f", "9.0a"))
    found = {one.asked: one for one in evaluated({LISTS: changed.encode()}).results}
    assert found["12.0a"].before != found["12.0a"].after
    assert found["12.0a"].detail == "it is not as before"


def test_without_cmake_it_is_set_aside_with_the_reason(
    evaluated: Callable[..., builds.Evaluated], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise ToolchainError("there is no cmake", help="install one")

    monkeypatch.setattr("fp4patch.adapters.vllm.configure", missing)
    found = evaluated({})
    assert found.results == ()
    assert [(one.probe, one.because) for one in found.aside] == [("vllm/arch-lists", "there is no cmake")]
