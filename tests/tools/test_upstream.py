"""docs/upstream: pages and patches are what the patches of today make of the releases that the pages name."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_cutlass import checkout, git
from small_trees import small_tree

from tools.pages import upstream

ROOT = Path(__file__).parents[2]
OF_CASES = ("mlx-family", "qutlass-family", "transformer-engine-architectures")
"""Pages of projects whose releases are in git alone: excerpts of the release."""
HEADERS = "transformer-engine-backport"
"""A page whose patch is too long to be kept. The package index has a part of its files: headers."""
PACKAGED = {"flashinfer/jit/moe_utils.py": "jit/moe_utils.py"}
"""Files that a package has in another place than upstream's repository."""
PULLS = [pull for pull in upstream.PULLS if pull.page not in {*OF_CASES, HEADERS}]


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


@pytest.mark.parametrize("target", ["cutlass", "vllm", "flashinfer"])
def test_git_am_takes_the_patches_of_a_release_in_a_checkout_of_it(
    target: str, pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Each patch by itself, on the files of the release that its page names, at the paths of upstream's repository."""
    for pull in (pull for pull in PULLS if pull.target == target):
        patch = upstream.FOLDER / f"{pull.page}.patch"
        if patch.exists():
            tree, clone = pristine_tree(target, pull.version), tmp_path / pull.page
            for path in re.findall(r"^diff --git a/(\S+) ", patch.read_text(), re.MULTILINE):
                (clone / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree / PACKAGED.get(path, path), clone / path)
            checkout(clone)
            git(clone, "am", "--quiet", str(patch))


def pull_of(page: str) -> upstream.Pull:
    return next(pull for pull in upstream.PULLS if pull.page == page)


def changed(patch: str) -> dict[str, set[str]]:
    """Return the distinct lines that a patch removes and adds in each file, without the breaks of lists of options.

    An excerpt has one of several functions in which the same line is changed.
    """
    files = re.split(
        r"^diff --git a/(\S+) .*\n---.*\n\+\+\+.*\n", patch.removesuffix("-- \nfp4patch\n\n"), flags=re.MULTILINE
    )
    return {
        path: set(re.findall(r"^[-+].*", re.sub(r'"-gencode",| ', "", diff), re.MULTILINE))
        for path, diff in zip(files[1::2], files[2::2], strict=True)
    }


@pytest.mark.parametrize("page", OF_CASES)
def test_the_page_and_the_patch_are_what_is_made_of_excerpts(page: str, tmp_path: Path) -> None:
    pull = pull_of(page)
    made = upstream.mail(pull, small_tree(pull.target, tmp_path))
    kept = (upstream.FOLDER / f"{page}.patch").read_text()
    assert kept.partition("\ndiff --git")[0] == made.partition("\ndiff --git")[0]
    assert changed(kept) == changed(made)
    text = (upstream.FOLDER / f"{page}.md").read_text()
    assert upstream.with_parts(text, pull, kept) == text


def test_a_page_whose_patch_is_not_kept_has_the_message_of_today(pristine_tree: Callable[[str, str], Path]) -> None:
    pull = pull_of(HEADERS)
    made = upstream.mail(pull, pristine_tree(pull.target, pull.version))
    page = (upstream.FOLDER / f"{HEADERS}.md").read_text()
    counts = re.compile(r"^Changes \d+ files? of .*", re.MULTILINE)
    assert len(counts.findall(page)) == 1
    assert counts.sub("", upstream.with_parts(page, pull, made)) == counts.sub("", page)


def test_every_page_and_patch_is_of_a_pull_request_that_the_index_names() -> None:
    index = (upstream.FOLDER / "README.md").read_text()
    pages = {pull.page for pull in upstream.PULLS}
    assert {file.stem for file in upstream.FOLDER.iterdir()} - {"README"} == pages
    assert all(f"({page}.md)" in index for page in pages)
