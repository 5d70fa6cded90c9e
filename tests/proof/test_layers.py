"""Whole layers: vLLM's own, of a real tree, and small ones that are wrong in each way.

``FP4PATCH_LAYERS=all`` executes those of vLLM and FlashInfer, which take minutes where nothing was compiled before.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from verified import subject

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.catalog.probe import Layer, ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof.layers import _COMPUTES, execute_layers
from fp4patch.proof.result import ProbeResult
from fp4patch.proof.subject import Means, Probes, Subject
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SourceView, nothing_to_show
from fp4patch.reference.formats import bfloat16, e4m3_decode
from fp4patch.sass import Array, HostProgram

A121 = Arch.parse("sm_121a")
SMALL = """
#include <cstdlib>
__global__ void fill(unsigned char *bytes, long count) {
  for (long i = threadIdx.x; i < count; i += blockDim.x) bytes[i] = BYTE;
}
int main(int, char **arguments) {
  long const m = atol(arguments[1]), n = atol(arguments[2]);
  fill<<<1, 32>>>((unsigned char *)strtoull(arguments[13], 0, 0), LENGTH);
}
"""
LAYER = Layer(
    name="small", title="small", source="layer.cu", computes="nvfp4-linear", shapes=((1, 32, 32),), patch="lib/guard"
)


def small(folder: Path, toolchain: Toolchain, source: str) -> ProbeResult:
    """Execute a layer of a tree with nothing else."""
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include/lib.h").write_text("")
    (folder / "layer.cu").write_text(source)
    looked_at = subject(SourceView(folder), Probes(ran=(), archs=[A121]), (), toolchain)
    looked_at = replace(looked_at, layers=[(LAYER, folder / "layer.cu")])
    (row,) = execute_layers(looked_at, Means(store=Store(cache_dir() / "compilations")))
    return row


@pytest.mark.parametrize(
    ("byte", "length", "said"),
    [
        ("0", "2 * m * n", "weight's codes"),
        ("0", "2 * m * n + 1", "stray store of 1 bytes at 0xa00000040"),
        ("clock64()", "2 * m * n", "does not support CS2R"),
    ],
)
def test_a_layer_that_is_wrong_fails(byte: str, length: str, said: str, toolchain: Toolchain, tmp_path: Path) -> None:
    row = small(tmp_path, toolchain, SMALL.replace("BYTE", byte).replace("LENGTH", length))
    assert (row.probe, row.kind, row.verdict) == ("lib/small", ProbeKind.LAYER, Verdict.FAIL)
    (check,) = row.checks
    assert check.rule == "equals NumPy's for 1 x 32 x 32"
    assert said in check.detail


def test_a_layer_that_does_not_compile_fails_with_the_compilers_words(toolchain: Toolchain, tmp_path: Path) -> None:
    row = small(tmp_path, toolchain, "int main() { return nothing; }")
    assert ([check.rule for check in row.checks], row.verdict) == (["compiles"], Verdict.FAIL)
    assert '"nothing" is undefined' in row.error


def test_a_compiler_that_does_not_know_the_target_judges_nothing(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_layers.A121", Arch.parse("sm_199a"))
    row = small(tmp_path, toolchain, SMALL.replace("BYTE", "0").replace("LENGTH", "0"))
    assert row.verdict is Verdict.UNSUPPORTED


def test_vllms_layer_without_cutlass_says_what_it_needs() -> None:
    catalog = load()
    layers = {layer.unit.id: layer for layer, _ in catalog.layers_of(catalog.variant("native"), "vllm")}
    layer = layers["vllm/fp4-linear"]
    assert not catalog.layers_of(catalog.variant("native"), "cutlass")
    without = replace(layer.unit, needs=None)
    assert "`verify --layers` takes its tree beside this one" in nothing_to_show(without, SourceView(Path()), {})
    assert not nothing_to_show(without, SourceView(Path()), {"cutlass": ()})


@pytest.mark.skipif("FP4PATCH_LAYERS" not in os.environ, reason="FP4PATCH_LAYERS=all executes it, in minutes")
@pytest.mark.parametrize(
    ("name", "release", "of_headers", "named"),
    [
        ("vllm", "0.33.0", "4.8.0", "fp4-linear"),
        ("vllm", "0.33.0", "4.8.0", "fp4-experts"),
        ("flashinfer", "0.7.4", "", "fp4-linear"),
    ],
)
def test_a_whole_layer_equals_numpys(
    name: str,
    release: str,
    of_headers: str,
    named: str,
    pristine_tree: Callable[[str, str], Path],
    toolchain: Toolchain,
) -> None:
    """Of each tree as it is: its conversion is the hardware's, and nothing of ``native`` is in these files."""
    catalog = load()
    trees = [pristine_tree(name, release)] + ([pristine_tree("cutlass", of_headers)] if of_headers else [])
    tree, *others = identify_all(trees, catalog)
    ((layer, source),) = (
        (layer, source) for layer, source in catalog.layers_of(catalog.variant("native"), name) if layer.name == named
    )
    headers = {one.target.name: [one.root / folder for folder in one.target.include] for one in others}
    looked_at = subject(SourceView(tree.root), Probes(ran=(), archs=[A121]), (), toolchain, headers)
    whole: Subject = replace(looked_at, tree=tree, layers=[(layer, source)])
    (row,) = execute_layers(whole, Means(store=Store(cache_dir() / "compilations")))
    assert row.error == ""
    assert [check.detail for check in row.checks] == [_NONE[shape] for shape in layer.shapes]
    assert row.verdict is Verdict.PASS


_NONE = {
    (33, 96, 160): "none of 19,728 bytes differ",
    (300, 160, 224): "none of 157,760 bytes differ",
    (200, 160, 352): "none of 139,648 bytes differ",
    (33, 128, 128): "none of 12,608 bytes differ",
    (301, 256, 192): "none of 187,616 bytes differ",
}
"""Each packed code, each scale and each result."""


class Nothing(HostProgram):
    """A program that writes nothing."""

    def run(self, arguments: Sequence[int], arrays: Sequence[Array], **_: object) -> list[bytes]:
        """Return the writable arrays as they are."""
        assert [arguments[7], arguments[16]] == [arrays[2].address, arrays[-1].address]
        return [one.content for one in arrays if one.writable]


def test_experts_without_results_differ() -> None:
    wrong, said = _COMPUTES["nvfp4-experts"](Nothing(Path(), ()), 9, 128, 64)
    assert wrong >= 9 * 128 + 9 * 4
    assert "36 scales" in said  # of nine rows, and not of those that no expert has


class Multiplies(HostProgram):
    """A program that multiplies in float32, as its arguments and arrays are described."""

    wrong = 0

    def run(self, arguments: Sequence[int], arrays: Sequence[Array], **_: object) -> list[bytes]:
        """Return the product, with so many wrong results."""
        m, n, k = arguments[:3]
        a, b = (
            e4m3_decode(np.frombuffer(one.content, np.uint8).reshape(rows, k))
            for one, rows in zip(arrays[:2], (m, n), strict=True)
        )
        of_a = np.frombuffer(arrays[2].content, "<f4").reshape(k // 128, m)
        of_b = np.frombuffer(arrays[3].content, "<f4").reshape(n // 128, k // 128)
        blocks = [slice(first, first + 128) for first in range(0, k, 128)]
        total = np.zeros((m, n), np.float32)
        for number, block in enumerate(blocks):
            total += a[:, block] @ b[:, block].T * of_a[number][:, None] * np.repeat(of_b[:, number], 128)
        total.ravel()[: self.wrong] += np.abs(total).max() / 64
        return [(bfloat16(total).view("<u4") >> 16).astype("<u2").tobytes()]


@pytest.mark.parametrize("wrong", [0, 3])
def test_a_product_of_fp8_is_right_within_rounding(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Multiplies, "wrong", wrong)
    found = _COMPUTES["fp8-block-linear"](Multiplies(Path(), ()), 5, 256, 384)
    assert found == (wrong, f"{wrong} of 1,280 results are beyond rounding")
