"""Lists of packages: what each reader gives, what is no list, and the answers for the pinned releases."""

import json
from pathlib import Path

import pytest
from test_published import index, published

from fp4patch import cli
from fp4patch.binaries.findings import Level
from fp4patch.doctor import companions, inputs, run

__all__ = ["published"]

PIP_FREEZE = """\
aiohttp==3.13.2
vllm==0.33.0
flashinfer-python @ file:///tmp/flashinfer_python-0.6.6-py3-none-any.whl
torch==2.11.0+cu130
-e git+https://github.com/sgl-project/sglang@0123456#egg=sglang&subdirectory=python
"""
REQUIREMENTS = """\
# made by uv pip compile
--extra-index-url https://download.pytorch.org/whl/cu130
vllm==0.33.0 \\
    --hash=sha256:00
sglang>=0.5  # any
numpy
"""
CONDA_LIST = """\
# packages in environment at /opt/conda/envs/serve:
#
# Name                    Version                   Build  Channel
numpy                     2.3.4           py312h33ff503_0    conda-forge
vllm                      0.11.0          cuda129py312h0_0    conda-forge
sglang                    0.5.6                    pypi_0    pypi
"""
PIP_LIST = """\
Package           Version        Editable project location
----------------- -------------- -------------------------
numpy             2.3.4
sglang            0.5.6          /home/me/sglang/python
vllm              0.33.0
"""
ENVIRONMENT = """\
name: serve
channels: [conda-forge]
dependencies:
  - python=3.12
  - conda-forge::vllm>=0.11
  - pip
  - pip:
      - sglang==0.5.6
      - flashinfer-python
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "freeze.txt",
            PIP_FREEZE,
            [
                ("aiohttp", "3.13.2", 1, ""),
                ("vllm", "0.33.0", 2, ""),
                ("flashinfer-python", "", 3, inputs.ELSEWHERE),
                ("torch", "", 4, inputs.LOCAL),
                ("sglang", "", 5, inputs.ELSEWHERE),
            ],
        ),
        (
            "requirements.txt",
            REQUIREMENTS,
            [("vllm", "", 3, inputs.INDEX), ("sglang", "", 5, inputs.UNPINNED), ("numpy", "", 6, inputs.UNPINNED)],
        ),
        (
            "list.txt",
            CONDA_LIST,
            [("numpy", "", 4, inputs.CONDA), ("vllm", "", 5, inputs.CONDA), ("sglang", "0.5.6", 6, "")],
        ),
        ("-", PIP_LIST, [("numpy", "2.3.4", 3, ""), ("sglang", "", 4, inputs.ELSEWHERE), ("vllm", "0.33.0", 5, "")]),
        (
            "environment.yml",
            ENVIRONMENT,
            [
                ("python", "", 4, inputs.CONDA),
                ("vllm", "", 5, inputs.CONDA),
                ("pip", "", 6, inputs.CONDA),
                ("sglang", "0.5.6", 8, ""),
                ("flashinfer-python", "", 9, inputs.UNPINNED),
            ],
        ),
        (
            "list.txt",
            "# platform: linux-64\nnumpy=2.3.4=py312h33ff503_0\nvllm=0.11.0=pypi_0\n",
            [("numpy", "", 2, inputs.CONDA), ("vllm", "0.11.0", 3, "")],
        ),
        ("requirements-gpu.txt", "vllm==0.33.*", [("vllm", "", 1, inputs.UNPINNED)]),
        ("requirements.txt", 'vllm==0.33.0; sys_platform == "linux"', [("vllm", "0.33.0", 1, "")]),
        ("requirements.txt", 'vllm==0.33.0; python_version >= "3.12"', [("vllm", "", 1, inputs.CONDITION)]),
        ("requirements.txt", 'vllm==0.33.0; extra == "a"', [("vllm", "", 1, inputs.CONDITION)]),
        ("requirements.txt", "./vllm-0.33.0-cp312-cp312-linux_x86_64.whl", [("vllm", "", 1, inputs.ELSEWHERE)]),
        (
            "requirements.txt",
            "--extra-index-url https://flashinfer.ai/whl/cu130\nvllm==0.33.0\nflashinfer-jit-cache==0.6.11+cu130",
            [("vllm", "0.33.0", 2, ""), ("flashinfer-jit-cache", "", 3, inputs.LOCAL)],
        ),
        (
            "requirements.txt",
            "-f https://example.com/wheels\nvllm[audio]==0.33.0 \\\n  ; platform_machine == 'x86_64'",
            [("vllm", "", 2, inputs.INDEX)],
        ),
        ("requirements.txt", "-i https://flashinfer.ai/whl/cu130\nvllm==0.33.0", [("vllm", "", 2, inputs.INDEX)]),
    ],
)
def test_each_reader_gives_packages_releases_and_lines(
    name: str, text: str, expected: list[tuple[str, str, int, str]]
) -> None:
    found = inputs.read(name, text)
    assert [(one.project, one.version, one.line, one.why) for one in found or ()] == expected


def test_a_marker_says_for_which_processor() -> None:
    lines = (
        'vllm==0.33.0; platform_machine == "aarch64"',
        'vllm==0.32.0; platform_machine != "aarch64" and python_version > "3"',
        'vllm==0.31.0; sys_platform == "win32"',
    )
    found = inputs.read("requirements.txt", "\n".join(lines)) or ()
    assert [(one.version, one.machines) for one in found] == [
        ("0.33.0", ("aarch64",)),
        ("0.32.0", ("x86_64",)),
        ("0.31.0", ()),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build.txt", "Killed\nKilled\n"),
        ("build.txt", "vllm==0.33.0\n"),
        ("build.log", "Collecting vllm==0.33.0\n  Downloading vllm-0.33.0.whl\n"),
        ("-", ""),
        ("requirements.txt", "ptxas error: Feature 'cvt' not supported on .target 'sm_120'\n"),
        ("Chart.yaml", "name: a\ndependencies:\n  - name: redis\n    version: 1.0\n"),
        ("broken.yml", "dependencies: [\n"),
        ("ci.yml", "dependencies:\n  pip: [vllm==1]\n"),
    ],
)
def test_what_is_no_list_stays_what_it_is(name: str, text: str) -> None:
    assert inputs.read(name, text) is None


def test_a_list_is_answered_by_its_releases_a_line_for_each_gpu(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_projects", lambda: frozenset(("fp4thing", "vllm", "sglang")))
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "requirements.txt"
    file.write_text("fp4thing==2.0\nvllm>=0.11\nsglang==9\nnumpy==2.3.4\n")
    with index(published, []) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        assert cli.run(["doctor", str(file)]) == 0
        out = capsys.readouterr().out
        assert "✓ fp4thing==2.0: sm_120 yes: FP4 in hardware\n✓ fp4thing==2.0: sm_121 yes: FP4 in hardware\n" in out
        assert "? vllm: line 2: not judged, no exact version" in out
        assert "? sglang==9: line 3: not judged, no package index has sglang" in out
        assert "numpy" not in out
        file.write_text("fp4thing==1.0\n")
        assert cli.run(["doctor", "--json", "--for", "gb10", str(file)]) == 1
        (listed,) = json.loads(capsys.readouterr().out)["lists"]
        assert [one["level"] for one in listed["findings"]] == ["red"]
        assert cli.run(["doctor", "--require", "gb10", str(file)]) == 2


def test_a_list_without_a_known_package_and_a_log_are_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text("numpy==2.3.4\nscipy\n")
    assert cli.run(["doctor", str(tmp_path / "requirements.txt")]) == 1
    assert "none of its 2 packages is one that doctor knows" in capsys.readouterr().out


def test_lists_that_a_list_names_are_read_once_and_constraints_pin(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/gpu.txt").write_text("vllm>=0.20\nsglang>=0.5; platform_machine == 'aarch64'\n-r ../all.txt\n")
    (tmp_path / "pins.txt").write_text("vllm==0.33.0\nsglang==0.5.6; platform_machine == 'x86_64'\n")
    file = tmp_path / "all.txt"
    file.write_text("-r sub/gpu.txt\n-r sub/gpu.txt\n--requirement=none.txt\n-c pins.txt\ntorch==2.15.0\n")
    found = inputs.read(str(file), file.read_text()) or ()
    assert [(one.project, one.version, one.file, one.line, one.why) for one in found] == [
        ("vllm", "0.33.0", "sub/gpu.txt", 1, ""),
        ("sglang", "", "sub/gpu.txt", 2, inputs.UNPINNED),
        ("none.txt", "", "", 3, inputs.ABSENT),
        ("torch", "2.15.0", "", 5, ""),
    ]
    piped = inputs.read("-", "-r sub/gpu.txt\nvllm==1\nsglang==2\n") or ()
    assert [one.why for one in piped] == [inputs.ABSENT, "", ""]


@pytest.mark.parametrize(
    ("flashinfer", "companion", "fits"),
    [
        ("flashinfer-python==0.6.11", "flashinfer-cubin==0.6.11", True),
        ("flashinfer-python==0.6.11", "flashinfer-cubin==0.6.9", False),
        ("flashinfer-python==0.6.16", "flashinfer-jit-cache==0.6.16+cu130", True),
        ("flashinfer-python==0.6.6", "flashinfer-jit-cache==0.6.9+cu130", False),
        ("flashinfer-python==0.6.8", "flashinfer-jit-cache==0.6.8.post1+cu130", True),  # its release begins with it
        ("flashinfer-python==0.7.2", "flashinfer-jit-cache==0.7.2.post1+cu130", False),
        ("flashinfer-python==0.7.2", "flashinfer-jit-cache-sm121a==0.7.2+cu130", True),
        ("flashinfer-python>=0.7.2", "flashinfer-cubin==0.6.9", True),
        (
            "flashinfer-python==0.7.2; platform_machine == 'x86_64'",
            "flashinfer-cubin==0.6.9; platform_machine == 'aarch64'",
            True,
        ),
        (
            "flashinfer-python==0.6.6",
            "flashinfer-cubin @ https://x.org/flashinfer_cubin-0.6.9-py3-none-any.whl",
            False,
        ),
    ],
)
def test_a_companion_of_flashinfer_has_its_release(flashinfer: str, companion: str, fits: bool) -> None:
    releases = inputs.read("requirements.txt", f"{flashinfer}\n{companion}\n") or ()
    assert [one.level for one in companions.mismatches(releases)] == ([] if fits else [Level.RED])


def test_companions_have_a_line_each_and_other_packages_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (
        "flashinfer-cubin==0.7.2",
        "flashinfer-jit-cache",
        "flashinfer-jit-cache-sm120f",
        "flashinfer-jit-cache-sm90a",
    )
    (tmp_path / "requirements.txt").write_text("\n".join((*names, "flashinfer-bench==1.0", "numpy")))
    assert cli.run(["doctor", "--for", "gb10", str(tmp_path / "requirements.txt")]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("?")]
    assert [line.split()[1].rstrip(":") for line in lines] == list(names)
    assert "for sm_90a, and none for sm_121" in lines[3]
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = [\n  "numpy",\n  "flashinfer-python==0.6.6",\n  "flashinfer-cubin==0.6.9",\n]\n'
        '[dependency-groups]\ngpu = ["vllm==0.33.0"]\n'
    )
    assert cli.run(["doctor", "--for", "gb10", str(tmp_path / "pyproject.toml")]) == 1
    out = capsys.readouterr().out
    assert "flashinfer-python==0.6.6: sm_121" in out
    assert "? vllm: line 8: not judged, installed with gpu only" in out
    assert "✗ flashinfer-cubin==0.6.9: line 5: FlashInfer 0.6.6 ends at its import beside 0.6.9" in out


def test_a_directory_without_code_names_the_list_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("nothing to install\n")
    assert cli.run(["doctor", str(tmp_path)]) == 1
    assert "name a wheel, a library" in capsys.readouterr().err
    (tmp_path / "requirements.txt").write_text("vllm==0.33.0\n")
    assert cli.run(["doctor", str(tmp_path)]) == 1
    assert f"fp4patch doctor {tmp_path}/requirements.txt" in capsys.readouterr().err
