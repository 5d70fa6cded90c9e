"""docs/upstream: pages and patches are what the patches of today make of the releases that the pages name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from tools.pages import upstream

PULLS = [pull for pull in upstream.PULLS if pull.target not in ("transformer_engine", "mlx")]
"""Those whose releases the package index has whole: the kernels of the others are in git alone."""


@pytest.mark.parametrize("pull", PULLS, ids=lambda pull: pull.page)
def test_the_page_and_the_patch_are_those_of_today(
    pull: upstream.Pull, pristine_tree: Callable[[str, str], Path]
) -> None:
    made = upstream.mail(pull, pristine_tree(pull.target, pull.version))
    page = (upstream.FOLDER / f"{pull.page}.md").read_text()
    assert upstream.with_parts(page, pull, made) == page, "python -m tools.regenerate upstream TREE…"
    kept = upstream.FOLDER / f"{pull.page}.patch"
    assert kept.exists() == (made.count("\n") <= upstream.LONGEST)
    assert not kept.exists() or kept.read_text() == made


@pytest.mark.parametrize("pull", upstream.PULLS, ids=lambda pull: pull.page)
def test_a_page_has_a_table_its_threads_a_way_to_test_it_and_where_it_ran(pull: upstream.Pull) -> None:
    page = (upstream.FOLDER / f"{pull.page}.md").read_text()
    heads = re.findall(r"^## (.*)", page, re.MULTILINE)
    parts = ["Title", "Message", "Patch", "Before and after", "Threads", "Test it without the hardware", "Where it ran"]
    assert heads == parts
    assert load().patches[f"{pull.target}/{pull.patch}"].title in page
    assert re.search(r"not run|nothing has", page.partition("## Where it ran")[2])
    table = page.partition("## Before and after")[2].partition("## Threads")[0]
    assert re.search(r"^\|.*before|^\| probe", table, re.MULTILINE)


def test_every_page_and_patch_is_of_a_pull_request_that_the_index_names() -> None:
    index = (upstream.FOLDER / "README.md").read_text()
    pages = {pull.page for pull in upstream.PULLS}
    assert {file.stem for file in upstream.FOLDER.iterdir()} - {"README"} == pages
    assert all(f"({page}.md)" in index for page in pages)
