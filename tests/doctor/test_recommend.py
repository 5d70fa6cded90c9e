"""Recommended variant for each tree and toolkit, which is only printed and never applied."""

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from fp4patch import cli
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import Arch
from fp4patch.doctor.tree_answers import recommend


@pytest.mark.parametrize(
    ("target", "version", "cuda", "variant", "word"),
    [
        ("cutlass", "4.2.1", None, "next3", "nothing on targets with a suffix"),
        ("cutlass", "4.7.0", "13.0", "next3", "nothing on targets with a suffix"),
        ("vllm", "0.16.0", "13.0", "native", "keeps the suffix"),
        ("vllm", "0.20.0", "12.9", "native", "keeps the suffix"),
        ("vllm", "0.33.0", "13.0", "", "12.0f"),
        ("vllm", "0.33.0", "12.9", "", '"12.0a;12.1a"'),
        ("vllm", "0.33.0", None, "native", "keeps the suffix"),
        ("vllm", None, "13.0", "native", "keeps the suffix"),
    ],
)
def test_the_first_advice_that_fits_release_and_toolkit_counts(
    target: str, version: str | None, cuda: str | None, variant: str, word: str
) -> None:
    tree = Identified(Path("/"), load().target(target), Version(version) if version else None)
    advice = recommend(tree, Version(cuda) if cuda else None)
    assert advice is not None
    assert advice.variant == variant
    assert word in advice.because


def test_advice_for_one_gpu_is_left_out_where_others_alone_are_named() -> None:
    tree = Identified(Path("/"), load().target("vllm"), Version("0.17.1"))
    wanted = {(): "native", ("12.1",): "native", ("12.0", "12.1"): "native", ("12.0",): ""}
    for gpus, variant in wanted.items():
        advice = recommend(tree, Version("13.0"), tuple(map(Arch.parse, gpus)))
        assert advice
        assert advice.variant == variant


def test_apply_without_a_variant_recommends_and_changes_nothing(
    tree_copy: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert cli.run(["apply", str(tree)]) == 2
    assert "--variant next3 is recommended" in capsys.readouterr().err
    assert not (tree / ".fp4patch").exists()


def test_apply_without_a_variant_keeps_the_one_that_is_applied(tree_copy: Callable[[str, str], Path]) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", "turbo", str(tree)]) == 0
    assert cli.run(["apply", "--check", str(tree)]) == 0
