"""The symbolic evaluator of packing PTX: the shapes that upstream has, random ones, and what it refuses."""

import random

import pytest
from concrete_ptx import SIZES, Program, e2m1, run
from hypothesis import given, settings
from hypothesis import strategies as st

from fp4patch.edits.ptx import (
    Encoded,
    Operand,
    Packed,
    Word,
    conversions,
    evaluate,
    is_decode,
    is_encode,
)
from fp4patch.edits.refusal import Refusal

ENCODE = "cvt.rn.satfinite.e2m1x2.f32"


def packed(template: str, outputs: str = "r", inputs: int = 4) -> list[tuple[int | None, ...]]:
    """The nibbles of each output, inputs numbered from 0."""
    done = evaluate(template, [Operand(f"={letter}") for letter in outputs], [Operand("f")] * inputs)
    return [tuple(None if n is None else n - len(outputs) for n in operands(output)) for output in done]


def operands(output: Packed) -> tuple[int | None, ...]:
    """Return, for each nibble, the operand whose code it is, unchanged and rounded to nearest."""
    found = []
    for code in output.nibbles:
        assert code is None or code == Encoded(Word(code.value.operand, 0))  # type: ignore[union-attr]
        found.append(code.value.operand if code else None)  # type: ignore[union-attr]
    return tuple(found)


@given(st.integers(min_value=0))
@settings(max_examples=300, deadline=None)
def test_random_packings_come_to_what_a_direct_interpreter_computes(seed: int) -> None:
    program = Program(random.Random(seed))
    done = evaluate(program.template, [Operand(f"={c}") for c in program.outputs], [Operand("f")] * program.count)
    for round_ in range(3):  # several values, so that one code cannot pass for another
        rng = random.Random(seed + round_)
        values = [rng.choice([-1, 1]) * rng.choice([0.3, 0.9, 1.4, 2.2, 2.8, 3.9, 7.5]) for _ in range(program.count)]
        code = {n + len(program.outputs): e2m1(value) for n, value in enumerate(values)} | {None: 0}
        nibbles = [sum(code[n] << 4 * at for at, n in enumerate(operands(output))) for output in done]
        assert nibbles == run(program.template, program.outputs, values)
        assert [4 * len(output.nibbles) for output in done] == [SIZES[letter] for letter in program.outputs]


def test_the_first_source_goes_to_the_high_nibble() -> None:
    template = f"{{ .reg .b8 lo, hi; {ENCODE} lo, %2, %1; {ENCODE} hi, %3, %4; mov.b16 %0, {{lo, hi}}; }}"
    assert packed(template, "h") == [(0, 1, 3, 2)]


def test_two_outputs_and_registers_reused_in_an_inner_scope() -> None:
    template = f"""{{ .reg .b8 a; .reg .b16 h; {ENCODE} a, %3, %2;
        {{ .reg .b8 a; {ENCODE} a, %5, %4; mov.b16 h, {{a, a}}; cvt.u32.u16 %1, h; }}
        cvt.u32.u8 %0, a; }}"""
    assert packed(template, "rr") == [(0, 1, *[None] * 6), (2, 3, 2, 3, *[None] * 4)]


def test_symbolic_operands_and_percent_signs() -> None:
    template = f".reg .b8 %%b1; {ENCODE} %%b1, %[y], %[x]; cvt.u32.u8 %[out], %%b1;"
    done = evaluate(template, [Operand("=r", "out")], [Operand("f", "x"), Operand("f", "y")])
    assert operands(done[0]) == (1, 2, *[None] * 6)


def test_an_output_that_is_also_read_is_fine_once_it_is_overwritten() -> None:
    template = f"{{.reg .b8 b; {ENCODE} b, %2, %1; cvt.u32.u8 %0, b;}}"
    assert evaluate(template, [Operand("+r")], [Operand("f")] * 2)[0].nibbles[:3] == (
        Encoded(Word(1, 0)),
        Encoded(Word(2, 0)),
        None,
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{ENCODE} b, %1, %2; prmt.b32 %0, w, w, 0x3210;", "instruction"),
        ("cvt.rn.satfinite.relu.e2m1x2.f32 b, %1, %2; cvt.u32.u8 %0, b;", "instruction"),
        ("cvt.rn.satfinite.e2m1x2.f16x2 b, %1; cvt.u32.u8 %0, b;", "instruction"),
        ("cvt.rs.satfinite.e2m1x4.f32 h, {%1, %2, %3, %4}, w; cvt.u32.u16 %0, h;", "not a float operand"),
        ("cvt.rs.satfinite.e2m1x4.f32 h, {%1, %2, %3}, %4; cvt.u32.u16 %0, h;", "vector of four"),
        ("mul.f32 w, %1, %2; cvt.rs.satfinite.e2m1x4.f32 h, {%1, %2, %3, %4}, w; cvt.u32.u16 %0, h;", "no operand"),
        (f"mul.f32 w, %1, x; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "not a float operand"),
        (f"mul.f32 w, %1, 0f40000000; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "not a float operand"),
        (f"mul.rz.f32 w, %1, %2; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "instruction"),
        (f"mul.f32x2 w, %1, %2; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "bits"),
        (f"mov.b32 {{h, h}}, %1; fma.rn.f32.bf16 w, h, h, %2; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "addend"),
        (f"mov.b16 h, 0x3f80; cvt.f32.bf16 w, h; {ENCODE} b, w, %2; cvt.u32.u8 %0, b;", "bfloat16"),
        (f"{ENCODE} b, %1, %2; @p cvt.u32.u8 %0, b;", "not a known instruction"),
        (f"{ENCODE} b, %1, %2; cvt.u32.u8 %0, b", "not a known instruction"),
        (f"{ENCODE} b, %1, %2; mov.b32 %0, {{b, b, b, c}};", "never written"),
        (f"{ENCODE} b, %1, %2; mov.b32 %0, {{b, b}};", "bits"),
        (f"{ENCODE} b, %1, %2; mov.b32 %0, {{b, b, b}};", "two or four"),
        (f"{ENCODE} h, %1, %2; cvt.u32.u16 %0, h;", "bits"),
        (f"mov.b32 %1, %2; {ENCODE} b, %1, %2; cvt.u32.u8 %0, b;", "input"),
        (f"{ENCODE} b, %1, %9; cvt.u32.u8 %0, b;", "no operand"),
        (f"{ENCODE} b, %1, %0; cvt.u32.u8 %0, b;", "not a float"),
        (f"{ENCODE} b, 0f3F800000, %1; cvt.u32.u8 %0, b;", "not a float"),
        (f"{ENCODE} b, %1, %2; cvt.u32.u8 %0, other;", "not declared"),
        (f"{ENCODE} b, %1, %2x; cvt.u32.u8 %0, b;", "not a known instruction"),
        (f"{ENCODE} b, %1, %2; cvt.u32.u8 %0, b; mov.b32 %0, 5;", "neither"),
        (f".reg .b8 b; {ENCODE} b, %1, %2; cvt.u32.u8 %0, b;", "twice"),
        (f"{ENCODE} b, %1, %2; cvt.u32.u8 %0, b; }}", "too many"),
        (f"{{ {ENCODE} b, %1, %2; cvt.u32.u8 %0, b;", "never closed"),
        (f"{ENCODE} b, [%1], %2; cvt.u32.u8 %0, b;", "not a known instruction"),
        (f"{ENCODE} b, %1, %2; mov.b32 %0, 08;", "not a number"),
    ],
)
def test_refuses_what_it_does_not_know_and_names_the_ptx(body: str, message: str) -> None:
    declared = ".reg .b8 b, c; .reg .b16 h; .reg .b32 w, x;\n"
    with pytest.raises(Refusal) as refused:
        packed(declared + body)
    assert message in refused.value.drift.found
    assert refused.value.drift.nearest in " ".join((declared + body).split())


@pytest.mark.parametrize("constraint", ["=f", "=d", "=q"])
def test_refuses_an_output_that_is_no_integer(constraint: str) -> None:
    with pytest.raises(Refusal):
        evaluate(f"{{.reg .b8 b; {ENCODE} b, %1, %1;}}", [Operand(constraint)], [Operand("f")])


def test_an_input_that_is_no_float_has_no_code() -> None:
    with pytest.raises(Refusal) as refused:
        evaluate(f"{{.reg .b8 b; {ENCODE} b, %1, %1; cvt.u32.u8 %0, b;}}", [Operand("=r")], [Operand("h")])
    assert "16 bits" in refused.value.drift.found


def test_tells_encoding_from_decoding_and_from_comments() -> None:
    assert conversions(f"// {ENCODE} a, b, c;\ncvt.u32.u8 d, e;") == ("cvt.u32.u8",)
    assert conversions("cvt.rn . satfinite\n.e2m1x2.f32 a, b, c;") == (ENCODE,)
    assert is_encode(ENCODE)
    assert is_encode("cvt.rs.relu.satfinite.e2m1x4.f32")
    assert is_encode("cvt.rn.satfinite.e2m1x2.bf16x2")
    assert is_encode("cvt.rn.satfinite.e2m1x2f32")
    assert is_decode("cvt.rn.f16x2.e2m1x2")
    assert not is_encode("cvt.rn.f16x2.e2m1x2")
    assert not is_decode(ENCODE)
    assert not is_encode("cvt.rn.satfinite.e4m3x2.f32")
