"""The GitHub Action: action.yml's own steps on a real CUTLASS tree."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from few_probes import few_probes
from integration_page import block
from ruamel.yaml import YAML

from fp4patch import cli

ROOT = Path(__file__).parents[2]
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
TOOLS = Path(sys.executable).parent

INSTALL = "Install fp4patch"
INPUTS = {"variant": "next2", "trees": "\n./cutlass\n\n", "arch": "sm_121a", "execute": "false"}


@dataclass(frozen=True)
class Ran:
    """Result of a job whose only step is the action."""

    status: int
    """Exit status of the last step that ran."""
    steps: tuple[str, ...]
    """Names of the steps that ran."""
    outputs: Mapping[str, str]
    """Outputs of the action."""
    summary: str
    log: str


Use = Callable[..., Ran]


def job(
    workspace: Path, temp: Path, environ: Mapping[str, str], given: Mapping[str, str], done: Collection[str]
) -> Ran:
    """Run the scripts of the action's steps as GitHub's runner does, but for the steps that ``done`` names.

    What is installed in ``temp`` is there for its next job. The schema forbids the keys that this does not read.
    """
    inputs = {name: str(of.get("default", "")) for name, of in ACTION["inputs"].items()}
    assert set(given) <= set(inputs)
    known = {f"inputs.{name}": value for name, value in (inputs | dict(given)).items()}

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ *([^}]*?) *\}\}", lambda expression: known.get(expression[1], ""), text)

    script = temp / "step.sh"
    output = temp / "step.output"
    summary = temp / "step.summary"
    summary.write_text("")
    ran = []
    log = ""
    status = 0
    for step in STEPS:
        if step["name"] in done or status:
            continue
        assert "${{" not in step["run"], f"{step['name']}: an expression inside a script is an injection"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("")
        own = {
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(temp),
            "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",  # as actions/setup-python does
        }
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],  # the runner's `shell: bash`
            cwd=workspace,
            env={**os.environ, **own, **environ, **{name: filled(of) for name, of in step.get("env", {}).items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ran.append(step["name"])
        log, status = log + ended.stdout, ended.returncode
        lines = (line.split("=", 1) for line in output.read_text().splitlines())
        known |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in lines}
    outputs = {name: filled(of["value"]) for name, of in ACTION["outputs"].items()}
    return Ran(status, tuple(ran), outputs, summary.read_text(), log)


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's temporary directory, in which the first step is done: packages for all jobs."""
    folder = tmp_path_factory.mktemp("runner")
    later = [step["name"] for step in STEPS if step["name"] != INSTALL]
    assert later == ["Apply", "Verify"]
    ran = job(folder, folder, {}, INPUTS, done=later)
    assert (ran.status, ran.steps) == (0, (INSTALL,)), ran.log
    return folder


@pytest.fixture
def use(temp: Path, tmp_path: Path, whole_tree: Callable[[str, str], Path]) -> Use:
    """``use(variant="next3")``: a job in a workspace with a pristine CUTLASS 4.2.1."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    whole_tree("cutlass", "4.2.1").rename(workspace / "cutlass")

    def run(environ: Mapping[str, str] | None = None, **inputs: str) -> Ran:
        named = {name.replace("_", "-"): value for name, value in inputs.items()}
        return job(workspace, temp, environ or {}, INPUTS | named, done=[INSTALL])

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One probe: the others would be compiled only to pass."""
    return few_probes(tmp_path / "data", {"float-to-e2m1-x8": "cutlass"})


def test_a_tree_is_patched_and_proven_with_the_toolkit_that_the_action_installs(
    use: Use, data: Path, temp: Path, tmp_path: Path
) -> None:
    ran = use({"FP4PATCH_DATA": str(data)})
    assert ran.status == 0, ran.log
    assert ran.steps == ("Apply", "Verify")
    assert (tmp_path / "workspace/cutlass/.fp4patch/receipt.json").is_file()
    assert ran.outputs["verdict"] == "pass"
    document = json.loads(Path(ran.outputs["json"]).read_text())
    assert (document["verdict"], document["variant"], document["arch"]) == ("pass", "next2", ["sm_121a"])
    assert document["toolchain"]["cuda_root"].startswith(str(temp))  # the runner's, not this environment's
    assert document["executed"]["executions"] == []
    assert "<html" in Path(ran.outputs["report"]).read_text()[:1000].lower()
    assert ran.summary.startswith("### fp4patch: next2\n```\n")
    assert "float-to-e2m1-x8" in ran.summary
    assert "\nPASS " in ran.summary


def test_a_patch_whose_machine_code_breaks_a_rule_fails_the_job_and_the_summary_says_which(
    use: Use, data: Path, tmp_path: Path
) -> None:
    template = data / "patches/cutlass/e2m1-converter/converter.cuh"
    right = "uint32_t const bits = detail::copy_bits<float, uint32_t>(s);"
    assert template.read_text().count(right) == 1
    slow = right.replace("(s)", "(static_cast<float>(static_cast<double>(s) * 1.0000000001))")
    template.write_text(template.read_text().replace(right, slow))

    ran = use({"FP4PATCH_DATA": str(data)}, report="out/report.html", json="out/verify.json")
    assert ran.status == 1
    assert ran.steps == ("Apply", "Verify")
    assert ran.outputs == {"verdict": "fail", "report": "out/report.html", "json": "out/verify.json"}
    assert json.loads((tmp_path / "workspace/out/verify.json").read_text())["verdict"] == "fail"
    assert "f64" in ran.summary
    assert "\nFAIL " in ran.summary


def test_a_tree_that_somebody_edited_ends_the_job_before_anything_is_compiled(use: Use, tmp_path: Path) -> None:
    assert cli.run(["apply", "--variant", "next2", str(tmp_path / "workspace/cutlass")]) == 0
    edited = tmp_path / "workspace/cutlass/include/cutlass/float_subbyte.h"
    edited.write_text(edited.read_text() + "// mine\n")
    ran = use()
    assert ran.status == 1
    assert ran.steps[-1] == "Apply"
    assert "foreign" in ran.log or "edited" in ran.log
    assert ran.outputs == {"verdict": "", "report": "", "json": ""}
    assert ran.summary == ""


@pytest.mark.parametrize(
    ("inputs", "status", "says"),
    [
        ({"trees": "\n \n"}, 2, "Missing argument 'TREE...'"),
        ({"variant": "next4"}, 2, "next4"),
        ({"execute": "yes"}, 2, "execute is yes: say true, false, or nothing"),
        ({"variant": '$(touch owned)"; touch owned; "'}, 2, "touch owned"),
    ],
    ids=lambda value: "" if not isinstance(value, dict) else next(iter(value)),
)
def test_inputs_that_make_no_sense_are_refused_and_none_is_run(
    use: Use, tmp_path: Path, inputs: dict[str, str], status: int, says: str
) -> None:
    ran = use(**inputs)
    assert ran.status == status, ran.log
    assert says in ran.log
    assert ran.outputs["verdict"] == ""
    assert not list(tmp_path.rglob("owned"))


def test_a_toolkit_that_is_named_is_the_one_that_compiles_or_the_job_says_why_not(use: Use) -> None:
    ran = use(cuda_root="/nowhere")
    assert ran.status == 1
    assert ran.steps[-1] == "Verify"
    assert "CUDA_HOME is /nowhere, where there is no bin/nvcc" in ran.log
    assert ran.outputs["verdict"] == ""


def test_the_workflow_of_the_page_gives_inputs_that_the_action_has() -> None:
    steps = YAML(typ="safe").load(block("yaml", "uses: fp4patch/fp4patch@"))
    (ours,) = (step for step in steps if step["uses"].startswith("fp4patch/fp4patch@"))
    inputs = ACTION["inputs"]
    assert set(ours["with"]) <= set(inputs)
    assert {name for name, of in inputs.items() if of.get("required")} <= set(ours["with"])
