"""Functions that patches declare, compared with the lexer's findings in real trees; no check is forgotten."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.catalog.coverage import names
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.proof.coverage import touched_functions
from fp4patch.tree.folding import fold_tree, plan_for
from fp4patch.tree.locked import reading

TREES = {
    "cutlass": [("4.2.1", "next2"), ("4.2.1", "next3"), ("4.8.0", "turbo"), ("4.8.0", "next3")],
    "vllm": [("0.14.1", "turbo"), ("0.14.1", "turbo2"), ("0.33.0", "next3")],
    "flashinfer": [("0.5.0", "next3"), ("0.7.2", "next3"), ("0.7.2", "turbo"), ("0.7.2", "turbo2")],
}
SLOW = {"flashinfer"}
"""Folding the patches into such a tree takes half a minute: FP4PATCH_TEST_ALL_TREES=1 runs these."""


def found(tree: Path, variant: str) -> dict[str, list[str]]:
    """The functions that a variant touches in a tree, each with its files."""
    catalog = load()
    identified = next(one for one in identify_all([tree], catalog) if one.root == tree)

    with reading([identified], lambda *_: None) as (locked,):
        folds = fold_tree(locked, plan_for(locked, catalog.variant(variant), catalog))
        assert not folds.problems
        before = {path: locked.pristine(path) for path in folds.files}
    after = {path: done.desired for path, done in folds.files.items()}
    functions: dict[str, list[str]] = {}
    for path, touched in touched_functions(tree, identified.target, before, after).items():
        for function in touched:
            functions.setdefault(function, []).append(path)
    return functions


@pytest.mark.parametrize("target", TREES)
def test_what_is_declared_is_what_the_edits_touch(target: str, pristine_tree: Callable[[str, str], Path]) -> None:
    if target in SLOW and os.environ.get("FP4PATCH_TEST_ALL_TREES") != "1":
        pytest.skip("FP4PATCH_TEST_ALL_TREES=1 runs it")
    catalog = load()
    declared: set[str] = set()
    seen: set[str] = set()
    for version, variant in TREES[target]:
        entries = {entry for patch in catalog.patches_of(catalog.variant(variant), target) for entry in patch.touches}
        declared |= entries
        for function, files in found(pristine_tree(target, version).resolve(), variant).items():
            matching = {entry for entry in entries if names(entry, function, files)}
            assert matching, f"{target} {version}: {variant} touches {function} of {files}, and no patch says so"
            seen |= matching
    in_no_release = {entry for entry in declared - seen if not entry.startswith("*")}  # a glob can be of another layout
    assert in_no_release == set(), "declared, and in no release"


@pytest.mark.parametrize(
    ("entry", "function", "named"),
    [
        ("f(", "a::b::f(int x)", True),
        ("b::f(int", "a::b::f(int x)", True),
        ("f(in", "a::b::f(int x)", False),
        ("A<T,  2, Round>", "cutlass::A<T, 2, Round>", True),
        ("A<T, 2", "cutlass::A<T, 24, Round>", False),
        ("T, 2", "cutlass::A<T, 2, Round>", False),
        ("T", "cutlass::A<cutlass::T, 2>", False),
        ("cmake/*.cmake", "cmake/utils.cmake", True),
        ("*csrc/*", "f()", False),
    ],
)
def test_an_entry_names_functions_by_the_beginning_of_their_names(entry: str, function: str, named: bool) -> None:
    assert names(entry, function) is named


def test_a_glob_names_what_is_in_its_files() -> None:
    assert names("*csrc/*", "f()", ["data/csrc/a.cu"])
