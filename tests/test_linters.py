"""Linters have nothing to say of workflows, the action, the Dockerfile and the script of a mod."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
ZIZMOR = ("zizmor", "--offline", "--no-progress", "--persona", "pedantic")
MOD = ROOT / "integrations/spark-vllm-docker/mods/fp4patch"


@pytest.mark.parametrize(
    "command",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS),
        ("check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "action.yml"),
        (*ZIZMOR, *WORKFLOWS),
        (*ZIZMOR, ROOT / "action.yml"),
        ("hadolint", ROOT / "dockerfiles/Dockerfile"),
        ("shellcheck", MOD / "run.sh"),
    ],
    ids=lambda command: f"{command[0]}-{Path(command[-1]).name}",
)
def test_a_linter_has_nothing_to_say(command: tuple[str | Path, ...]) -> None:
    linter = [Path(sys.executable).parent / command[0], *command[1:]]
    run = subprocess.run(linter, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed to parse" not in run.stderr  # which zizmor forgives
