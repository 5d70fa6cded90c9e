"""Mutants of a patch's own text in a build file, lists that no check names, and evaluations that are kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flash_attention import CASE, LISTS, configures
from small_trees import small_tree

from fp4patch.adapters import vllm
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.core.store import Store
from fp4patch.proof import builds
from fp4patch.proof.view import SourceView

FILE = "CMakeLists.txt"


@pytest.fixture
def evaluated(pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Callable[..., builds.Evaluated]:
    """``evaluated(after, store)``: of a small flash-attention, before the patch and with ``after`` as its lists.

    For some arch lists, and one CUDA release.
    """
    tree = small_tree("flash_attention", tmp_path / "fa")
    utils = pristine_tree("vllm", "0.20.0") / "cmake/utils.cmake"  # the same functions
    (tree / "cmake/utils.cmake").write_text(utils.read_text(encoding="utf-8"), encoding="utf-8")
    before = configures(CASE.before)
    (tree / FILE).write_text(before)

    def get(after: str, store: Store | None = None) -> builds.Evaluated:
        (tree / FILE).write_text(configures(after))
        catalog = load()
        (found,) = identify_all([tree], catalog)
        patch = catalog.patches["flash_attention/native-arch"]
        (check,) = patch.builds
        few = replace(check, reaches=("12.0a;12.1a", "12.0"), keeps=(), same=("9.0a;10.0",))
        assert found.target.build
        known = replace(found, target=replace(found.target, build=replace(found.target.build, cuda=())))
        view = SourceView(tree, {FILE: before.encode()})
        return builds.evaluate(view, known, [replace(patch, builds=(few,))], store)

    return get


def texts(found: builds.Evaluated, after: str) -> set[str]:
    """Return the texts of the loose lines."""
    lines = configures(after).split("\n")
    return {lines[line - 1].strip() for line in found.loose.get(FILE, ())}


def test_each_mutant_of_the_patchs_own_lists_is_found_and_the_results_are_kept(
    evaluated: Callable[..., builds.Evaluated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    configure = vllm.configure

    def counted(tree: Path, cuda: str, archs: str, *rest: Any, **named: Any) -> Any:
        runs.append(archs)
        return configure(tree, cuda, archs, *rest, **named)

    monkeypatch.setattr(vllm, "configure", counted)
    store = Store(tmp_path / "store")
    first = evaluated(CASE.after, store)
    assert {one.detail for one in first.results} == {""}
    assert texts(first, CASE.after) == set()
    # In the other order, and with PTX: the check does not name them.
    assert {"12.1a;12.0a", "12.0a;12.1a+PTX"} <= {one.asked for one in first.results}
    number = len(runs)
    assert number > 0
    assert evaluated(CASE.after, store) == first
    assert len(runs) == number
    (tmp_path / "fa/cmake/new.cmake").write_text("")
    evaluated(CASE.after, store)
    assert len(runs) == 2 * number


def test_text_that_no_list_tells_from_a_mutant_is_loose(evaluated: Callable[..., builds.Evaluated]) -> None:
    conditions = ('if(NOT EXISTS "/.nowhere-9")', 'if("${CUDA_ARCHS}" MATCHES "9[.]5")\nset(FA2_ARCHS)')
    blocks = "".join(f"{condition}\nendif()\n" for condition in conditions)
    after = CASE.after.replace(LISTS, blocks + LISTS).replace("12.0;12.1;8.0+PTX", "12.0;12.1;13.0;8.0+PTX")
    of_lists = f'{LISTS} "12.0;12.1;13.0;8.0+PTX" "${{CUDA_ARCHS}}")'  # no list names 13.0
    assert texts(evaluated(after), after) == {*(one.split("\n")[0] for one in conditions), of_lists}
