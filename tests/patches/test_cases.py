"""Each patch's ``cases.diff``: excerpts of shapes that upstream's source has had, and what the patch makes of them.

An edited excerpt is in turn left alone or refused, never edited twice. Any other comes to the state that the case
names: not-needed, upstreamed or drifted. All edits of the patch run on each. An excerpt that is changed where the patch
looks at it is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import small_trees
from cases import Case, cases
from command import Said, snapshot
from mutations_vllm import ENCODER, OPTIONS

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Patch
from fp4patch.core.results import Drift, NothingToDo, Rewritten, State
from fp4patch.edits import Edit, Replace, WrapAsm
from fp4patch.edits.fold import Step, fold

CASES = [
    pytest.param(patch, case, id=f"{patch.id}-{case.name}")
    for patch in load().patches.values()
    for case in cases(patch.id).values()
]
EDITED = [parameters for parameters in CASES if parameters.values[1].state == "edited"]  # type: ignore[union-attr]


@dataclass(frozen=True)
class Beside:
    """An edit whose templates are located beside its patch."""

    patch: Patch
    edit: Edit

    @property
    def options(self) -> dict[str, str]:
        gates = isinstance(self.edit, WrapAsm) and self.edit.gates
        return OPTIONS | {"stochastic_encoder": "stochastic", "stochastic_guard": "!RS"} if gates else OPTIONS

    def template(self, name: str) -> str:
        if name.startswith("../../../encoders/"):  # a placeholder: the encoders have tests of their own
            encoder = Path(name).stem
            return ENCODER.replace("threshold", encoder).replace("THRESHOLD", encoder.upper())
        return Path(self.patch.directory, name).read_text(encoding="utf-8")


def steps(patch: Patch) -> list[Step]:
    found = (Beside(patch, edit) for edit in patch.edits)
    return [(step.edit, step.template, step.options) for step in found]


@pytest.mark.parametrize(("patch", "case"), CASES)
def test_a_shape_comes_to_what_its_case_says(patch: Patch, case: Case) -> None:
    done = fold(case.before, steps(patch))
    if case.state == "edited":
        assert done.text == case.after
        assert any(isinstance(outcome, Rewritten) for outcome in done.outcomes)
        return
    here = [o for o in done.outcomes if not (isinstance(o, NothingToDo) and o.elsewhere)]
    here = here or list(done.outcomes)  # an edit that searches for its files may find this is none of them
    if case.state == State.DRIFTED:  # of one condition; another one may be understood
        assert any(isinstance(outcome, Drift) for outcome in here)
    else:
        assert done.text == case.before
        assert {o.state if isinstance(o, NothingToDo) else type(o) for o in here} == {State(case.state)}


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_no_shape_is_edited_twice(patch: Patch, case: Case) -> None:
    once = fold(case.before, steps(patch)).text
    assert fold(once, steps(patch)).text == once


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_line_endings_and_byte_order_marks_pass_through(patch: Patch, case: Case) -> None:
    windows = "\ufeff" + case.before.replace("\n", "\r\n")
    assert fold(windows, steps(patch)).text == "\ufeff" + case.after.replace("\n", "\r\n")
    assert fold(case.before.removesuffix("\n"), steps(patch)).text == case.after.removesuffix("\n")


@pytest.mark.parametrize("patch", load().patches.values(), ids=lambda patch: patch.id)
def test_every_patch_has_a_shape_that_it_edits_and_one_that_it_leaves(patch: Patch) -> None:
    states = {case.state for case in cases(patch.id).values()}
    assert "edited" in states
    assert states & {"not-needed", "upstreamed"}


UPSTREAM = """
  CUTLASS_HOST_DEVICE
  float_e2m1_t convert_from_float(float const &flt) const { return bitcast(0); }

  CUTLASS_HOST_DEVICE
  explicit float_e2m1_t(double x)"""
SPECIALIZED = """
template <cutlass::FloatRoundStyle R>
struct NumericConverter<
  cutlass::float_e2m1_t, cutlass::half_t, R> { /* somebody's own */ };

/// Partial specialization for Array<float_e2m1_t, 2> <= Array<float, 2>
"""
CONSTRUCTOR = "cutlass/e2m1-constructor"
FP6 = "cutlass/fp6-convert"
ENCODE = "cutlass/e2m1-encode"
MLX = "mlx/family-guard"
QUTLASS = "qutlass/sm120-family"
ROTATION = "rotation-of-128-with-sm110.cpp"
CHANGED = {
    "fixed upstream": (CONSTRUCTOR, "4.2.h", "\n  CUTLASS_HOST_DEVICE\n  explicit float_e2m1_t(double x)", UPSTREAM),
    "another signature": (CONSTRUCTOR, "4.2.h", "float_e2m1_t(double x)", "float_e2m1_t(long double x)"),
    "another body": (CONSTRUCTOR, "4.2.h", "(double x) : Base(float(x))", "(double x) : Base(x)"),
    "another base": (FP6, "4.2.h", "float_e2m3_t : public float_exmy_base", "float_e2m3_t : public float_base"),
    "an open condition": (FP6, "4.2.h", "struct float_e3m2_unpack8bits_t", "#if 1\nstruct float_e3m2_unpack8bits_t"),
    "specialized already": (ENCODE, "4.2-specializations.h", f"\n{SPECIALIZED.splitlines()[-1]}\n", SPECIALIZED),
    "another loop": (
        ENCODE,
        "4.2-array-of-8.h",
        "i < 8; ++i) {\n      result[i] = converter(source[i]);",
        "i < 8; ++i) {",
    ),
    "another beginning": (ENCODE, "4.2-global-scope.h", "class FloatRoundStyle {", "class FloatRoundStyle : int {"),
    "lists cut off": ("flash_attention/native-arch", "lists.cmake", "endif()", "endif("),
    "another macro": (MLX, "conversion.cuh", "defined(__CUDA_ARCH_SPECIFIC__)", "defined(MLX_ARCH_SPECIFIC)"),
    "another operator": (MLX, "conversion.cuh", "&& \\\n    defined(__CUDA_ARCH", "&& !defined(__CUDA_ARCH"),
    "another GPU beside": (QUTLASS, ROTATION, "_ARCH == 110", "_ARCH == 110 || TARGET_CUDA_ARCH == 103"),
    "another namespace": (QUTLASS, ROTATION, "namespace QUTLASS {", "namespace qutlass {"),
    "another name of the GPU": (QUTLASS, "gemm.cu", "#elif TARGET_CUDA_ARCH == 120", "#elif QUTLASS_ARCH == 120"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_shape_that_it_does_not_know_is_refused(what: str) -> None:
    patch, case, old, new = CHANGED[what]
    text = cases(patch)[case].before
    assert old in text
    outcomes = fold(text.replace(old, new), steps(load().patches[patch])).outcomes
    assert any(isinstance(outcome, Drift) for outcome in outcomes)


VLLM = "vllm/sm120-family"
GATE = "#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 1200"
FP8 = "major_capability * 10 + minor_capability == 120"
CAPABILITIES = """major_capability * 10 + minor_capability == 89 ||
            major_capability * 10 + minor_capability == 120"""
CHOSEN = "current_platform.is_device_capability(120)"
WARM = "if (major, minor) == (12, 0):"
OPERAND = "defined(CUTLASS_ARCH_MMA_SM120A_ENABLED))"
HADAMARD = "transformer_engine/grouped-hadamard"
LAUNCH = """split_quantize_nvfp4_impl_with_rht_helper(input, input_list, output_list, split_sections,
                                                quantizers, stream);"""
OTHERWISE_WRITTEN = {
    "a gate by division": (VLLM, "empty-kernel.hpp", GATE, "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 == 12"),
    "a gate in two steps": (VLLM, "empty-kernel.hpp", GATE, "#ifdef __CUDA_ARCH__\n#if __CUDA_ARCH__ > 1199\n#endif\n"),
    "a gate by a macro": (
        VLLM,
        "empty-kernel.hpp",
        GATE,
        "#define SM12X (__CUDA_ARCH__ == 1200 || __CUDA_ARCH__ == 1210)\n#if SM12X",
    ),
    "a floor": (VLLM, "marlin-refuses.cu", FP8, "major_capability > 11"),
    "two numbers": (VLLM, "marlin-refuses.cu", FP8, f"{FP8} || {FP8[:-1]}1"),
    "a variable": (
        VLLM,
        "marlin-refuses.cu",
        CAPABILITIES,
        "!(major_capability < 8), [&] { int sm = major_capability * 10; bool ok = sm == 120; }",
    ),
    "a range of Python": (VLLM, "generator.py", "arch in [89, 120]", "arch == 89 or arch in range(120, 130)"),
    "a set": (VLLM, "generator.py", "arch in [89, 120]", "arch in {89, 120, 121}"),
    "a comparison in two": (VLLM, "generator.py", "arch in [89, 120]", "not (arch != 89 and not 120 <= arch < 130)"),
    "both GPUs": (VLLM, "marlin-input-dtype.py", CHOSEN, f"{CHOSEN} and not {CHOSEN.replace('120', '121')}"),
    "a floor of Python": (VLLM, "marlin-input-dtype.py", CHOSEN, "current_platform.has_device_capability(120)"),
    "a tuple": (VLLM, "warmup.py", WARM, "if (major, minor) in ((12, 0), (12, 1)):"),
    "a variable of Python": (VLLM, "warmup.py", WARM, "sm = major * 10 + minor\n    if sm // 10 == 12:"),
    "QuTLASS by division": (
        QUTLASS,
        ROTATION,
        "#elif TARGET_CUDA_ARCH == 120",
        "#elif TARGET_CUDA_ARCH / 10 == 12",
    ),
    "another order": (
        "cutlass/sm121-operand",
        "4.2-by-sed.h",
        OPERAND,
        "defined(CUTLASS_ARCH_MMA_SM121A_ENABLED) || defined(CUTLASS_ARCH_MMA_SM120A_ENABLED))",
    ),
    "a negation": (
        "cutlass/e2m1-guard",
        "4.2.h",
        "|| defined(CUTLASS_ARCH_MMA_SM121A_ENABLED))",
        ") && !defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)",
    ),
    "not a plain target": (MLX, "conversion.cuh", "defined(__CUDA_ARCH_SPECIFIC__)", "__CUDA_ARCH_FAMILY_SPECIFIC__"),
    "QuTLASS by alternatives": ("vllm/cmake-sm121a", "qutlass.cmake", '"12\\\\.0a"', '"12\\\\.(0a|1a|0f)"'),
    "QuTLASS by two tests": (
        "vllm/cmake-sm121a",
        "qutlass.cmake",
        'QUTLASS_ARCHS MATCHES "12\\\\.0a"',
        'QUTLASS_ARCHS MATCHES "12\\\\.0a" OR ("12.1a" IN_LIST QUTLASS_ARCHS AND NOT "${QUTLASS_ARCHS}" STREQUAL 9)',
    ),
    "another name of the condition": (
        HADAMARD,
        "every-gpu.cpp",
        LAUNCH,
        "const int sm = transformer_engine::cuda::sm_arch();\nif (sm < 100 || sm > 110) { each(); } else { fused(); }",
    ),
}


@pytest.mark.parametrize("what", OTHERWISE_WRITTEN)
def test_an_effect_that_upstream_has_retires_the_patch_however_it_is_written(what: str) -> None:
    patch, case, old, new = OTHERWISE_WRITTEN[what]
    text = cases(patch)[case].before
    assert old in text
    found = fold(text.replace(old, new), steps(load().patches[patch]))
    effects = {edit.effect.because for edit in load().patches[patch].edits if isinstance(edit, Replace) and edit.effect}
    retired = [o for o in found.outcomes if isinstance(o, NothingToDo) and o.because in effects]
    assert [outcome.state for outcome in retired] == [State.UPSTREAMED] * len(retired) != []
    assert not any(isinstance(outcome, Drift) for outcome in found.outcomes)


SAME_EFFECT_FOR_ONE = {
    "a gate for one GPU": (VLLM, "empty-kernel.hpp", GATE, "#if __CUDA_ARCH__ > 1199 && __CUDA_ARCH__ < 1201"),
    "a gate that is not known": (VLLM, "empty-kernel.hpp", GATE, "#if VLLM_SM12X || __CUDA_ARCH__ == 1200"),
    "an open gate": (VLLM, "empty-kernel.hpp", GATE, "#ifdef __CUDA_ARCH__"),
    "Ada alone": (VLLM, "marlin-refuses.cu", CAPABILITIES, "major_capability * 10 + minor_capability == 89"),
    "a function that is not known": (VLLM, "marlin-refuses.cu", FP8, "major_capability > 11 && is_rtx()"),
    "a variable that changes": (
        VLLM,
        "marlin-refuses.cu",
        CAPABILITIES,
        "ok, [&] { int sm = major_capability; sm = major_capability + minor_capability; return sm == 12; }",
    ),
    "one number": (VLLM, "generator.py", "arch in [89, 120]", "arch in (89, 120)"),
    "a name of Python that is not known": (VLLM, "generator.py", "arch in [89, 120]", "arch in SUPPORTED"),
    "a variable of Python that changes": (
        VLLM,
        "warmup.py",
        WARM,
        "sm = major\n    sm = major * 10 + minor\n    if sm == 120:",
    ),
    "QuTLASS for one": ("vllm/cmake-sm121a", "qutlass.cmake", '"12\\\\.0a"', '"12\\\\.0.*"'),
    "a regular expression that is not known": (
        "vllm/cmake-sm121a",
        "qutlass.cmake",
        '"12\\\\.0a"',
        '"12\\\\.${SM12X}"',
    ),
}


@pytest.mark.parametrize("what", SAME_EFFECT_FOR_ONE)
def test_an_effect_that_is_not_shown_is_not_said(what: str) -> None:
    patch, case, old, new = SAME_EFFECT_FOR_ONE[what]
    text = cases(patch)[case].before
    assert old in text
    found = fold(text.replace(old, new), steps(load().patches[patch]))
    assert any(isinstance(outcome, Drift) for outcome in found.outcomes)


@pytest.mark.parametrize(("patch", "case"), EDITED)
def test_an_effect_holds_behind_the_patch_and_not_before_it(patch: Patch, case: Case) -> None:
    for edit, template, options in steps(patch):
        if not isinstance(edit, Replace) or edit.effect is None:
            continue
        before, after = (fold(text, [(edit, template, options)]).outcomes[0] for text in (case.before, case.after))
        if isinstance(before, Rewritten):
            assert isinstance(after, NothingToDo)
            reasons = (edit.effect.because, *(sign.because for sign in edit.retired))
            assert after.elsewhere or after.because in reasons


@pytest.mark.parametrize("target", ["flash_attention", "mlx", "qutlass"])
def test_a_tree_of_cases_is_patched_and_reverting_leaves_no_trace(
    target: str, tmp_path: Path, fp4patch: Callable[..., Said]
) -> None:
    tree = small_trees.small_tree(target, tmp_path / target)
    patch, files = small_trees.CASES[target]
    before = snapshot(tree)
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    for path, case in files.items():
        assert (tree / path).read_text().startswith(cases(patch)[case].after), path
    assert fp4patch("status", tree).status == 0
    assert fp4patch("revert", tree).status == 0
    assert {path: found for path, found in snapshot(tree).items() if not path.startswith(".fp4patch")} == before


@pytest.mark.parametrize(
    ("target", "file", "old", "new"),
    [
        ("flash_attention", "CMakeLists.txt", "intersection(FA2_ARCHS", "intersection(FA_ARCHS"),
        ("flash_attention", "CMakeLists.txt", 'FA2_ARCHS "8.0+PTX"', 'FA2_ARCHS "${ARCHS_OF_ANOTHER_FILE}"'),
        ("flash_attention", "CMakeLists.txt", '"8.0+PTX"', '"8.0;9.0+PTX"'),
        ("flash_attention", "CMakeLists.txt", "CUDA_SUPPORTED_ARCHS", "SUPPORTED_ARCHS"),
        ("qutlass", f"{small_trees.QUTLASS}/arch/mma_mx_sm120.h", "CUTLASS_ARCH_MMA_SM120_ENABLED", "QUTLASS_SM120"),
    ],
)
def test_a_tree_without_the_code_that_a_patch_is_about_is_refused_and_left(
    target: str, file: str, old: str, new: str, tmp_path: Path, fp4patch: Callable[..., Said]
) -> None:
    tree = small_trees.small_tree(target, tmp_path / target)
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    before = snapshot(tree)
    said = fp4patch("apply", "--variant", "native", tree)
    assert (said.status, f"{small_trees.CASES[target][0]}: drifted" in said.err) == (1, True)
    assert snapshot(tree) == before
