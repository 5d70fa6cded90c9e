"""The command that adds an extra, for a Python whose pip is on PATH and for one whose pip is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fp4patch.core.extra import install


def test_the_pip_of_this_python_is_named_alone_if_it_is_the_one_on_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in (tmp_path / "own dir", tmp_path / "other"):
        place.mkdir()
        (place / "pip").write_text("#!/bin/sh\n")
        (place / "pip").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own dir/python"))
    monkeypatch.setenv("PATH", str(tmp_path / "own dir"))
    assert install("cuda") == "pip install 'fp4patch[cuda]'"
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert install("cuda") == f"'{tmp_path}/own dir/python' -m pip install 'fp4patch[cuda]'"


def test_pip_takes_the_installed_release_and_asks_no_index() -> None:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", "fp4patch[cuda]"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Requirement already satisfied: fp4patch[cuda]" in done.stdout
