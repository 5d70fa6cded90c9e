"""Targets of FlashInfer's JIT, read from released FlashInfers and compared with their own Python."""

from __future__ import annotations

import ast
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from flashinfer_wheel import is_python, unpack
from packaging.version import Version

from fp4patch.catalog.manifest import load
from fp4patch.commands.doctor import jit
from fp4patch.commands.doctor.python_text import Package
from fp4patch.commands.doctor.python_values import UNKNOWN, NotKnown, Raised
from fp4patch.core.arch import Arch
from fp4patch.inspect.findings import GPUS, Compiled

TARGET = load().target("flashinfer")
assert TARGET.build
BUILD = TARGET.build
EVERY = tuple(archive.version for archive in TARGET.pinned)
VERSIONS = EVERY if os.environ.get("FP4PATCH_TEST_ALL_TREES") else ("0.5.0", "0.6.6", "0.6.7", "0.6.8", "0.7.2")
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


parsed = cache(jit.package)


def said(root: Path, archs: str, gpu: str, cuda: str = "13.0") -> Compiled:
    return jit.compiled(parsed(root), BUILD.modules, cuda, archs, Arch.parse(gpu))


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
    assert tuple(said(package(version), archs, gpu).targets for gpu in GPUS) == SEEN[version, archs]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cuda", ["12.8", "12.9", "13.0"])
def test_says_of_each_list_what_flashinfers_own_python_does(
    package: Get, version: str, cuda: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlashInfer's CompilationContext runs from a pinned archive, with replacements for PyTorch and for queries of
    nvcc."""
    text = (package(version) / "compilation_context.py").read_text()
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.jit", ModuleType("flashinfer.jit"))
    asks = ModuleType("flashinfer.jit.cpp_ext")
    asks.is_cuda_version_at_least = lambda wanted: Version(cuda) >= Version(wanted)  # type: ignore[attr-defined]
    asks.get_cuda_path = lambda: "/nonexistent"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer.jit.cpp_ext", asks)
    logging.getLogger("compilation_context").setLevel(logging.CRITICAL)
    for gpu in map(Arch.parse, GPUS):
        torch = ModuleType("torch")
        capability = (gpu.major, gpu.minor)
        torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
            device_count=lambda: 1,
            is_available=lambda: True,
            get_device_capability=lambda _, capability=capability: capability,
        )
        monkeypatch.setitem(sys.modules, "torch", torch)
        for archs in LISTS:
            monkeypatch.setenv("FLASHINFER_CUDA_ARCH_LIST", archs)
            if not archs:
                monkeypatch.delenv("FLASHINFER_CUDA_ARCH_LIST")
            names: dict[str, object] = {"__name__": "compilation_context"}
            exec(text, names)
            raised, flags = "", []
            try:
                context = names["CompilationContext"]()  # type: ignore[operator]
                flags = context.get_nvcc_flags_list(supported_major_versions=[12])
            except (RuntimeError, ValueError) as error:
                raised = type(error).__name__
            targets = {flag.partition("code=sm_")[2] for flag in flags if "gencode" in flag}
            made = said(package(version), archs, str(gpu), cuda)
            if raised:
                assert made.stops.startswith(raised), (archs, made)
            elif made.stops:  # nvcc, which does not run here, would refuse it
                assert archs == "12.0+PTX" or cuda == "12.8", (archs, made)
            else:
                found = {Arch.parse(arch).number for arch in made.modules["GEMM"]}
                assert found == targets == {Arch.parse(arch).number for arch in made.modules["fused MoE"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_cuda_12_9_compiles_for_what_13_does(package: Get, version: str) -> None:
    for archs in BUILD.lists:
        for gpu in GPUS:
            assert said(package(version), archs, gpu, "12.9") == said(package(version), archs, gpu, "13.0")


def test_says_what_stops_it(package: Get) -> None:
    assert said(package("0.6.8"), "12.0", "sm_120", "12.8").stops == "RuntimeError: SM 12.x requires CUDA >= 12.9"
    assert said(package("0.7.2"), "12.0", "sm_120", "12.8").targets == "12.0a"
    assert said(package("0.5.0"), "", "sm_121", "12.8").stops == "the nvcc of CUDA 12.8 knows no compute_121a"
    assert "[12]" in said(package("0.7.2"), "9.0", "sm_120").stops
    assert said(package("0.5.0"), "12.0a;12.1a", "sm_120").stops.startswith("ValueError")


def test_a_module_that_chooses_in_a_way_that_is_not_known_is_not_guessed(package: Get, tmp_path: Path) -> None:
    copy = tmp_path / "flashinfer"
    copy.mkdir()
    for name in ("jit/core.py", "jit/fused_moe.py", "compilation_context.py", "jit/gemm/core.py"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text((package("0.7.2") / name).read_text())
    changed = (copy / "compilation_context.py").read_text().replace("if major == 9:", "if cluster_says(major):")
    (copy / "compilation_context.py").write_text(changed)
    with pytest.raises(NotKnown, match=r"compilation_context\.py:\d+: `cluster_says\(major\)` decides"):
        jit.compiled(jit.package(copy), BUILD.modules, "13.0", "", Arch.parse("sm_120"))
    (copy / "jit/gemm/core.py").unlink()
    with pytest.raises(NotKnown, match=r"there is no jit/gemm/core\.py"):
        jit.compiled(jit.package(copy), BUILD.modules, "13.0", "", Arch.parse("sm_120"))


def test_every_function_of_a_release_is_answered(package: Get) -> None:
    """The result is a value, a reason, or the tree's own exception: no content of a tree makes the command fail."""
    root = package("0.5.0")
    world = jit.world("13.0", "12.0", Arch.parse("sm_120"))
    tree, answers = Package(root), Counter[str]()
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                given = [UNKNOWN, "120", None, [1]] * len(node.args.args)
                try:
                    tree.call(file.relative_to(root).as_posix(), node.name, given[: len(node.args.args)], world)
                    answers["value"] += 1
                except (NotKnown, Raised, jit.Spec) as answer:
                    answers[type(answer).__name__] += 1
    assert set(answers) == {"value", "NotKnown", "Raised", "Spec"}
