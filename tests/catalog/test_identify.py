"""A tree of one target may contain one of another: FlashInfer brings its CUTLASS along."""

from pathlib import Path

import pytest
from command import without_privileges

from fp4patch.catalog.identify import identify, identify_all
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused

CATALOG = load()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Write the files by which FlashInfer and its CUTLASS are recognised, and no others."""
    root = tmp_path / "site-packages" / "flashinfer"
    marks(root, "flashinfer")
    marks(root / "data/cutlass", "cutlass")
    (root / "_build_meta.py").write_text('__version__ = "0.5.0"\n')
    version = "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n"
    (root / "data/cutlass/include/cutlass/version.h").write_text(version)
    return root


def marks(root: Path, target: str) -> None:
    for mark in CATALOG.target(target).marks:
        (root / mark).parent.mkdir(parents=True, exist_ok=True)
        (root / mark).touch()


def found(*paths: Path, said: str | None = None) -> list[tuple[Path, str, str]]:
    return [(tree.root, tree.target.name, str(tree.version)) for tree in identify_all(paths, CATALOG, said)]


def test_a_tree_is_followed_by_what_it_contains(package: Path) -> None:
    cutlass = package / "data/cutlass"
    expected = [(package, "flashinfer", "0.5.0"), (cutlass, "cutlass", "4.2.1")]
    assert found(package) == expected
    assert found(package, cutlass) == expected  # each once
    assert found(cutlass) == expected[1:]


def test_a_version_that_is_said_is_that_of_the_named_tree_alone(package: Path) -> None:
    assert [version for *_, version in found(package, said="0.6.0")] == ["0.6.0", "4.2.1"]


def test_a_link_out_of_the_tree_is_refused_and_one_within_it_is_followed(package: Path) -> None:
    cutlass = package / "data/cutlass"
    inside = package / "data/sources"
    outside = package.parents[1] / "cutlass"
    cutlass.rename(inside)
    cutlass.symlink_to(inside)
    assert found(package)[1:] == [(inside, "cutlass", "4.2.1")]
    cutlass.unlink()
    inside.rename(outside)
    cutlass.symlink_to(outside)
    with pytest.raises(Refused, match="outside the tree") as refusal:
        found(package)
    assert "holds both" in refusal.value.help
    assert found(outside) == [(outside, "cutlass", "4.2.1")]


def test_a_name_that_cannot_be_a_folder_is_refused_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "loop", tmp_path / ("x" * 300), tmp_path / "none"):
        with pytest.raises(Refused, match="is not a directory"):
            identify(path, CATALOG)


def test_a_folder_that_may_not_be_read_is_said_and_not_taken_for_something_else(package: Path) -> None:
    (package / "include").mkdir(exist_ok=True)
    (package / "include").chmod(0)
    try:
        for command in ("status", "revert"):
            ended = without_privileges(command, package)
            assert ended.returncode == 1
            assert "Permission denied" in ended.stderr
            assert "may read the tree" in ended.stderr
    finally:
        (package / "include").chmod(0o755)


def test_a_tree_that_is_not_whole_is_told_what_it_lacks(package: Path) -> None:
    (package / "data/cutlass/include/cutlass/numeric_conversion.h").unlink()
    with pytest.raises(Refused) as error:
        identify(package / "data/cutlass", CATALOG)
    assert "NVIDIA CUTLASS, if it had include/cutlass/numeric_conversion.h: is the tree whole?" in error.value.help
