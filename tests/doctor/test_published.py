"""Published wheels: the one for the GPU's machine is chosen, and kept for the next question."""

import contextlib
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cubins import CONVERTS, MULTIPLIES, compile_cuda, targets
from support import Quiet, served

from fp4patch import cli
from fp4patch.core.store import sha256
from fp4patch.proof.toolchain import Toolchain
from tools.pages import wheels

ARM, INTEL = "manylinux_2_34_aarch64", "manylinux_2_34_x86_64"


@contextlib.contextmanager
def index(folder: Path, sent: list[str]) -> Iterator[str]:
    """A package index on loopback; ``sent`` gets the name of each wheel that is downloaded."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            if self.path.endswith(".whl"):
                sent.append(self.path.lstrip("/"))
            super().do_GET()

    with served(folder, Handler) as url:
        yield url


@pytest.fixture(scope="module")
def published(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of a project; of the newer one the wheel for arm64 alone has code that GB10 loads."""
    folder = tmp_path_factory.mktemp("index")
    code = {
        n: compile_cuda(toolchain, CONVERTS + MULTIPLIES, folder / f"{n}.o", "-c", *targets(n))
        for n in ("120a", "120f")
    }
    files = {
        f"fp4thing-1.0-cp312-cp312-{ARM}.whl": code["120a"],
        f"fp4thing-2.0-cp312-cp312-{ARM}.whl": code["120f"],
        f"fp4thing-2.0-cp312-cp312-{INTEL}.whl": code["120a"],
    }
    for name, library in files.items():
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.write(library, "fp4thing/_C.so")
            archive.writestr("fp4thing/last.txt", "last")
    links = ((name, sha256(folder / name)) for name in files)
    page = "".join(f'<a href="/{name}#sha256={checksum}">{name}</a>' for name, checksum in links)
    (folder / "simple/fp4thing").mkdir(parents=True)
    (folder / "simple/fp4thing/index.html").write_text(f"<html><body>{page}</body></html>")
    return folder


@pytest.mark.parametrize("has_hashes", [True, False])
def test_a_requirement_is_answered_by_the_wheel_for_each_gpus_machine(
    published: Path,
    has_hashes: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    page = published / "simple/fp4thing/index.html"
    whole, sent = page.read_text(), list[str]()
    if not has_hashes:
        page.write_text(re.sub("#sha256=[0-9a-f]+", "", whole))
    with index(published, sent) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        assert cli.run(["doctor", "--json", "fp4thing>=1"]) == 0
        reports = json.loads(capsys.readouterr().out)["binaries"]
        assert [(one["source"], [a["gpu"] for a in one["answers"]]) for one in reports] == [
            (f"fp4thing-2.0-cp312-cp312-{INTEL}.whl", ["sm_120"]),
            (f"fp4thing-2.0-cp312-cp312-{ARM}.whl", ["sm_121"]),
        ]
        assert [one["answers"][0]["answer"] for one in reports] == ["yes", "yes"]
        assert len(sent) == 2
        assert cli.run(["doctor", "--for", "gb10", "fp4thing==1.0"]) == 1
        assert cli.run(["doctor", "--for", "gb10", f"fp4thing-2.0-cp312-cp312-{INTEL}.whl"]) == 1  # by its name
        assert cli.run(["doctor", "--require", "gb10:native", "fp4thing==2.0"]) == 0
        assert len(sent) == (3 if has_hashes else 5)  # what was downloaded for a question is kept for the next
    page.write_text(whole)


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("fp4thing==3", 2, "no wheel of fp4thing==3"),
        ("nothing==1", 1, "no package index has nothing"),
        ("vlmm==1", 1, "did you mean vllm? check the project's name"),
        ("fp4thing-9-py3-none-any.whl", 2, "no wheel of"),
    ],
)
def test_what_is_not_published_says_so(
    published: Path,
    name: str,
    status: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with index(published, []) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        assert cli.run(["doctor", "--for", "gb10", name]) == status
    assert says in capsys.readouterr().err
    assert cli.run(["doctor", "--cuda", "13.0", name]) == 2


def test_another_project_of_nearly_that_name_is_not_taken_for_the_one_that_is_meant(
    published: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = published / "simple/vlm"
    page.mkdir(exist_ok=True)
    (page / "index.html").write_text('<a href="/vlm-0.0.1-py3-none-any.whl">vlm-0.0.1-py3-none-any.whl</a>')
    with index(published, []) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        assert cli.run(["doctor", "--for", "gb10", "vlm==0.33.0"]) == 2
        assert "did you mean vllm? the newest release of vlm with a wheel is 0.0.1" in capsys.readouterr().err
        assert cli.run(["doctor", "--for", "gb10", "fp4thing==9.9.9"]) == 2
        assert "the newest release of fp4thing with a wheel is 2.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vllm=0.33.0", "did you mean vllm==0.33.0?"),
        ("vllm-0.33.0", "did you mean vllm==0.33.0?"),
        ("SGLang_Kernel", "name a release (sglang-kernel==VERSION)"),
        ("vllm", "is not installed in this Python; name a release (vllm==VERSION)"),
    ],
)
def test_the_name_of_a_package_that_is_not_here_gets_a_hint(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["doctor", name]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_the_installed_name_of_a_target_is_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for name in ("flashinfer==0.6.6", "flashinfer-python==0.6.6", "FlashInfer_Python==0.6.6"):
        assert cli.run(["doctor", "--for", "gb10", "--for", "5090", "--cuda", "13.0", name]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] == texts[2]
    assert ("sm_121" in texts[0], "sm_120" in texts[0]) == (True, True)


def test_the_table_of_wheels_has_a_line_for_each_processor(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "wheels.md"
    page.write_text(
        "# Wheels\n\n| wheel | targets | sm_120 | sm_121 |\n|---|---|---|---|\n| other-1 | none | x | y |\n"
    )
    monkeypatch.setattr(wheels, "PAGE", page)
    monkeypatch.setattr(wheels, "RECORD", tmp_path / "wheels.json")
    with index(published, []) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        wheels.main(["fp4thing==2.0"])
        wheels.main(["fp4thing==2.0"])  # the mark of an earlier doctor's row is there once
    intel, arm, other = page.read_text().splitlines()[4:]
    assert intel.startswith("| fp4thing-2.0 | sm_120a ×1 | **yes**: FP4 in hardware")
    assert arm.startswith("| fp4thing-2.0, arm64 | sm_120f ×1 | **yes**: FP4 in hardware")
    record = json.loads((tmp_path / "wheels.json").read_text())["wheels"]
    assert record == {
        f"fp4thing-2.0-cp312-cp312-{INTEL}.whl": {"sm_120": "yes", "sm_121": "no"},
        f"fp4thing-2.0-cp312-cp312-{ARM}.whl": {"sm_120": "yes", "sm_121": "yes"},
    }
    assert ("nothing loads" in intel, arm.count("**yes**"), other) == (True, 2, "| other-1 † | none | x | y |")
