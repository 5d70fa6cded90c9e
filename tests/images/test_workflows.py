"""The workflows that build images and watch for releases: what they do is what the project has."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

import fp4patch
from fp4patch.catalog.manifest import load
from fp4patch.commands.explore_page import MATRIX
from tools import watch

ROOT = Path(fp4patch.__file__).parents[1]


def test_every_variant_that_pins_an_image_is_built(tmp_path: Path) -> None:
    """The first job prints the names, and each matrix takes them from it."""
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "image.yml")
    first = workflow["jobs"].pop("variants")
    (step,) = (step for step in first["steps"] if step.get("id") == "names")
    environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(tmp_path / "output")}
    subprocess.run(["bash", "-euo", "pipefail", "-c", step["run"]], env=os.environ | environ, check=True)
    name, _, printed = (tmp_path / "output").read_text().partition("=")
    assert json.loads(printed) == [variant.name for variant in load().variants.values() if variant.image]
    assert first["outputs"] == {name: f"${{{{ steps.names.outputs.{name} }}}}"}
    for job in workflow["jobs"].values():
        assert job["strategy"]["matrix"]["variant"] == f"${{{{ fromJSON(needs.variants.outputs.{name}) }}}}"
        assert "variants" in job["needs"]


def test_the_watch_proposes_every_file_that_it_writes() -> None:
    """Both jobs name them: one makes the difference, the other takes nothing else of it."""
    workflow = (ROOT / ".github" / "workflows" / "watch.yml").read_text()
    (written,) = re.findall(r"git diff --output \S+ -- (.*)", workflow)
    proposed = re.findall(r"--include '?([^'\s]+)'?", workflow)
    records = {MATRIX, "records/releases.json", "records/answers.json", "records/known.toml"}
    assert written == "patches records"
    assert set(proposed) == {"patches/*/target.toml", "patches/*/patch.toml", *records}
    assert records == set(re.findall(r"records/[\w.]+", watch.__doc__ or "")), "the watch names what it writes"
    run, *_ = re.findall(r"python -m (tools\.\w+.*)", workflow)
    assert workflow.count("python -m ") == 1, "one command brings the records up to date"
    assert run.startswith("tools.watch --git ")
