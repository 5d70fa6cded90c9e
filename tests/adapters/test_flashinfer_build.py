"""Targets of FlashInfer's JIT, by its own functions in a process, for released, changed and hostile trees."""

import os
import re
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from flashinfer_wheel import is_python, unpack
from share import share

from fp4patch.adapters import flashinfer
from fp4patch.adapters.result import JitTargets
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GB10, GPUS, Arch
from tools.pages.releases import targets

pytestmark = pytest.mark.slow

TARGET = load().target("flashinfer")
assert TARGET.build
BUILD = TARGET.build
EVERY = tuple(archive.version for archive in TARGET.archives)
VERSIONS = EVERY if os.environ.get("FP4PATCH_TEST_ALL_TREES") else (*share(EVERY[:-1], 3, "builds"), EVERY[-1])
LISTS = (*BUILD.lists, "12.1f", "8.9 12.0", "9.0", "12.0a;12.1a", "12.0+PTX")

Get = Callable[[str], Path]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Get:
    """The Python of a released FlashInfer. Read only."""
    found: dict[str, Path] = {}

    def get(version: str) -> Path:
        if version not in found:
            found[version] = unpack(version, tmp_path_factory.mktemp(f"flashinfer-{version}"), is_python)
        return found[version]

    return get


@cache
def answers(root: Path, cuda: str) -> dict[tuple[str, Arch], JitTargets]:
    """Return the result of every list on every GPU."""
    machines = [(cuda, archs, gpu) for archs in LISTS for gpu in GPUS]
    return {
        (asked, gpu): made
        for (_, asked, gpu), made in zip(machines, flashinfer.run(root, BUILD, machines, parts=True), strict=True)
    }


SM120 = Arch(12, 0)


def said(root: Path, archs: str, gpu: Arch, cuda: str = "13.0") -> JitTargets:
    made = answers(root, cuda)[archs, gpu]
    assert not made.error
    return made


SEEN = {
    # version, list: on sm_120, on sm_121; with CUDA 13.0
    ("0.5.0", ""): ("12.0a", "12.1a"),
    ("0.5.0", "12.1"): ("12.1; quantization 12.0a", "12.1; quantization 12.1a"),
    ("0.5.0", "12.0f"): ("12.0f; quantization 12.0a", "12.0f; quantization 12.1a"),
    ("0.6.6", ""): ("12.0a; quantization 12.0f", "12.1a; quantization 12.0f"),
    ("0.6.6", "12.0 12.1"): ("12.0, 12.1; quantization 12.0f", "12.0, 12.1; quantization 12.0f"),
    ("0.6.7", ""): ("12.0f", "12.0f"),
    ("0.6.7", "12.1"): ("12.0f", "12.0f"),
    ("0.6.8", "12.1"): ("12.1a; quantization 12.0f", "12.1a; quantization 12.0f"),
    ("0.7.2", ""): ("12.0f", "12.1a; quantization 12.0f"),
    ("0.7.2", "12.0a 12.1a"): ("12.0a, 12.1a; quantization 12.0f", "12.0a, 12.1a; quantization 12.0f"),
}


@pytest.mark.parametrize(("version", "archs"), SEEN, ids=" ".join)
def test_reads_the_targets_of_a_released_flashinfer(package: Get, version: str, archs: str) -> None:
    """As upstream's sources were read by eye when this was written."""
    assert tuple(targets(said(package(version), archs, gpu)) for gpu in GPUS) == SEEN[version, archs]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sources_and_flags_of_each_module_are_known(package: Get, version: str) -> None:
    parts = said(package(version), "12.1", GB10).parts
    for module in BUILD.modules:
        assert parts[module.name, "source"]
        assert {"--expt-relaxed-constexpr", "-use_fast_math", "-DNDEBUG"} <= {*parts[module.name, "cuda_cflags"]}


def test_says_what_stops_it(package: Get) -> None:
    assert said(package("0.6.8"), "12.0", SM120, "12.8").stops == "RuntimeError: SM 12.x requires CUDA >= 12.9"
    assert targets(said(package("0.7.2"), "12.0", SM120, "12.8")) == "12.0a"
    assert said(package("0.5.0"), "", GB10, "12.8").stops == "the nvcc of CUDA 12.8 does not support compute_121a"
    assert "[12]" in said(package("0.7.2"), "9.0", SM120).stops
    assert said(package("0.5.0"), "12.0a;12.1a", SM120).stops.startswith("ValueError")


@pytest.fixture
def copy(package: Get, tmp_path: Path) -> Path:
    """A FlashInfer 0.7.2 to change."""
    ignored = shutil.ignore_patterns("data")
    return Path(shutil.copytree(package("0.7.2"), tmp_path / "flashinfer", ignore=ignored))


def test_a_module_that_chooses_in_a_way_that_is_not_known_is_not_guessed(copy: Path) -> None:
    changed = (copy / "compilation_context.py").read_text().replace("if major == 9:", "if torch.says(major):")
    (copy / "compilation_context.py").write_text(changed)
    assert re.match(r"compilation_context\.py:\d+: `if torch\.says\(major\):`: an unknown value", lost(copy))
    (copy / "jit/gemm/core.py").unlink()
    assert lost(copy) == "there is no jit/gemm/core.py"


def lost(root: Path, archs: str = "") -> str:
    """Return the reason why nothing is known."""
    (row,) = flashinfer.evaluate(root, BUILD, [("13.0", archs)], parts=True)
    assert (row.kernels, row.on, row.reaches) == ((), {}, {})
    return row.error


HOSTILE = {
    "a loop without an end": ("while True: pass", "its Python did not finish in 3 s and was ended"),
    "an exception": ("raise LookupError('no such thing')", "compilation_context.py:1: LookupError: no such thing"),
    "an exit": ("import os; os._exit(0)", "its Python ended without a valid result"),
    "a crash": ("import os; os.kill(os.getpid(), 11)", "its Python ended without a valid result"),
    "a false answer": (
        "import os, sys; open(sys.argv[1], 'w').write('[{}]'); os._exit(0)",
        "its Python ended without a valid result",
    ),
    "a program": (
        "import os; os.fork()",
        "compilation_context.py:1: PermissionError: [Errno 1] Operation not permitted",
    ),
    "a changed file": (
        "import os; os.remove(__file__)",
        "compilation_context.py:1: PermissionError: [Errno 13] Permission denied",
    ),
    "memory": ("x = bytearray(1 << 40)", "compilation_context.py:1: MemoryError"),
    "what is no Python": ("def f(:", "SyntaxError: invalid syntax (compilation_context.py, line 1)"),
}


@pytest.mark.parametrize(("line", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_tree_is_one_clear_reason_and_no_hang(
    copy: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    monkeypatch.setattr(flashinfer, "TIMEOUT", 3)
    text = (copy / "compilation_context.py").read_text()
    (copy / "compilation_context.py").write_text(f"{line}\n{text}")
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    began = time.monotonic()
    assert lost(copy, "12.1").startswith(why)
    assert time.monotonic() - began < 10
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


def test_a_function_that_is_gone_is_named(copy: Path) -> None:
    file = copy / "jit/gemm/core.py"
    file.write_text(file.read_text().replace("def gen_gemm_sm120_module_cutlass_fp4(", "def renamed("))
    assert lost(copy) == "jit/gemm/core.py defines no function gen_gemm_sm120_module_cutlass_fp4"
    file.write_text(f"{file.read_text()}\n\ndef gen_gemm_sm120_module_cutlass_fp4(): pass\n")
    assert lost(copy) == "jit/gemm/core.py: gen_gemm_sm120_module_cutlass_fp4 does not call gen_jit_spec"


def test_nothing_is_written_to_the_tree_or_to_the_home(
    package: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.5.1 to 0.6.2 write generated sources into the package when a module is requested."""
    root = package("0.6.0")
    monkeypatch.setenv("HOME", str(tmp_path))
    before = sorted(root.rglob("*"))
    assert targets(said(root, "12.0", SM120)) == "12.0; quantization 12.0a"
    assert sorted(root.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []
