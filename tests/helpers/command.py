"""The command as a test runs it: its output, and the resulting trees."""

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from fp4patch import cli


class Said:
    """Exit status and both streams of one command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> None:
        capsys.readouterr()
        self.command = str(arguments[0])
        self.status = cli.run([str(a) for a in arguments])
        self.out, self.err = capsys.readouterr()

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document, which fits the command's schema."""
        return fits(self.command, json.loads(self.out))

    @property
    def tree(self) -> dict[str, Any]:
        """The only tree of a document of apply, revert or status."""
        (tree,) = self.document["trees"]
        return dict(tree)


def fits(command: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a command after a comparison with the schema that the same command prints."""
    if command in cli.COMMANDS:
        _validator(command).validate(document)
    return document


@cache
def _validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(CliRunner().invoke(cli.fp4patch, [command, "--json-schema"]).output))


def without_privileges(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command for which permissions count, also where root runs the tests."""
    command = [sys.executable, "-m", "fp4patch", *map(str, arguments)]
    if os.geteuid() == 0:  # util-linux's; root keeps its files, and no power over permissions
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
    return status, fits("verify", json.loads(document.read_text()))


def apply_and_verify(tree: Path, variant: str, *options: str) -> tuple[int, dict[str, Any]]:
    assert cli.run(["apply", "--variant", variant, str(tree)]) == 0
    return verify(tree, variant, *options)


def executed(tree: Path, variant: str, archs: str) -> tuple[int, dict[tuple[str, str, str], Any]]:
    """Apply and verify with ``--execute``: exit status; executions by probe, architecture and side."""
    status, document = apply_and_verify(tree, variant, "--arch", archs, "--execute")
    found = document["executed"]
    by_name = {(one["probe"].partition("/")[2], one["arch"], one["side"]): one for one in found["executions"]}
    return status, by_name
