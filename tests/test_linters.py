"""Linters have nothing to say of workflows, the action, the Dockerfile and the script of a mod."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.core import process

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
    linter = process.located(str(command[0]))  # shellcheck may be the distribution's: no wheel is for arm64
    assert linter, f"there is no {command[0]}"
    run = subprocess.run([linter, *command[1:]], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed to parse" not in run.stderr  # which zizmor forgives
