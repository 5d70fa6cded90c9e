"""The data loads, and every mistake in it is reported at once, by file and key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import data_root, load
from fp4patch.errors import ManifestError, UsageError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in ("patches", "variants"):
        shutil.copytree(data_root() / folder, tmp_path / folder)
    return tmp_path


def problems(root: Path) -> list[str]:
    with pytest.raises(ManifestError) as error:
        load(root)
    return [f"{p.file}: {p.nearest}: {p.expected}: {p.found}" for p in error.value.problems]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1))


def test_the_shipped_data_is_valid_and_every_patch_is_in_a_variant() -> None:
    catalog = load()
    used = {f"{t}/{p}" for v in catalog.variants.values() for t, chosen in v.targets.items() for p in chosen.patches}
    assert used == set(catalog.patches)
    assert {"turbo", "turbo2", "next2"} <= set(catalog.variants)


def test_every_mistake_is_reported_at_once_with_file_and_key(data: Path) -> None:
    edit(data / "patches/cutlass/e2m1-guard/patch.toml", "conditions = 2", 'conditions = "two"\nsurprise = 1')
    edit(data / "patches/cutlass/e2m1-converter/patch.toml", "applies = ", 'applies = "about 4" # ')
    edit(data / "variants/turbo.toml", 'name = "turbo"', "nam = 1")
    found = problems(data)
    for expected in (
        "patches/cutlass/e2m1-guard/patch.toml: edits[0].conditions: Input should be a valid integer",
        "patches/cutlass/e2m1-guard/patch.toml: edits[0].surprise: Unexpected keyword argument",
        "patches/cutlass/e2m1-converter/patch.toml: applies: a version specifier",
        "variants/turbo.toml: nam: Unexpected keyword argument",
        "variants/turbo.toml: name: Field required",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)


def test_an_unknown_op_names_the_ops_there_are(data: Path) -> None:
    edit(data / "patches/cutlass/e2m1-guard/patch.toml", 'op = "drop-operand"', 'op = "sed"')
    (found,) = problems(data)
    assert "edits[0]" in found
    assert "drop-operand" in found


def test_a_variant_that_names_a_missing_patch_is_refused(data: Path) -> None:
    edit(data / "variants/next2.toml", '"e2m1-guard"', '"e2m1-gard"')
    assert problems(data) == ["variants/next2.toml: targets.cutlass: a patch that exists: cutlass/e2m1-gard"]


def test_a_target_that_contains_an_unknown_one_is_refused(data: Path) -> None:
    edit(data / "patches/flashinfer/target.toml", '[[contains]]\ntarget = "cutlass"', '[[contains]]\ntarget = "cutlas"')
    (found,) = problems(data)
    assert found.startswith("patches/flashinfer/target.toml: contains[0].target: one of ")
    assert "cutlass" in found
    assert found.endswith(": 'cutlas'")


def test_a_rule_with_a_broken_pattern_or_architecture_is_refused(data: Path) -> None:
    rule = '\n[[rules]]\nprobes = ["*"]\narch = ["sm_121b"]\nbecause = "x"\nforbids = ["("]\n'
    path = data / "variants/turbo.toml"
    path.write_text(path.read_text() + rule)
    found = problems(data)
    assert any("sm_121b" in line for line in found)
    assert any("regular expression" in line for line in found)


def test_a_template_that_is_not_there_is_refused(data: Path) -> None:
    for template in (data / "patches/cutlass/e2m1-converter").glob("*.cuh"):
        template.unlink()
    assert any("a file beside patch.toml" in line for line in problems(data))


def test_toml_that_does_not_parse_is_a_problem_of_that_file(data: Path) -> None:
    (data / "variants/turbo.toml").write_text("name = ")
    assert any(line.startswith("variants/turbo.toml: : TOML") for line in problems(data))


def test_an_empty_catalog_is_not_a_catalog(tmp_path: Path) -> None:
    assert problems(tmp_path) == [f": : targets, patches and variants: not all of them below {tmp_path}"]


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no variant 'turbo3'") as error:
        load().variant("turbo3")
    assert "next2" in error.value.help
