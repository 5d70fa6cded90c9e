"""The command as a test runs it: its output, and the resulting trees."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fp4patch import cli


class Said:
    """Exit status and both streams of one command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> None:
        capsys.readouterr()
        self.status = cli.run([str(a) for a in arguments])
        self.out, self.err = capsys.readouterr()

    @property
    def document(self) -> dict[str, Any]:
        document = json.loads(self.out)
        assert document["schema"] == 1
        return dict(document)

    @property
    def tree(self) -> dict[str, Any]:
        """The only tree of a document of apply, revert or status."""
        (tree,) = self.document["trees"]
        return dict(tree)


def snapshot(tree: Path) -> dict[str, tuple[int, str]]:
    """Return mode and content (or link target) of everything below a directory."""
    found = {}
    for path in sorted(tree.rglob("*")):
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(tree))] = (path.lstat().st_mode, hashlib.sha256(content).hexdigest())
    return found


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def verify(tree: Path, variant: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Return exit status and JSON document of a verify that executes nothing."""
    document = tree.parent / "verify.json"
    status = cli.run(["verify", "--no-execute", "--variant", variant, "--json", str(document), *options, str(tree)])
    return status, json.loads(document.read_text())
