"""Rows of the matrix from checkouts: a commit that the catalog pins gets its row, anything else is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
from command import snapshot
from few_probes import few_probes
from small_cutlass import checkout, git
from small_trees import CONVERSION, small_tree

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import data_root, load
from fp4patch.commands.explore_page import MATRIX
from tools import watch
from tools.checkouts import checked_out
from tools.pages import matrix

pytestmark = pytest.mark.slow

VERSION = "0.32.1"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of an MLX with the file that its patch edits."""
    return checkout(small_tree("mlx", tmp_path / "mlx"))


@pytest.fixture
def data(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog with one probe that pins the checkout's commit, and whose matrix has no row of MLX."""
    root = few_probes(tmp_path / "data", {"float32-x4": "mlx"}, sampled=True)
    target = root / "patches/mlx/target.toml"
    pinned = load().target("mlx").commits[VERSION]
    assert target.read_text().count(pinned) == 1
    target.write_text(target.read_text().replace(pinned, git(tree, "rev-parse", "HEAD").strip()))
    record = watch.Matrix.read(root / MATRIX)
    record.rows = {key: row for key, row in record.rows.items() if key[0] != "mlx"}
    record.write(root)
    monkeypatch.setenv("FP4PATCH_DATA", str(root))
    return root


def made(*arguments: str | Path) -> object:
    """Return the exit status, or the message, of the script."""
    with pytest.raises(SystemExit) as ended:
        matrix.main([str(argument) for argument in arguments])
    return ended.value.code


def row(data: Path) -> dict[str, Any] | None:
    return watch.Matrix.read(data / MATRIX).rows.get(("mlx", VERSION))


def test_a_checkout_of_a_pinned_commit_gets_its_row(tree: Path, data: Path) -> None:
    before, others = snapshot(tree), watch.Matrix.read(data / MATRIX).rows
    assert made("--verify", "native", tree) == 0
    assert row(data) == {
        "target": "mlx",
        "version": VERSION,
        "source": f"https://github.com/ml-explore/mlx.git v{VERSION}",
        "states": {"mlx/family-guard": "applied", "mlx/fp4-suffix": "applied"},
        "verified": {"native": "pass"},
    }
    assert {key: one for key, one in watch.Matrix.read(data / MATRIX).rows.items() if key[0] != "mlx"} == others
    assert {path: kept for path, kept in snapshot(tree).items() if not path.startswith(".fp4patch")} == before


def test_a_patch_that_no_longer_fits_is_the_exit_status(tree: Path, data: Path) -> None:
    header = tree / CONVERSION
    header.write_text(header.read_text().replace("defined(__CUDA_ARCH_SPECIFIC__)", "defined(MLX_ARCH_SPECIFIC)"))
    reason = made("--verify", "none", tree)
    assert isinstance(reason, str)
    assert reason.startswith(f"mlx {VERSION}: mlx/family-guard drifted: {CONVERSION}:")
    found = row(data)
    assert found
    assert found["states"] == {"mlx/family-guard": "drifted", "mlx/fp4-suffix": "applied"}


def test_another_commit_is_refused_and_nothing_is_written(tree: Path, data: Path) -> None:
    git(tree, "commit", "-q", "--allow-empty", "-m", "later", "--no-gpg-sign")
    before = snapshot(data)
    assert made(tree) == f"{tree} is no checkout of a commit that the catalog pins for mlx"
    assert snapshot(data) == before


def test_a_checkout_is_the_release_of_its_commit_whatever_it_states(tree: Path, data: Path) -> None:
    header = tree / "mlx/version.h"
    stated = header.read_text()
    header.write_text(re.sub(r"(MLX_VERSION_PATCH) \d+", r"\1 0", stated))
    assert header.read_text() != stated
    found = identify(tree, load(data))
    assert (str(found.version), checked_out(found)) == ("0.32.0", VERSION)
    assert made("--verify", "none", tree) == 0
    assert row(data)


def test_the_record_has_a_row_of_each_commit_where_there_is_no_archive() -> None:
    rows = watch.Matrix.read(data_root() / MATRIX).rows
    for target in (one for one in load().targets.values() if not one.archives):
        patches = {patch.id for patch in load().patches.values() if patch.target == target.name}
        for version in target.commits:
            assert patches <= rows[target.name, version]["states"].keys(), (target.name, version)
