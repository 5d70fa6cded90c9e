"""The tables of vLLM's NVFP4 backends on the page are what its source says."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from fp4patch.catalog.manifest import load
from fp4patch.doctor import model
from tools.pages import _dense_backends, _kv_cache, moe_backends
from tools.pages._made_part import END, placed
from tools.pages._vllm_stand_ins import functions

GetTree = Callable[[str, str], Path]
RECORD = load().root / model.RECORD
PAGE = moe_backends.PAGE.read_text(encoding="utf-8")
RELEASES = [archive.version for archive in load().target("vllm").archives]
FEW = ("0.10.2", "0.19.1", "0.29.0", "0.30.0", "0.31.0", "0.33.0")
ALL = bool(os.environ.get("FP4PATCH_TEST_ALL_TREES"))
GPU = (12, 1)


def rows(mark: str) -> dict[str, list[str]]:
    """Return the cells of each release in a table of the page."""
    part = PAGE.partition(f"<!-- made by tools.regenerate {mark} -->\n")[2].partition(END)[0]
    found = dict[str, list[str]]()
    for line in re.findall(r"^\| (\d.*) \|$", part, re.MULTILINE):
        span, *cells = line.split(" | ")
        first, _, last = span.partition(" to ")
        covered = (r for r in RELEASES if Version(first) <= Version(r) <= Version(last or first))
        found |= dict.fromkeys(covered, cells)
    return found


@pytest.mark.parametrize("version", RELEASES if ALL else FEW)
def test_the_page_has_the_rows_that_a_tree_gives(pristine_tree: GetTree, version: str) -> None:
    tree = pristine_tree("vllm", version)
    for mark, (_, make, has_row) in moe_backends.TABLES.items():
        assert rows(mark).get(version) == (make(tree) if has_row(tree) else None), mark


@pytest.mark.skipif(not ALL, reason="FP4PATCH_TEST_ALL_TREES reads every release")
def test_regenerating_gives_the_committed_page(pristine_tree: GetTree) -> None:
    trees, page = [(version, pristine_tree("vllm", version)) for version in RELEASES], PAGE
    found = dict[str, list[moe_backends.Row]]()
    for mark, (heads, make, has_row) in moe_backends.TABLES.items():
        found[mark] = moe_backends.rows(make, [tree for tree in trees if has_row(tree[1])])
        page = placed(page, mark, moe_backends.table(heads, found[mark]))
    assert page == PAGE
    assert moe_backends.record(found) == RECORD.read_text(encoding="utf-8")


def test_the_page_is_made_of_the_record() -> None:
    tables, page = json.loads(RECORD.read_text(encoding="utf-8"))["tables"], PAGE
    assert tables.keys() == moe_backends.TABLES.keys()
    for mark, (heads, _, _) in moe_backends.TABLES.items():
        page = placed(page, mark, moe_backends.table(heads, tables[mark]))
    assert page == PAGE
    assert moe_backends.record(tables) == RECORD.read_text(encoding="utf-8")


def test_releases_of_equal_cells_are_one_row_and_all_of_the_catalog_are_on_the_page(tmp_path: Path) -> None:
    cells = {"a": ["`x`"], "b": ["`x`"], "c": ["-"]}
    trees = [(version, tmp_path / name) for version, name in (("1.0", "a"), ("1.1", "b"), ("1.2", "c"))]
    table = moe_backends.table(("vLLM", "first"), moe_backends.rows(lambda tree: cells[tree.name], trees))
    assert table == "| vLLM | first |\n|---|---|\n| 1.0 to 1.1 | `x` |\n| 1.2 | - |\n"
    assert [*rows("moe-backends, dense")] == [*rows("moe-backends, KV cache")] == RELEASES


def test_a_kernel_for_other_gpus_is_not_among_those_of_experts(vllm: Callable[[str], Path]) -> None:
    tree = vllm("0.33.0")
    kernel = tree / moe_backends.LAYERS / "experts/flashinfer_cutlass_moe.py"
    text = kernel.read_text()
    kernel.write_text(text.replace("is_device_capability_family(120)", "is_device_capability_family(100)"))
    assert moe_backends.row(tree)[0].startswith("`cutlass`, `marlin`")


def test_no_release_prefers_16_bits_and_a_list_that_did_is_found(vllm: Callable[[str], Path]) -> None:
    """The order of vLLM's main branch between #53014 and #55170 came into no release."""
    firsts = {release: cells[0].split(", ")[0] for release, cells in rows("moe-backends, dense").items()}
    assert not [release for release, first in firsts.items() if "_" in first]
    assert "W4A16" not in rows("moe-backends, dense")["0.29.0"][0]
    tree = vllm("0.30.0")
    lists = tree / _dense_backends.KERNELS / "__init__.py"
    text = lists.read_text()
    head, listed, tail = text.partition("    PlatformEnum.CUDA: [\n        FlashInferCuteDslNvFp4LinearKernel,\n")
    assert listed
    lists.write_text(f"{head}{listed}        FlashInferCuteDslNvFp4W4A16LinearKernel,\n{tail}")
    assert _dense_backends.row(tree)[0].startswith("_`FlashInferCuteDslW4A16`_, `FlashInferCutlass`")
    kernel = tree / _dense_backends.KERNELS / "nvfp4/cutlass.py"
    kernel.write_text(kernel.read_text().replace("if cutlass_fp4_supported():", "if cutlass_fp4_supported() is None:"))
    assert "`Cutlass`" not in _dense_backends.row(tree)[0]


def test_the_kernels_in_italics_are_those_that_upstream_takes_for_16_bits(pristine_tree: GetTree) -> None:
    tree = pristine_tree("vllm", "0.33.0")
    path = tree / _dense_backends.KERNELS / "__init__.py"
    choice = next(item for _, item in functions(path) if item.name == "init_nvfp4_linear_kernel")
    text = path.read_text().splitlines()[choice.lineno - 1 : choice.end_lineno]
    named = re.findall(r"\w+", "\n".join(text).partition("a16_kernels = (")[2].partition(")")[0])
    shown = re.findall(r"_`(\w+)`_", _dense_backends.row(tree)[0])
    assert sorted(shown) == sorted(name.replace("NvFp4", "").replace("LinearKernel", "") for name in named)


def test_a_stand_in_is_no_empty_list(vllm: Callable[[str], Path]) -> None:
    """What is not evaluated ends the script, and does not make a shorter list."""
    tree = vllm("0.33.0")
    path = tree / _dense_backends.KERNELS / "__init__.py"
    path.write_text(path.read_text().replace("kernels = prioritize_humming(", "kernels = of_another_module("))
    with pytest.raises(TypeError, match="a stand-in is no collection"):
        _dense_backends.row(tree)


def test_who_fills_an_nvfp4_kv_cache_is_read(vllm: Callable[[str], Path]) -> None:
    tree = vllm("0.33.0")
    backend = tree / _kv_cache.BACKEND
    text = backend.read_text()
    assert _kv_cache.row(tree) == ["admitted", "FlashInfer's, in the order of the tokens"]
    backend.write_text(text.replace("for f in (80, 90, 120))", "for f in (80, 90))"))
    assert _kv_cache.row(tree)[0] == "refused"
    tree = vllm("0.31.0")
    assert _kv_cache.row(tree) == ["refused", "vLLM's, V's block scales swizzled"]
    backend = tree / _kv_cache.BACKEND
    text = backend.read_text().replace("is_device_capability_family(100)", "has_device_capability(100)")
    backend.write_text(text)
    assert _kv_cache.row(tree)[0] == "refused"  # it needs kernels for the prefill, which SM12x has not
    backend.write_text(text.replace("supports_trtllm_attention(is_prefill=True)", "True"))
    assert _kv_cache.row(tree)[0] == "admitted"
