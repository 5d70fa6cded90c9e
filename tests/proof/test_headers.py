"""PyTorch's headers: from the directory that the user names, else from an installed PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from fp4patch.core.errors import UsageError
from fp4patch.proof.needs import find_headers


def headers_in(folder: Path) -> Path:
    header = folder / "torch/include/c10/util/Half.h"
    header.parent.mkdir(parents=True)
    header.touch()
    return folder / "torch/include"


def test_the_headers_that_the_user_names_are_found_with_their_second_folder_or_it_is_refused(tmp_path: Path) -> None:
    named = headers_in(tmp_path)
    assert find_headers(named) == {"torch": (named, named / "torch/csrc/api/include")}
    with pytest.raises(UsageError, match="PyTorch's headers"):
        find_headers(tmp_path)


def test_those_of_an_installed_pytorch_are_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = headers_in(tmp_path)
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_headers(None)["torch"][0] == installed


def test_without_pytorch_no_headers_are_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert find_headers(None) == {}
