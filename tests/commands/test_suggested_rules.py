"""``verify --suggest-rules``: the rules pass on the tree that they were made from, and fail on a sabotaged one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from few_probes import few_probes

from fp4patch.catalog.manifest import forget

NEW = """
name = "new"
title = "a new variant"
summary = "The patches of next2."
cost = ""
arch = ["sm_120a", "sm_121a"]

[targets.cutlass]
patches = ["e2m1-guard", "e2m1-converter"]
"""
PROBE = "float-to-e2m1-x2"
RIGHT = "uint32_t const bits = detail::copy_bits<float, uint32_t>(s);"
SLOW = RIGHT.replace("(s)", "(static_cast<float>(static_cast<double>(s) * 1.0000000001))")


@pytest.fixture
def variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = few_probes(tmp_path / "data", {PROBE: "cutlass"})
    file = data / "variants" / "new.toml"
    file.write_text(NEW)
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    return file


def test_the_suggested_rules_pass_and_a_sabotaged_tree_fails_under_them(
    variant: Path, whole_tree: Callable[[str, str], Path], fp4patch: Callable[..., Said]
) -> None:
    tree = whole_tree("cutlass", "4.2.1")
    assert fp4patch("apply", "--variant", "new", tree).status == 0
    judged = fp4patch("verify", "--no-execute", "--variant", "new", tree)
    assert judged.status == 1, "a variant without rules does not pass"

    suggested = fp4patch("verify", "--suggest-rules", "--variant", "new", tree)
    assert suggested.status == 0, suggested.err
    on_120, on_121 = tomllib.loads(suggested.out)["rules"]
    assert on_120["probes"] == on_121["probes"] == [f"cutlass/{PROBE}"]
    assert (on_120["arch"], on_121["arch"]) == (["sm_120a"], ["sm_121a"])
    assert on_120["identical"]
    assert on_120["requires"] == on_121["forbids"] == [r"^F2FP\..*\bE2M1\b"]
    assert on_121["max"].items() >= {"branches": 0, "local": 0, "f64": 0}.items()
    assert "identical" not in on_121

    variant.write_text(f"{NEW}\n{suggested.out}")
    forget()
    judged = fp4patch("verify", "--no-execute", "--variant", "new", tree)
    assert judged.status == 0, judged.out

    converter = variant.parents[1] / "patches/cutlass/e2m1-converter/converter.cuh"
    assert RIGHT in converter.read_text()
    converter.write_text(converter.read_text().replace(RIGHT, SLOW))
    forget()
    assert fp4patch("apply", "--variant", "new", tree).status == 0
    judged = fp4patch("verify", "--no-execute", "--variant", "new", tree)
    assert judged.status == 1
    assert "max f64 0" in judged.out


def test_what_does_not_compile_has_no_rule_and_is_named(
    variant: Path, whole_tree: Callable[[str, str], Path], fp4patch: Callable[..., Said]
) -> None:
    converter = variant.parents[1] / "patches/cutlass/e2m1-converter/converter.cuh"
    converter.write_text(converter.read_text().replace(RIGHT, f"{RIGHT} syntax error"))
    tree = whole_tree("cutlass", "4.2.1")
    assert fp4patch("apply", "--variant", "new", tree).status == 0
    suggested = fp4patch("verify", "--suggest-rules", "--variant", "new", "--arch", "sm_121a", tree)
    assert suggested.status == 1
    assert f"no rule can be suggested for cutlass/{PROBE} on sm_121a" in suggested.err
    assert suggested.out == ""


def test_it_goes_with_no_option_that_judges(fp4patch: Callable[..., Said]) -> None:
    refused = fp4patch("verify", "--suggest-rules", "--strict", "--variant", "next2", ".")
    assert refused.status == 2
