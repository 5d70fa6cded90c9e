"""A tree's own build, evaluated before and after the patches, for the lists of architectures that a patch names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from flashinfer_wheel import is_python, unpack

from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import ToolchainError
from fp4patch.core.results import Verdict
from fp4patch.proof import builds
from fp4patch.proof.view import SourceView

LISTS = "CMakeLists.txt"


Evaluate = Callable[..., builds.Evaluated]


@pytest.fixture
def evaluated(pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Evaluate:
    """``evaluated(old, new)``: of vLLM 0.33.0, pristine with another CMakeLists.txt and "patched" as it was released.

    Or ``patched=True``: the reverse. For some arch lists of each kind, and one CUDA release: the others take half a
    minute.
    """
    catalog, tree = load(), pristine_tree("vllm", "0.33.0").resolve()
    (found,) = identify_all([tree], catalog)
    patch = catalog.patches["vllm/cmake-sm121a"]
    (check,) = patch.builds
    reaches, both = ("12.0a;12.1a", "12.1f"), ("7.5;8.0;8.6;8.7;8.9;9.0a;12.0a;12.1a",)
    few = replace(check, reaches=reaches + both, keeps=(*both, "9.0a;10.0a"), same=("12.0a", "8.0;9.0;12.0+PTX"))
    assert {*few.reaches, *few.keeps, *few.same} < {*check.reaches, *check.keeps, *check.same}
    assert found.target.build
    target = replace(found.target, build=replace(found.target.build, cuda=()))

    def get(old: str = "", new: str = "", *, patched: bool = False, **more: str) -> builds.Evaluated:
        text = (tree / LISTS).read_text(encoding="utf-8")
        assert old in text
        text = text.replace(old, new)
        for before, after in more.items():
            text = text.replace(before, after)
        changed, root = {LISTS: text.encode()}, tree
        if patched:  # links, but for the file that changed
            root = tmp_path / "patched"
            builds._link(tree, root, changed)
        view = SourceView(tree, {} if patched else changed)
        return builds.evaluate(view, replace(found, target=target, root=root), [replace(patch, builds=(few,))])

    return get


def test_a_list_that_does_not_reach_sm121_fails_and_says_so(evaluated: Evaluate) -> None:
    found = {one.asked: one for one in evaluated().results}
    assert (found["12.0a"].verdict, found["12.0a"].detail) == (Verdict.PASS, "")
    assert (found["12.0a;12.1a"].after, found["12.0a;12.1a"].verdict) == ("12.0a", Verdict.FAIL)
    assert found["12.0a;12.1a"].detail == "no code with the instruction for sm_121"


def test_what_must_stay_as_it_was_is_compared_with_the_pristine_build(evaluated: Evaluate) -> None:
    line = 'cuda_archs_loose_intersection(FP4_SM120_ARCHS "12.0f"'
    found = {one.asked: one for one in evaluated(line, line.replace("12.0f", "9.0a")).results}
    assert found["12.0a"].before != found["12.0a"].after
    assert found["12.0a"].detail == "it is not as before"


def test_a_suffix_that_the_list_names_and_code_for_other_gpus_are_kept(evaluated: Evaluate) -> None:
    """Code for 8.9 came; 12.1f lost its suffix."""
    line = 'set(CUDA_SUPPORTED_ARCHS "7.5;8.0;8.6;8.7;8.9;'
    found = {one.asked: one for one in evaluated(line, line[:-4]).results}
    assert " is not as before for 8." in found["7.5;8.0;8.6;8.7;8.9;9.0a;12.0a;12.1a"].detail
    assert found["9.0a;10.0a"].detail == ""
    assert found["12.1f"].detail == "not for 12.1f"


def test_a_kernel_of_sm120_that_a_list_with_12_1_leaves_out_is_named(evaluated: Evaluate) -> None:
    """12.0f takes one target of a build: 12.0a. The FP4 kernels get 12.1a, and the others are no FP4 kernels."""
    line = 'cuda_archs_loose_intersection(FP4_SM120_ARCHS "12.0f"'
    more = {'11.0;12.0")': '11.0;12.1;12.0")', "+PTX": ""}
    changed = evaluated(line, line.replace("12.0f", "12.1a;12.0f"), patched=True, **more)
    found = {one.asked: one for one in changed.results}
    assert found["12.0a;12.1a"].after == "12.0a 12.1a"
    assert found["12.0a;12.1a"].detail.endswith(".cu has no code for sm_121")


@pytest.mark.parametrize(
    ("variable", "more"), [("FP4_SM120_ARCHS", "9.0"), ("MARLIN_ARCHS", "9.0"), ("SCALED_MM_ARCHS", "8.0")]
)
def test_ptx_that_a_patch_adds_is_found_in_every_list(evaluated: Evaluate, variable: str, more: str) -> None:
    command = f'cuda_archs_loose_intersection({variable} "'
    found = evaluated(command, f"{command}{more}+PTX;", patched=True).results
    assert any(one.verdict is Verdict.FAIL and "PTX of " in one.detail for one in found)


ENDS = "define_extension_target(\n    _C_stable_libtorch"
CHANGED = {
    "a macro is lost": (
        'list(APPEND VLLM_GPU_FLAGS "-DENABLE_NVFP4_SM120=1")',
        "",
        "_C_stable_libtorch: definition ENABLE_NVFP4_SM120=1 -> none (and 3 more)",
    ),
    "an option of every file": (
        ENDS,
        f"add_compile_options(-use_fast_math)\n{ENDS}",
        "all targets: option none -> -use_fast_math",
    ),
    "a flag of the compiler": (
        ENDS,
        f'set(CMAKE_CUDA_FLAGS "${{CMAKE_CUDA_FLAGS}} -G")\n{ENDS}',
        "CMAKE_CUDA_FLAGS: variable none -> -G",
    ),
    "sources are left out": (
        ENDS,
        f'list(FILTER VLLM_STABLE_EXT_SRC EXCLUDE REGEX "nvfp4_scaled_mm_sm120")\n{ENDS}',
        "_C_stable_libtorch: source csrc/quantization/fp4/nvfp4_scaled_mm_sm120_kernels.cu -> none",
    ),
    "a property of a source": (
        ENDS,
        f"set_source_files_properties(csrc/a.cu PROPERTIES COMPILE_FLAGS -O0)\n{ENDS}",
        "csrc/a.cu: property none -> COMPILE_FLAGS -O0",
    ),
}


@pytest.mark.parametrize(("text", "instead", "detail"), CHANGED.values(), ids=CHANGED)
def test_what_the_build_is_made_of_stays(evaluated: Evaluate, text: str, instead: str, detail: str) -> None:
    found = evaluated(text, instead, patched=True).results
    assert {one.detail for one in found if one.asked == "12.0a"} == {detail}


def test_a_patch_that_makes_the_build_stop_fails(
    evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch, pristine_tree: Callable[..., Path]
) -> None:
    """The compiler of the release refuses a target that only the patched tree names."""
    patched = pristine_tree("vllm", "0.33.0").resolve()

    def evaluate(root: Path, _build: object, questions: Sequence[tuple[str, str]], **_: bool) -> tuple[BuildRow, ...]:
        stops = "the nvcc of CUDA 12.8 does not support compute_121a" if root == patched else ""
        return tuple(BuildRow("12.8", asked, ("12.0a",), stops=stops) for _, asked in questions)

    monkeypatch.setattr("fp4patch.adapters.vllm.evaluate", evaluate)
    found = {one.asked: one for one in evaluated().results}
    assert {one.verdict for one in found.values()} == {Verdict.FAIL}
    assert found["12.0a;12.1a"].after == "the nvcc of CUDA 12.8 does not support compute_121a"
    assert found["12.0a;12.1a"].detail == "it stops, and did not before"


def test_without_cmake_it_is_set_aside_with_the_reason(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ToolchainError("there is no cmake", help="install one")

    monkeypatch.setattr("fp4patch.adapters.vllm.configure", missing)
    found = evaluated()
    assert found.results == ()
    assert [(one.probe, one.because) for one in found.aside] == [("vllm/arch-lists", "there is no cmake")]


def flashinfer(
    folder: Path, change: Callable[[str], str], *, both: bool = False, name: str = "compilation_context.py"
) -> builds.Evaluated:
    """Evaluate FlashInfer 0.6.6, pristine and with a file of its Python changed; or changed on both sides."""
    root = unpack("0.6.6", folder, lambda path: is_python(path) or path.endswith(("utils.cuh", "quantization.cuh")))
    file = root / name
    text = file.read_text(encoding="utf-8")
    file.write_text(change(text), encoding="utf-8")
    catalog = load()
    (found,) = identify_all([root], catalog)
    view = SourceView(root, {} if both else {name: text.encode()})
    return builds.evaluate(view, found, [catalog.patches["flashinfer/arch-suffix"]])


def test_flashinfers_build_is_run_before_and_after(tmp_path: Path) -> None:
    line = "self.TARGET_CUDA_ARCHS.add((int(major), str(minor)))"
    after = flashinfer(tmp_path, lambda text: text.replace(line, line.replace("str(minor)", "str(minor) + 'a'")))
    found = {one.asked: one for one in after.results}
    assert found["12.1"].before == "on sm_120 GEMM 12.1, fused MoE 12.1, quantization 12.0f; " + (
        "on sm_121 GEMM 12.1, fused MoE 12.1, quantization 12.0f"
    )
    assert (found["12.1"].verdict, found["12.1"].after) == (
        Verdict.PASS,
        found["12.1"].before.replace("12.1,", "12.1a,"),
    )
    assert found["12.0a"].verdict is Verdict.FAIL  # it is 12.0aa now
    earlier = {one.asked: one for one in after.results if one.cuda == "12.8"}
    assert earlier["12.0a"].before.startswith("on sm_120 GEMM 12.0a, ")
    for side in (earlier["12.1"].before, earlier["12.1"].after):
        assert side.count("the nvcc of CUDA 12.8 does not support compute_121") == 2
    assert earlier["12.1"].verdict is Verdict.PASS  # it stops, as it did before


def test_flashinfers_flags_stay(tmp_path: Path) -> None:
    found = flashinfer(
        tmp_path, lambda text: text.replace("] + self.COMMON_NVCC_FLAGS", '] + [*self.COMMON_NVCC_FLAGS, "-G"]')
    ).results
    first = next(one for one in found if one.cuda == "13.0")
    assert first.detail.endswith("cuda_cflags none -> -G (and 5 more)")


def test_flags_that_could_not_be_recorded_are_not_called_the_same(tmp_path: Path) -> None:
    """Both sides are alike, and nothing but the targets is known of either."""
    found = flashinfer(
        tmp_path, lambda text: text.replace("def write_ninja(", "def write("), both=True, name="jit/core.py"
    )
    assert {one.verdict for one in found.results if one.asked == "12.1a"} == {Verdict.PASS}
    assert "the sources and flags of GEMM on sm_121 could not be recorded, and are not compared" in {
        one.because for one in found.aside
    }
    assert flashinfer(tmp_path / "whole", lambda text: text, both=True).aside == ()


def test_a_build_that_cannot_be_evaluated_is_no_success(tmp_path: Path) -> None:
    """Both sides are alike, and nothing is known of either."""
    broken = flashinfer(tmp_path, lambda text: f"import torch\nif torch.unknown: pass\n{text}", both=True)
    assert {one.verdict for one in broken.results} == {Verdict.FAIL}
    assert {one.detail for one in broken.results} == {"it could not be evaluated"}
