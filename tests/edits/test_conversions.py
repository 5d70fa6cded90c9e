"""Conversions to E2M1 that no edit is for: by the instruction in a string, or by NVIDIA's own functions."""

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.edits.conversions import CALLS, EITHER, INSTRUCTIONS, calls, disguised, outside
from fp4patch.edits.language import language
from fp4patch.edits.operation import PatchedTree
from fp4patch.edits.wrap_asm import WrapAsm, _put_together

PTX = 'asm("{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; }" : "=r"(x) : "f"(a), "f"(b));'
CALL = "x = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest);"
CONVERTS = [
    PTX,
    'const char* ptx = "cvt.rn.satfinite.e2m1x2.f32 t, a, b;";',
    '#define BODY "cvt.rs.satfinite.e2m1x4.f32 t;"',
    CALL,
    "x = __nv_cvt_halfraw_to_fp4(h, __NV_E2M1, r);",
    "x = ::__nv_cvt_bfloat16raw2_to_fp4x2 (h, k, r);",
    "__nv_fp4x2_e2m1 y(v);",
    "auto y = __nv_fp4x2_e2m1{v};",
    "x = __nv_fp4x4_e2m1(v).__x;",
    "__nv_fp4_e2m1 y = f;",
    "y = static_cast<__nv_fp4x2_e2m1>(v);",
    "#define TO_FP4(v) __nv_cvt_double2_to_fp4x2(v, k, r)",
    'asm("cvt.rn.satfinite.e2" "m1x2.f32 t, %1, %2;");',
    'asm("cvt.rn.satfinite.\\x65\\x32m1x2.f32 t, %1, %2;");',
    'asm("cvt.rn.satfinite.e2m1\\170" "2.f32 t, %1, %2;");',
    'asm("cvt.rn.satfinite.e2m1x" "2.f32 t;");',
    "using fp4 = __nv_fp4x4_e2m1; auto y = fp4(v);",
    "typedef __nv_fp4_e2m1 fp4; fp4 y{v};",
    "using fp4 = ::__nv_fp4x2_e2m1; y = static_cast<fp4>(v);",
    "%:define TO_FP4(v) __nv_cvt_double2_to_fp4x2(v, k, r)",
]
OTHERS = [
    "auto p = reinterpret_cast<__nv_fp4x2_e2m1*>(q);",
    "__nv_fp4x2_e2m1 y;",
    "void f(__nv_fp4x2_e2m1 const& y);",
    "x = __nv_cvt_fp4x2_to_halfraw2(y, __NV_E2M1);",
    'asm("cvt.rn.f16x2.e2m1x2 %0, t;" : "=r"(x) : "h"(y));',
    f"// {CALL}",
    f"/* {PTX} */",
    f"#if 0\n{CALL}\n#endif",
    "int e2m1x2;",
]
CONDITIONS = [
    "#if defined(ON)",
    "#ifdef ON",
    "#if defined ON",
    "#if A\n#elif defined(ON)",
    "#if (defined(ON))",
    "#if defined(ON) && !A",
]
OWN_CONDITIONS = [
    "#if 1",
    "#ifndef ON",
    "#if !defined(ON)",
    "#if !(A && defined(ON))",
    "#if defined(ON) || B",
    "#if defined(NEW)",
    "#ifdef ON\n#else",
]


def ended(condition: str, code: str) -> str:
    return f"{condition}\n{code}\n#endif\n"


@pytest.mark.parametrize("code", CONVERTS)
def test_a_conversion_is_named_with_its_line(code: str) -> None:
    assert EITHER.passes(code.encode())
    assert [place.line for place in outside(f"\n{code}\n", set())] == [2]
    assert [place.line for place in outside(f"\n{code}\n", {"ON"})] == [2]


@pytest.mark.parametrize(
    "code", [code for code in CONVERTS if "__nv_" in code and "using" not in code and "typedef" not in code]
)
def test_a_function_is_named_beside_assembly_that_is_wrapped(code: str) -> None:
    assert CALLS.passes(code.encode())
    (place,) = calls(f"{code}\n{PTX}\n")
    assert (place.line, "NVIDIA's function" in place.because) == (1, True)


@pytest.mark.parametrize("code", OTHERS)
def test_what_converts_nothing_to_e2m1_is_not(code: str) -> None:
    assert not [*outside(f"{code}\n", set()), *calls(f"{code}\n")]


@pytest.mark.parametrize("code", [PTX, CALL])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_one_under_a_known_macro_is_not(condition: str, code: str) -> None:
    assert not list(outside(ended(condition, code), {"ON"}))
    assert len(list(outside(ended(condition, code), {"OTHER"}))) == 1


@pytest.mark.parametrize("code", [PTX, CALL])
@pytest.mark.parametrize("condition", OWN_CONDITIONS)
def test_one_under_a_condition_of_its_own_is(condition: str, code: str) -> None:
    assert len(list(outside(ended(condition, code), {"ON"}))) == 1


def test_a_text_that_cannot_be_read_is_named() -> None:
    assert [place.line for place in (*outside(f"\n/* {CALL}", set()), *calls(f"\n/* {CALL}"))] == [2, 2]


PUT_TOGETHER = [
    'x = "cvt.rn.satfinite." + "e2m1x2" + ".f32 a, b;"',
    'x = f"cvt.rn.satfinite.e2m1x{n}.f32 a;"',
    'x = "cvt.rn.satfinite.{}.f32".format("e2m1x2")',
    'x = ".".join(["cvt", "rn", "satfinite", "e2m1x2", "f32"])',
    'x = "cvt.rn.satfinite.e2m1x%d.f32 a;" % 2',
    'f = "e2m1x2"\nx = f"cvt.rn.satfinite.{f}.f32 a;"',
    'x = "cvt.rn.satfinite.e2" "m1x2.f32 a;"',
    'x = "cvt.rn.satfinite.\\x65\\x32m1x2.f32 a;"',
]


def named(file: str, text: str, *, is_folded: bool) -> set[int]:
    """Return the lines that the searches of an edit name whose looks pass the text."""
    (edit,) = (edit for edit in load().patches["vllm/e2m1-asm"].edits if isinstance(edit, WrapAsm))
    tree = PatchedTree({}, lambda _file: is_folded)
    passing = (search for search in edit.searches(language(file)) if search.look.passes(text.encode()))
    return {place.line for search in passing for place in search.places(tree, file, text)}


@pytest.mark.parametrize("text", PUT_TOGETHER)
def test_ptx_that_python_puts_together_is_named(text: str) -> None:
    assert INSTRUCTIONS.passes(text.encode())
    assert named("vllm/a.py", f"{text}\n", is_folded=False) == {text.count("\n") + 1}


@pytest.mark.parametrize("text", ['x = f"cvt.rn.f16x2.e2m1x{n} a, b;"', 'x = "e2m1" + "x2"', 'x = f"{e2m1x}.f32"'])
def test_other_texts_of_python_are_not(text: str) -> None:
    assert list(_put_together(f"{text}\n")) == []


@pytest.mark.parametrize("code", ['"cvt.rn.satfinite.e2" "m1x2.f32 t;"', '"cvt.rn.satfinite.\\x65\\x32m1x2.f32 t;"'])
def test_a_conversion_that_no_literal_has_as_it_is_is_named_beside_wrapped_ones(code: str) -> None:
    text = f"void f() {{\n  asm({code});\n}}\n"
    assert INSTRUCTIONS.passes(text.encode())
    assert named("csrc/a.cu", text, is_folded=True) == {2}
    assert not list(disguised(f"{PTX}\n#if 0\nasm({code});\n#endif\n"))
