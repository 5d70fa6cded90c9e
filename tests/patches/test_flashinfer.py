"""FlashInfer as a package manager installs it: its oldest and its newest release, with the CUTLASS that they bring."""

import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Said, snapshot
from few_probes import few_probes
from flashinfer_wheel import is_python, unpack

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.cxx.tokens import lex
from fp4patch.edits.arch_floors import leaves_out
from fp4patch.edits.asm import scan
from fp4patch.edits.placement import enclosing
from variants import VARIANTS, encoder

pytestmark = pytest.mark.slow

OLDEST, NEWEST = "0.5.0", "0.7.2"

KEPT = (
    "flashinfer/_build_meta.py",
    "flashinfer/compilation_context.py",
    "flashinfer/jit/core.py",
    "flashinfer/jit/fused_moe.py",
    "flashinfer/jit/moe_utils.py",
    "flashinfer/data/csrc/fp4_kv_quantization.cu",
    "flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/quantization",
    "flashinfer/data/csrc/fused_moe/cake_kimi_k3_situ/cake_kimi_k3_nvfp4_situ_routed_moe_92ed",
    "flashinfer/data/csrc/fused_moe/cake_kimi_k3_situ/cake_kimi_k3_nvfp4_situ_routed_moe_b2c8",
    "flashinfer/data/csrc/cake_moe_finalize_allreduce_fusion/",
    "flashinfer/data/include/flashinfer/utils.cuh",
    "flashinfer/data/include/flashinfer/math.cuh",
    "flashinfer/data/include/flashinfer/comm/",
    "flashinfer/data/include/flashinfer/gemm/nvfp4_smooth_quantize_sm100.cuh",
    "flashinfer/data/include/flashinfer/norm/",
    "flashinfer/data/cutlass/include/cutlass/arch/",
    "flashinfer/data/cutlass/include/cutlass/gemm/collective/builders/sm120_blockscaled_mma_builder.inl",
    "flashinfer/data/cutlass/include/cutlass/gemm/kernel/sm90_gemm_",
    "flashinfer/data/cutlass/include/cutlass/cutlass.h",
    "flashinfer/data/cutlass/include/cutlass/detail/helper_macros.hpp",
    "flashinfer/data/cutlass/include/cutlass/platform/platform.h",
    "flashinfer/data/cutlass/include/cutlass/version.h",
    "flashinfer/data/cutlass/include/cutlass/numeric_conversion.h",
    "flashinfer/data/cutlass/include/cutlass/float_subbyte.h",
    "flashinfer/data/cutlass/include/cutlass/epilogue/threadblock/epilogue_with_scaling_factor.h",
    "flashinfer_python-",
)
"""Files that the patches edit or must leave; all of the newest release is a third of a gigabyte."""

ENCODERS = {variant: encoder(variant, "flashinfer") for variant in VARIANTS}
"""Encoder that each variant adds beside FlashInfer's own conversions, if any."""

STATEMENTS = {OLDEST: 7, NEWEST: 16}
"""Conversions in these files that are not for one target with a suffix alone."""


WITHOUT_CUTLASS = (
    "flashinfer/data/csrc/",
    "flashinfer/data/include/",
    "flashinfer/data/spdlog/",
)
"""Files that the probes are compiled from, beside the Python. Another test verifies
the bundled CUTLASS, in minutes."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Function that returns the package's directory, in a site-packages with its RECORD: ``installed("0.5.0")``."""
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", str(tmp_path / "home"))

    def get(version: str, kept: tuple[str, ...] = KEPT) -> Path:
        def wanted(name: str) -> bool:
            return name.startswith(kept) or (kept is WITHOUT_CUTLASS and is_python(name))

        return unpack(version, tmp_path / "site-packages", wanted)

    return get


def sources(package: Path) -> list[Path]:
    return [path for folder in ("csrc", "include") for path in (package / "data" / folder).rglob("*.cu*")]


def unreached(package: Path) -> list[str]:
    """Return conversions without a condition, or under a condition below which nothing is done."""
    found = []
    for path in sources(package):
        text = path.read_text()
        if "e2m1x2" not in text or "tcgen05." in text:
            continue
        source = lex(text)
        for statement in scan(source).encodes:
            around = [c for c, _ in enclosing(source, statement.start) if not c.is_include_guard]
            guarded = any("FP4PATCH_FORCE_SOFTWARE" in (t.text for t in c.branches[0].condition) for c in around[-1:])
            closed = [c for c in around if leaves_out(source, c)]
            opened = [c for c in closed if "FP4PATCH_FORCE_SOFTWARE" in [t.text for t in c.branches[0].condition]]
            if not guarded or closed != opened:
                found.append(f"{path}:{statement.line}")
    return found


def notes(said: Said) -> str:
    return "\n".join(note for tree in said.document["trees"] for note in tree["notes"])


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_variants_apply_and_revert(
    installed: Callable[[str], Path], version: str, fp4patch: Callable[..., Said]
) -> None:
    package = installed(version)
    before = snapshot(package.parent)
    assert len(unreached(package)) == STATEMENTS[version]
    for variant, added in ENCODERS.items():
        trees = fp4patch("apply", "--variant", variant, "--json", package).document["trees"]
        assert [tree["target"] for tree in trees] == ["flashinfer", "cutlass"]
        assert trees[0]["version"] == version
        patched = [path for path in sources(package) if f"namespace fp4patch_{added} {{" in path.read_text()]
        assert bool(patched) == bool(added)
        assert len(unreached(package)) == (0 if added else STATEMENTS[version])
    assert cli.run(["revert", str(package)]) == 0
    assert snapshot(package.parent) == before


def test_next3_keeps_the_hardware_with_a_suffix_and_without_is_branch_free_software_that_is_exact(
    installed: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = [probe.name for probe in load().patches["flashinfer/e2m1-asm"].probes]
    # CUTLASS's tests compile and execute the encoder by itself.
    kept = [name for name in probes if not name.startswith("forced-encoder-")]
    data = few_probes(tmp_path / "data", dict.fromkeys(kept, "flashinfer"))
    one_probe = few_probes(tmp_path / "one-probe", {"float2x4-to-e2m1": "flashinfer"})
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    package, document = installed(OLDEST, WITHOUT_CUTLASS), tmp_path / "verify.json"
    assert cli.run(["apply", "--variant", "next3", str(package)]) == 0

    def verified(archs: str) -> dict[str, Any]:
        options = ["--execute", "--variant", "next3", "--arch", archs, "--json", str(document)]
        assert cli.run(["verify", *options, str(package)]) == 0
        said: dict[str, Any] = json.loads(document.read_text())
        assert (said["verdict"], said["problems"]) == ("pass", [])
        return said

    said = verified("sm_121a,sm_121")
    aside = {one["probe"].removeprefix("flashinfer/"): one["because"] for one in said["set_aside"]}
    assert {name for name in kept if name.startswith("kernels-")} < {*aside}  # none of them is in this release
    assert all(because.startswith("this release has no") for because in aside.values())
    found = {(r["probe"].removeprefix("flashinfer/"), r["arch"]): r for r in said["results"]}
    values = {"float8-to-e2m1": 8, "float2x4-to-e2m1": 8, "float2x8-to-e2m1": 16}
    values |= {"half-block-to-nvfp4": 8, "bf16-block-to-nvfp4": 8}
    # These have branches of their own: the order of scales.
    matrices = {"half-matrix-to-nvfp4", "half-matrix-to-nvfp4-of-experts"}
    copied = ("float8-to-e2m1", "float2x4-to-e2m1", "half-matrix-to-nvfp4")
    copies = {f"{probe}-{copy}" for probe in copied for copy in ("allreduce", "moe-allreduce")}
    assert {probe for probe, _ in found} == {*values, "forced-float2x4-to-e2m1"} | matrices | copies
    for probe, count in values.items():
        hardware, software = found[probe, "sm_121a"], found[probe, "sm_121"]
        assert (hardware["identical"], hardware["after"]["fp4"]) == (True, count // 2)
        # ptxas refuses upstream's source for a target without a suffix.
        assert software["before"] is None
        assert (software["after"]["fp4"], software["after"]["branches"]) == (0, 0)
    # CUDA 13.0.88.
    assert [found[probe, "sm_121"]["after"]["instructions"] for probe in values] == [43, 43, 73, 88, 97]
    assert found["forced-float2x4-to-e2m1", "sm_121a"]["after"]["fp4"] == 0
    for probe in matrices | copies:
        assert (found[probe, "sm_121a"]["identical"], found[probe, "sm_121"]["after"]["fp4"]) == (True, 0)
    ran = all_inputs_match(said)
    assert {(probe, arch) for probe, arch, side in ran if side == "patched"} == {*found}
    assert {arch for _, arch, side in ran if side == "pristine"} == {"sm_120a", "sm_121a"}

    monkeypatch.setenv("FP4PATCH_DATA", str(one_probe))
    # Upstream's source stores zeros on sm_90: there is nothing to execute.
    assert all_inputs_match(verified("sm_90")) == {("float2x4-to-e2m1", "sm_90", "patched")}


def all_inputs_match(said: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Every execution gives what it shall; which there are."""
    found = {(one["probe"].partition("/")[2], one["arch"], one["side"]): one for one in said["executed"]["executions"]}
    for name, one in found.items():
        assert one["ran"]["inputs"] > 0 == one["ran"]["wrong"] + one["ran"]["signs"], name
    return {*found}


def test_compiled_code_in_the_place_of_the_sources_is_reported(
    installed: Callable[[str], Path], fp4patch: Callable[..., Said]
) -> None:
    package = installed(OLDEST)
    for place in (package / "data/aot/norm/norm.so", package.parent / "flashinfer_jit_cache/jit_cache/norm/norm.so"):
        place.parent.mkdir(parents=True)
        place.touch()
    said = notes(fp4patch("apply", "--variant", "native", "--json", package))
    assert re.search(r"site-packages: 2 compiled modules: .* uninstall flashinfer-jit-cache", said)
    assert notes(fp4patch("status", "--json", package)).count("compiled module") == 1


def test_an_architecture_named_without_a_suffix_keeps_its_instructions(
    installed: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = installed(OLDEST)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))

    def flags(named: str) -> list[str]:
        monkeypatch.setenv("FLASHINFER_CUDA_ARCH_LIST", named)
        names: dict[str, object] = {"__name__": "compilation_context"}
        exec((package / "compilation_context.py").read_text(), names)  # FlashInfer's own code, from a pinned archive
        context = names["CompilationContext"]()  # type: ignore[operator]
        return sorted(flag for flag in context.get_nvcc_flags_list() if "gencode" in flag)

    assert flags("12.1") == ["-gencode=arch=compute_121,code=sm_121"]
    assert cli.run(["apply", "--variant", "native", str(package)]) == 0
    assert flags("12.1") == ["-gencode=arch=compute_121a,code=sm_121a"]
    assert flags("8.9 12.0f 12.1a") == [
        "-gencode=arch=compute_120f,code=sm_120f",
        "-gencode=arch=compute_121a,code=sm_121a",
        "-gencode=arch=compute_89,code=sm_89",
    ]


def test_a_checkout_is_recognised_too(installed: Callable[[str], Path], fp4patch: Callable[..., Said]) -> None:
    package = installed(OLDEST)
    top = package.parent
    for folder in ("include", "csrc"):
        (package / "data" / folder).rename(top / folder)
    (top / "3rdparty").mkdir()
    (package / "data/cutlass").rename(top / "3rdparty/cutlass")
    (package / "_build_meta.py").unlink()
    (top / "version.txt").write_text("0.5.0\n")
    done = fp4patch("apply", "--variant", "next3", "--json", top).document
    assert [(tree["target"], tree["version"]) for tree in done["trees"]] == [
        ("flashinfer", "0.5.0"),
        ("cutlass", "4.2.1"),
    ]
    assert {file["path"] for file in done["trees"][0]["files"]} >= {
        "csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh",
        "flashinfer/compilation_context.py",
    }
