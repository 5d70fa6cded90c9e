"""Runner of a composite action like GitHub's: its steps' own scripts, with the inputs in their environment.

Only what action.yml makes use of is understood; any other key or expression is an error, never passed over.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_EXPRESSION = re.compile(r"\$\{\{ *([^}]*?) *\}\}")
_STEP_KEYS = {"name", "id", "shell", "env", "run"}


@dataclass(frozen=True)
class Ran:
    """Result of a job whose only step is this action."""

    status: int
    """Exit status of the last step that ran."""
    steps: tuple[str, ...]
    """Names of the steps that ran."""
    outputs: Mapping[str, str]
    """Outputs of the action."""
    summary: str
    log: str


@dataclass(frozen=True)
class Runner:
    """A machine with a workspace; ``temp`` stays for its next job, so that what is installed there does too."""

    workspace: Path
    temp: Path
    environ: Mapping[str, str]

    def uses(self, action: Path, given: Mapping[str, str], done: Collection[str] = ()) -> Ran:
        """Run one step ``uses:`` of a workflow. ``action`` is the directory with action.yml, ``given`` its ``with:``.

        ``done`` are the names of steps that an earlier job has done on this machine, which saves their time.
        """
        stated = YAML(typ="safe").load((action / "action.yml").read_text(encoding="utf-8"))
        inputs = {name: str(of.get("default", "")) for name, of in stated["inputs"].items()}
        unknown = set(given) - set(inputs)
        assert not unknown, f"{unknown}: not inputs of this action"
        missing = {name for name, of in stated["inputs"].items() if of.get("required")} - set(given)
        assert not missing, f"{missing}: not given"
        known = {f"inputs.{name}": value for name, value in (inputs | dict(given)).items()}
        assert stated["runs"]["using"] == "composite"

        ran: list[str] = []
        summary, log, status = "", "", 0
        steps = stated["runs"]["steps"]
        assert set(done) <= {step["name"] for step in steps}
        for step in (step for step in steps if step["name"] not in done):
            assert set(step) <= _STEP_KEYS, f"{set(step) - _STEP_KEYS}: keys that this runner does not know"
            ended, output, written = self._run(action, step, known)
            status, log, summary = ended.returncode, log + ended.stdout, summary + written
            ran.append(step["name"])
            if "id" in step:
                known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in output.items()}
            if status:
                break
        stood = {name: of["value"] for name, of in stated.get("outputs", {}).items()}
        outputs = {name: _EXPRESSION.sub(lambda match: known.get(match[1], ""), of) for name, of in stood.items()}
        return Ran(status, tuple(ran), outputs, summary, log)

    def _run(
        self, action: Path, step: Mapping[str, Any], known: Mapping[str, str]
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, str], str]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], f"{step['name']}: an expression inside a script is an injection"
        script, output, summary = (self.temp / name for name in ("step.sh", "step.output", "step.summary"))
        script.write_text(step["run"], encoding="utf-8")
        for file in (output, summary):
            file.write_text("")
        environ = {
            **self.environ,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(action),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(self.temp),
            **{name: _EXPRESSION.sub(lambda match: known[match[1]], of) for name, of in step.get("env", {}).items()},
        }
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],  # the runner's `shell: bash`
            cwd=self.workspace,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = (line.split("=", 1) for line in output.read_text().splitlines())
        return ended, dict(lines), summary.read_text()


def environment() -> dict[str, str]:
    """Return this process's environment, with its Python first in PATH like actions/setup-python, without pytest's
    variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
