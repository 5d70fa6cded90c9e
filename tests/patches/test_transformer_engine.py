"""TransformerEngine: its patches on real headers, its CMake run before and after, its own code in the compiler.

The archives of the package index hold the headers, with 4 to 8 of the statements that convert. All of a release, by
hand: ``fp4patch fetch transformer_engine==2.18.0 --git https://github.com/NVIDIA/TransformerEngine.git DIR``, then
``apply``, ``verify --all`` and ``revert``.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases
from command import Said, snapshot
from cubins import compile_cuda, disassembled

from fp4patch.adapters.vllm import cmake
from fp4patch.catalog.manifest import data_root, load
from fp4patch.cxx.tokens import lex
from fp4patch.edits.asm import scan
from fp4patch.edits.wrap_asm import unguarded
from fp4patch.proof import conditions
from fp4patch.proof.toolchain import Toolchain

PATCHES = data_root() / "patches/transformer_engine"
OPTIONS = load().variant("next3").options_of("transformer_engine")["e2m1-stochastic"]
GetTree = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("version", "file", "statements", "gates"),
    [("2.8.0", "nvfp4_transpose.cuh", 4, 4), ("2.12.0", "ptx.cuh", 8, 6), ("2.18.0", "ptx.cuh", 8, 6)],
)
def test_every_statement_of_the_headers_is_guarded_and_reverting_leaves_no_trace(
    version: str, file: str, statements: int, gates: int, tree_copy: GetTree, fp4patch: Callable[..., Said]
) -> None:
    tree = tree_copy("transformer_engine", version)
    before = snapshot(tree)
    header = tree / "common_headers/common/util" / file
    assert len(scan(lex(header.read_text())).encodes) == statements
    assert len(list(unguarded(lex(header.read_text()), OPTIONS))) == statements
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    assert list(unguarded(lex(header.read_text()), OPTIONS)) == []
    opened = r"if constexpr \(true \|\| (has_rs|is_blackwell)\)|#if 1 \|\| CUDA_ARCH_HAS_FEATURE_SM10X_ALL"
    assert len(re.findall(opened, header.read_text())) == gates
    assert fp4patch("status", tree).status == 0
    assert fp4patch("revert", tree).status == 0
    after = {path: found for path, found in snapshot(tree).items() if not path.startswith(".fp4patch")}
    assert after == before


@pytest.mark.parametrize("version", ["2.19.0", "2.20.2"])
def test_a_release_with_a_fallback_of_its_own_retires_the_patch(
    version: str, pristine_tree: GetTree, fp4patch: Callable[..., Said]
) -> None:
    tree = pristine_tree("transformer_engine", version)
    said = fp4patch("apply", "--variant", "next3", "--check", "--json", tree)
    assert said.status == 0
    assert '"upstreamed"' in said.out
    assert not re.search(r'"path": "common_headers[^}]*"state": "applied"', said.out)
    said = fp4patch("verify", "--variant", "next3", "--execute", "--json", "-", tree)
    found = json.loads(said.out)
    assert (said.status, found["verdict"], found["results"], found["problems"]) == (0, "pass", [], [])
    # All that is judged is upstream's own condition for groups, which is as the patch promises it.
    assert [(build["check"], build["before"] == build["after"]) for build in found["builds"]] == [
        ("transformer_engine/fused-for-groups", True)
    ]
    assert "the patch has nothing to do" in found["set_aside"][0]["because"]


def test_upstream_prints_and_writes_zeros_where_the_patch_rounds(
    tree_copy: GetTree, toolchain: Toolchain, tmp_path: Path, fp4patch: Callable[..., Said]
) -> None:
    tree = tree_copy("transformer_engine", "2.18.0")

    def listing() -> str:
        probes, cubin = PATCHES / "e2m1-stochastic/probes", tmp_path / "probe.cubin"
        flags = ["--expt-relaxed-constexpr", "-DNDEBUG", "-cubin", "-arch=sm_121a", "-DRANDOM=1", "-DBFLOAT16=0"]
        flags += ["-DFUNCTION=mul_cvt_fp32_to_fp4_4x_with_stochastic_rounding"]
        folders = [tree / "common_headers", tree / "common_headers/common/include", probes, probes / "stubs"]
        flags += [f"-I{folder}" for folder in folders]
        compile_cuda(toolchain, (probes / "to-e2m1-x4.cu").read_text(), cubin, *flags)
        return disassembled(toolchain, cubin.read_bytes())

    pristine = listing()
    assert "vprintf" in pristine
    assert "F2FP" not in pristine
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    patched = listing()
    assert "vprintf" not in patched
    assert (patched.count("F2FP.F16.F32.PACK_AB.RZ"), patched.count("HMNMX2.XORSIGN")) == (2, 2)


@pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake")
@pytest.mark.parametrize("shape", ["lists-of-two-kinds", "lists-of-three-kinds"])
@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [
        ("121", ("121", "", ""), ("", "121", "121a")),
        ("120", ("", "120", "120f"), ("", "120", "120f")),
        ("90;120;121", ("90;121", "120", "120f"), ("90", "121;120", "121a;120f")),
        ("120a", ("120a", "", ""), ("120a", "", "")),
        ("121a", ("121a", "", ""), ("121a", "", "")),
        ("120f", ("120f", "", ""), ("120f", "", "")),
        ("121f", ("121f", "", ""), ("121f", "", "")),
    ],
)
def test_121_becomes_generic_code_and_a_target_with_a_suffix(
    shape: str, asked: str, before: tuple[str, str, str], after: tuple[str, str, str], tmp_path: Path
) -> None:
    """Targets of all sources, further targets of most, and targets of those that need a suffix; CUDA 13."""

    def lists(side: str) -> tuple[str, ...]:
        script = tmp_path / "lists.cmake"
        lists_ = ("CMAKE_CUDA_ARCHITECTURES", "NVTE_GENERIC_ARCHS", "NVTE_SPECIFIC_ARCHS")
        script.write_text(
            f'cmake_minimum_required(VERSION 3.21)\nset(CUDAToolkit_VERSION 13.0)\nset({lists_[0]} "{asked}")\n'
            + getattr(cases("transformer_engine/arch-list")[f"{shape}.cmake"], side)
            + "".join(f'message("[${{{name}}}]")\n' for name in lists_)
        )
        done = subprocess.run([str(cmake()), "-P", script], capture_output=True, text=True, check=True)
        return tuple(re.findall(r"^\[(.*)\]$", done.stderr, re.MULTILINE))

    assert (lists("before"), lists("after")) == (before, after)


def test_the_functions_of_the_headers_pass_for_a_family(
    tree_copy: GetTree, toolchain: Toolchain, fp4patch: Callable[..., Said]
) -> None:
    """The other targets of SM12x, and the other releases, are run by hand: docs/evidence.md."""
    tree = tree_copy("transformer_engine", "2.9.0")
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    archs = ("--arch", "sm_120,sm_120f")
    said = fp4patch("verify", "--variant", "next3", *archs, "--no-execute", "--json", "-", tree)
    found = json.loads(said.out)
    assert (said.status, found["verdict"]) == (0, "pass"), said.err
    # Of one function that selects a register there is no instruction.
    (span,) = (span for span in found["coverage"]["unjudged"] if "instruction" in span["because"])
    assert "operand >> 32 * nth" in (tree / span["file"]).read_text().splitlines()[span["first"] - 1]
    probes = {one["probe"].rpartition("/")[2] for one in found["results"]}
    encoders = {f"encoder-{kind}{n}" for kind in ("x", "pairs-x", "stochastic-x") for n in (1, 2, 4, 8, 16)}
    encoders = (encoders | {"encoder-product"}) - {"encoder-pairs-x1", "encoder-stochastic-x16"}
    kinds = ("fp32-x4", "bf16-x4", "fp32-x4-scaled")
    assert probes == {f"{how}-{kind}" for how in ("stochastic", "nearest") for kind in kinds} | encoders


ZEROS, SHARED_MEMORY = "default NVFP4 recipe", "Hadamard transform"


@pytest.mark.parametrize(
    ("version", "gpu", "known"),
    [
        ("2.12.0", "sm_120", {ZEROS: "red", SHARED_MEMORY: "red"}),
        ("2.16.1", "sm_121", {ZEROS: "red", SHARED_MEMORY: "yellow"}),
        ("2.18.0", "sm_121", {ZEROS: "red", SHARED_MEMORY: "yellow"}),
        ("2.18.0", "sm_100", {}),
        ("2.19.0", "sm_121", {}),
    ],
)
def test_doctor_names_the_defects_of_a_release_and_who_repairs_them(
    version: str, gpu: str, known: dict[str, str], pristine_tree: GetTree, fp4patch: Callable[..., Said]
) -> None:
    tree = pristine_tree("transformer_engine", version)
    said = fp4patch("doctor", "--for", gpu, "--json", tree)
    findings = {one["subject"]: one for one in json.loads(said.out)["trees"][0]["findings"]}
    assert {subject: findings[subject]["level"] for subject in findings} == known
    assert said.status == 1  # a defect, or nothing that was judged
    remedies = {subject: findings[subject]["remedy"] for subject in known}
    without_patch = {SHARED_MEMORY} if version == "2.12.0" else set[str]()
    for subject in known.keys() - without_patch:
        assert remedies[subject] == f"fp4patch apply --variant next3 {tree}"
    for subject in without_patch:
        assert "disable_rht=True" in remedies[subject]


@pytest.mark.parametrize(("version", "left"), [("2.12.0", [SHARED_MEMORY]), ("2.16.1", []), ("2.18.0", [])])
def test_a_patched_tree_has_no_defect_that_its_patches_repair(
    version: str, left: list[str], tree_copy: GetTree, fp4patch: Callable[..., Said]
) -> None:
    tree = tree_copy("transformer_engine", version)
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    found = json.loads(fp4patch("doctor", "--for", "sm_121", "--json", tree).out)["trees"][0]["findings"]
    assert [one["subject"] for one in found] == left


def test_kernels_that_no_gpu_of_sm12x_launches_since_2_19_are_no_defect(
    tree_copy: GetTree, fp4patch: Callable[..., Said]
) -> None:
    """The fused kernels have the statement as before, and the patch still fits them."""
    tree = tree_copy("transformer_engine", "2.19.0")
    kernel = tree / "transformer_engine/common/hadamard_transform/hadamard_transform_cast_fusion.cu"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(cases("transformer_engine/e2m1-stochastic")["hadamard-constexpr-gate.cu"].before)
    said = fp4patch("apply", "--variant", "next3", "--check", "--json", tree)
    assert [file["state"] for file in said.tree["files"] if file["path"].endswith(kernel.name)] == ["applied"]
    found = json.loads(fp4patch("doctor", "--for", "sm_121", "--json", tree).out)["trees"][0]["findings"]
    assert [one["subject"] for one in found if one["level"] == "red"] == []


GROUPS = "transformer_engine/grouped-hadamard"
CAST = "csrc/extensions/cast.cpp"


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("2.12.0", "not-needed"),
        ("2.16.1", "applied"),
        ("2.17.0", "applied"),
        ("2.18.0", "applied"),
        ("2.19.0", "upstreamed"),
    ],
)
def test_groups_of_tensors_get_the_condition_of_2_19(
    version: str, state: str, tree_copy: GetTree, fp4patch: Callable[..., Said]
) -> None:
    tree = tree_copy("transformer_engine", version)
    before = (tree / CAST).read_bytes()
    said = fp4patch("apply", "--variant", "next3", "--json", tree)
    assert said.status == 0
    assert {one["patch"]: one["state"] for one in said.tree["patches"]}[GROUPS] == state
    changed = (tree / CAST).read_bytes() != before
    assert changed is (state == "applied")
    assert fp4patch("revert", tree).status == 0
    assert (tree / CAST).read_bytes() == before


def test_the_condition_for_groups_is_that_of_2_19(pristine_tree: GetTree, toolchain: Toolchain, tmp_path: Path) -> None:
    """Upstream's own function, run by the check of the patch."""
    patch = load().patches[GROUPS]
    ((_, check),) = patch.conditions
    upstream = (pristine_tree("transformer_engine", "2.19.0") / CAST).read_bytes()
    older = (pristine_tree("transformer_engine", "2.18.0") / CAST).read_bytes()
    (result,), _ = conditions.evaluate({CAST: older}, {CAST: upstream}, [patch], toolchain)
    assert (result.after, result.detail) == (" ".join(check.after), "")
