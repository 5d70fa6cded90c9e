"""Doctor about a release by its name: the answer about its source tree, from the record alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.doctor.recorded import read


@pytest.mark.parametrize("options", [[], ["--for", "gb10", "--cuda", "12.8"]])
def test_a_release_has_the_answers_of_its_tree(
    options: list[str], pristine_tree: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reports = []
    for asked in ("cutlass==4.2.1", str(pristine_tree("cutlass", "4.2.1"))):
        cli.run(["doctor", "--json", *options, asked])
        reports += json.loads(capsys.readouterr().out)["trees"]
    of_release, of_tree = ({key: report[key] for key in ("version", "releases", "gpus")} for report in reports)
    assert str(of_release).replace("cutlass", "") == str(of_tree).replace(reports[1]["tree"], "").replace("cutlass", "")


def test_a_release_with_wheels_is_its_wheel_unless_options_are_of_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    assert cli.run(["doctor", "--for", "gb10", "vllm==0.33.0"]) == 1
    assert "no package index has vllm" in capsys.readouterr().err
    assert cli.run(["doctor", "--for", "gb10", "--arch-list", "12.1a", "vllm==0.33.0"]) == 0


def test_the_next_command_fetches_what_it_patches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "--json", "--for", "gb10", "--cuda", "13.0", "vllm==0.18.1"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["trees"]
    fetch = "fp4patch fetch vllm==0.18.1 vllm"
    assert report["recommended"]["next"] == f"{fetch} && fp4patch apply --variant native vllm"


@pytest.mark.parametrize(
    ("arguments", "help_text"),
    [
        (["flashinfer==9"], "recorded are 0.5.0, "),
        (["--cuda", "13.0", "vllm==9"], "recorded are 0.10.2, "),
        (["--cuda", "11.8", "vllm==0.33.0"], "`fp4patch fetch vllm==0.33.0 vllm`"),
        (["--cuda", "13.0", "--arch-list", "12.0+PTX", "vllm==0.33.0"], "`fp4patch fetch vllm==0.33.0 vllm`"),
    ],
)
def test_what_is_not_recorded_has_the_way_to_an_answer(
    arguments: list[str], help_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["doctor", *arguments]) == 2
    assert help_text in capsys.readouterr().err


def test_every_recorded_release_is_answered_for_the_list_of_its_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    for tree in read(load().root).trees:
        if not tree.variant:
            assert cli.run(["doctor", "--cuda", "13.0", "--arch-list", "12.1a", f"{tree.target}=={tree.version}"]) < 2
            assert "recommended" in capsys.readouterr().out
