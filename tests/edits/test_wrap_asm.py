"""``wrap-asm``: upstream's shapes as pairs, what is generated for stranger ones, and what is refused."""

import re
from pathlib import Path

import pytest
from cases import cases
from cxx_edits import rewritten
from mutations_vllm import ENCODER, GUARD, OPTIONS

from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.cxx.tokens import lex
from fp4patch.edits import WrapAsm
from fp4patch.edits.asm import scan
from fp4patch.edits.software_fallback import text_of

EDIT = WrapAsm(search=("csrc/**/*.cuh",), encoders="../../encoders")
CASES = cases("vllm/e2m1-asm")
TWO = "{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %2, %1; cvt.u32.u8 %0, b;}"


def edited(text: str, options: dict[str, str] = OPTIONS) -> Outcome:
    return result_of(text, options)[1]


def result_of(text: str, options: dict[str, str] = OPTIONS) -> tuple[str, Outcome]:
    return rewritten(EDIT, text, lambda name: {"../../encoders/threshold.cuh": ENCODER}[name], options)


def function(statement: str) -> str:
    return f"#pragma once\n\nvoid f() {{\n  {statement}\n}}\n"


def twin(statement: str) -> str:
    """The lines between #else and #endif, without indentation."""
    made, outcome = result_of(function(statement))
    assert isinstance(outcome, Rewritten), outcome
    found = re.search(r"#else\n(.*?)\n *#endif\n\}", made, re.DOTALL)
    assert found
    return "\n".join(line.strip() for line in found[1].split("\n"))


def asm(template: str, outputs: str, inputs: str) -> str:
    return f'asm("{template}" : {outputs} : {inputs});'


def test_an_instruction_that_is_not_known_is_refused_with_its_line() -> None:
    outcome = edited(CASES["stochastic-rounding.cuh"].before)
    assert isinstance(outcome, Drift)
    # The options have no encoder that takes random bits.
    assert (outcome.line, outcome.found) == (5, "cvt.rs.satfinite.e2m1x4.f32")
    outcome = edited(function(asm(TWO.replace("cvt.u32", "prmt.b32 %0, b; cvt.u32"), '"=r"(x)', '"f"(a), "f"(b)')))
    assert isinstance(outcome, Drift)
    assert outcome.line == 4
    assert outcome.found == "an unknown instruction"
    assert outcome.nearest == "prmt.b32 %0, b;"


def test_a_call_that_each_branch_of_a_conditional_begins_is_one_call() -> None:
    call = "#if A\n  call(1,\n#elif B\n  call(2,\n#else\n  call(3,\n#endif\n  x);\n  "
    assert twin(call + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)')).endswith("e2m1_x2(a, b);")


def test_gaps_are_zeros() -> None:
    template = TWO.replace("cvt.u32.u8 %0, b", "mov.b32 %0, {b, 0, 0, b}").replace("%2, %1", "%1, 0f00000000")
    assert twin(asm(template, '"=r"(x)', '"f"(a)')) == "\n".join(
        [
            "{",
            "const float fp4patch_in0 = a;",
            "const auto fp4patch_out0 = ::fp4patch_threshold::e2m1_x8(",
            "0.0f, fp4patch_in0, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, fp4patch_in0);",
            "x = fp4patch_out0;",
            "}",
        ]
    )


def test_expressions_are_evaluated_once_and_in_order_where_that_shows() -> None:
    assert twin(asm(TWO, '"=r"(x)', '"f"(*p++), "f"(*p++)')).split("\n") == [
        "{",
        "const float fp4patch_in0 = *p++;",
        "const float fp4patch_in1 = *p++;",
        "const auto fp4patch_out0 = ::fp4patch_threshold::e2m1_x2(",
        "fp4patch_in0, fp4patch_in1);",
        "x = fp4patch_out0;",
        "}",
    ]
    unused = twin(asm(TWO, '"=r"(x)', '"f"(a), "f"(b), "f"(c)'))
    assert "static_cast<void>(fp4patch_in2);" in unused


def test_outputs_are_written_after_all_inputs_were_read() -> None:
    template = TWO.replace("%2, %1", "%3, %2").replace("cvt.u32.u8 %0, b", "cvt.u32.u8 %0, b; cvt.u32.u8 %1, b")
    lines = twin(asm(template, '"=r"(v.x), "=r"(*p)', '"f"(a), "f"(b)')).split("\n")
    assert lines[-3:] == ["v.x = fp4patch_out0;", "*p = fp4patch_out1;", "}"]


@pytest.mark.parametrize(
    ("output", "target"),
    [
        ("a.b[i]", "a.b[i]"),
        ("p->x", "p->x"),
        ("*p", "*p"),
        ("c ? x : y", "(c ? x : y)"),
        ("t, x", "(t, x)"),
        ("n::x", "n::x"),
    ],
)
def test_an_output_becomes_the_left_side(output: str, target: str) -> None:
    assert twin(asm(TWO, f'"=r"({output})', '"f"(a), "f"(b)')).startswith(f"{target} = ::")


def test_an_argument_with_a_comma_gets_parentheses_and_comments_go() -> None:
    arguments = twin(asm(TWO, '"=r"(x)', '"f"(f<1, 2>(a)), "f"(b /* , */\n // c\n + 1)'))
    assert arguments == "x = ::fp4patch_threshold::e2m1_x2((f<1, 2>(a)), b + 1);"


def test_a_twin_that_begins_with_a_mark_cannot_join_a_macro_before_it() -> None:
    statement = "UNROLL() " + asm(TWO, '"=r"(*p)', '"f"(a), "f"(b)')
    assert twin(statement).startswith("{\n")


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("#pragma once\nvoid f() {\n@\n}\n", "#pragma once"),
        ("#ifndef X_H\n#define X_H\nvoid f() {\n@\n}\n#endif\n", "#define X_H"),
        ("#ifndef N\n#define N 8\n#endif\nvoid f() {\n@\n}\n", None),
        ("#ifndef N\n#define N 8\n#include <x>\n#endif\nvoid f() {\n@\n}\n", None),
        (
            "#include <a>\n#ifdef R\n#include <b>\n#endif\nnamespace n {\n#include <c>\nvoid f() {\n@\n}}\n",
            "#include <a>",
        ),
        ("#include <a>  /* over\ntwo lines */ // x\n#include <b> \\\n\nvoid f() {\n@\n}\n", ""),
        ("// about\n\nvoid f() {\n@\n}\n", ""),
        ('#pragma once\nextern "C" {\n#include <a>\nvoid f() {\n@\n}}\n', "#pragma once"),
        ("#ifndef USE_ROCM\n#include <a>\nvoid f() {\n@\n}\n#endif\n", None),
    ],
)
def test_the_encoder_goes_to_file_scope(text: str, above: str | None) -> None:
    """``above``: the last line before it; empty for a comment or a continuation, None for the top of the file."""
    made, outcome = result_of(text.replace("@", asm(TWO, '"=r"(x)', '"f"(a), "f"(b)')))
    assert isinstance(outcome, Rewritten), outcome
    before, found, _ = made.partition(ENCODER)
    assert found
    last = next((line for line in reversed(before.split("\n")) if line), None)
    assert last == above or (above == "" and before.endswith("\n\n"))
    assert len(lex(made).conditionals) == len(lex(text).conditionals) + 2


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("x = 1, " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "`,`"),
        ("LOOP(" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)') + ");", "`(`"),
        ("LOOP({ " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)') + " });", "a macro's argument"),
        ("[[maybe]] " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "`]`"),
        (asm(TWO, '"=r"(x)', '"f"(a), "n"(b)'), '"n"(b)'),
        (asm(TWO, '"=f"(x)', '"f"(a), "f"(b)'), "bits"),
        (asm(TWO, '"=r"(x), "=r"(y)', '"f"(a), "f"(b)'), "not a float operand"),
        ("#if __CUDA_ARCH__ == 1210\n#else\n" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)') + "\n#endif", "#if of line 4"),
        ("auto fp4patch_x = 1; " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "fp4patch_x"),
        (asm(TWO, '"=r"(x)', '"f"(a), "f"(b)').replace("asm(", "asm goto("), "asm goto"),
        (asm(TWO, '"=r"(x)', '"f"(a), "f"(b)').replace("asm(", "asm(NAME "), "NAME in the template"),
        (asm(TWO, '"=r" x', '"f"(a), "f"(b)'), "operand"),
        ("#define M " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "directive"),
        ("int k; \\\n" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "continued line"),
        (asm(TWO, '"=r"(x)', '"f"(a), "f"(b) :\n#ifdef M\n"memory"\n#endif\n'), "directive inside"),
        ('asm("rcp.rn.e2m1x2.f32 %0, %1;" : "=r"(x) : "f"(a));', "no cvt"),
        ('asm("mul.rn.e2m1x4.e4m3x4.e4m3x4.satfinite %0, %1, %2;" : "=h"(x) : "r"(a), "r"(b));', "no cvt"),
        ('asm("mul.rn.e4m3x4.e2m1x4.e4m3x4 %0, %1, e2m1x4;" : "=r"(x) : "h"(a));', "no cvt"),
        ('#pragma convert "cvt.rn.satfinite.e2m1x2.f32"', "in a preprocessor directive"),
        ('#define C(t, d) asm("cvt.rn.satfinite." #t ".f32 " d)\nC(e2m1x2, "b, %1, %1");', "outside a string"),
        ('puts("cvt.rn.satfinite" ".e2m1x2.f32");', "outside any asm"),
        ('#define E2M1 "cvt.rn.satfinite." "e2m1x2.f32 b, %1, %2;"', "in a preprocessor directive"),
        ("#ifndef FP4PATCH_THRESHOLD_CUH\n#endif\n" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "FP4PATCH_THRESHOLD_CUH"),
        ('const char* never = R"never(\n' + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "raw string"),
        ("#if 1\n" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)'), "#if"),
        ('asm("{.reg .b8 b; cvt.rn.sat" // : \n "finite." "e2m1x2.f16x2 b, %1;}" : "=r"(x) : "f"(a));', "instruction"),
    ],
)
def test_refuses_where_it_cannot_be_right(statement: str, found: str) -> None:
    outcome = edited(function(statement))
    assert isinstance(outcome, Drift), outcome
    assert found in f"{outcome.found} {outcome.expected}"
    assert outcome.help


@pytest.mark.parametrize(
    "text",
    [
        '#error "needs CUDA 13.4 (PTX ISA 9.4 mul.e4m3x4.e2m1x4)"',
        "#if N\n#  error no cvt.rn.satfinite.e2m1x2.f32, no e2m1x4\n#endif",
        '#warning "cvt.rn.satfinite.e2m1x2.f32 is slow"',
        'asm("mul.rn.e4m3x4.e2m1x4.e4m3x4.satfinite %0, %1, %2;" : "=r"(x) : "h"(a), "r"(b));',
        'asm("{ mul .rn.e4m3x4.e2m1x4.e4m3x4.satfinite %0, %1, %2; cvt.rn.f16x2.e2m1x2 %0, b; }" : "=r"(x) : "h"(a));',
    ],
)
def test_a_diagnostic_or_arithmetic_that_reads_e2m1_is_no_conversion_to_it(text: str) -> None:
    alone = edited(function(text))
    assert isinstance(alone, NothingToDo), alone
    assert alone.because == "no conversion from float to E2M1"
    made, beside = result_of(function(text + "\n" + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)')))
    assert isinstance(beside, Rewritten), beside
    assert text in made


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({}, ["encoder", "guard"]),
        (OPTIONS, []),
        ({"guard": GUARD}, ["encoder"]),
        ({"encoder": "threshold", "gard": GUARD}, ["gard", "guard"]),
        (OPTIONS | {"guard": "1) || (1"}, ["guard"]),
        (OPTIONS | {"guard": "1 // x"}, ["guard"]),
        (OPTIONS | {"guard": "(1"}, ["guard"]),
        (OPTIONS | {"encoder": "other"}, ["encoder"]),
    ],
)
def test_options_without_a_sound_encoder_and_guard_are_mistakes(options: dict[str, str], wrong: list[str]) -> None:
    folder = Path(__file__).parents[2] / "patches/vllm"
    assert [mistake.key for mistake in EDIT.option_mistakes(options, folder)] == wrong


def test_an_encoder_that_would_convert_in_hardware_fails_the_edit() -> None:
    bad = ENCODER.replace("{\n}", "{ void g() { " + asm(TWO, '"=r"(x)', '"f"(a), "f"(b)') + " } }")
    _, outcome = rewritten(EDIT, function(asm(TWO, '"=r"(x)', '"f"(a), "f"(b)')), lambda _name: bad, OPTIONS)
    assert isinstance(outcome, Drift)
    assert outcome.expected == "every conversion to E2M1 under the guard"


def test_statements_are_found_whatever_their_spelling_and_never_in_comments_or_strings() -> None:
    text = """
    // asm("cvt.rn.satfinite.e2m1x2.f32 a, b, c;");
    int x = asm_, y = s.asm; const char* t = "asm(\\"\\")";
    void f() { __asm__ /* : */ __volatile__ ( R"x(cvt.rn.f16x2.e2m1x2 %0, b;)x" : [out] "=" "r" (x[1]), "+h"(f(1, 2))
      :: "memory", "cc" ) ; }
    """
    (statement,) = scan(lex(text.replace("rn.f16x2.e2m1x2", "rn.e2m1x2.f32"))).encodes
    assert [binding.operand.name for binding in statement.outputs] == ["out", ""]
    assert [binding.operand.constraint for binding in statement.outputs] == ["=r", "+h"]
    assert [text_of(binding.expression) for binding in statement.outputs] == ["x[1]", "f(1, 2)"]
    assert statement.inputs == ()
