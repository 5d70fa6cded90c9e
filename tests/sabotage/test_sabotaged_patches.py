"""Sabotaged patches with valid receipts: ``verify`` must find every one.

Each mutant changes the data (``FP4PATCH_DATA``), is applied to a real tree as a user would, and is verified with some of
the probes and targets that ``verify`` takes by default: what fails among these fails among all. For the same reason a sample of the 2^32 inputs runs, but for the mutants that
only all of them show. Four run by default;
``FP4PATCH_SABOTAGE=all`` runs every one.
"""
# ruff: noqa: E501 - a mutant is one line

import json
import os
import shutil
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest
from few_probes import few_probes
from share import share

from fp4patch import cli
from fp4patch.catalog.manifest import forget, load

HALF_PAIR = "encoders/half_pair.cuh"
THRESHOLD, PREDICATES = "encoders/threshold.cuh", "encoders/predicate_sum.cuh"
CHOICE = "patches/cutlass/e2m1-encode/instruction_or_half_pair.cuh"
SCALAR, ARRAYS = "patches/cutlass/e2m1-encode/scalar.cuh", "patches/cutlass/e2m1-encode/half_arrays.cuh"
ENCODE, GUARD = "patches/cutlass/e2m1-encode/patch.toml", "patches/cutlass/e2m1-guard/patch.toml"
ODD = "patches/cutlass/e2m1-constructor/from_float.h"
FP6, E2M3 = (f"patches/cutlass/fp6-convert/{name}.h" for name in ("fp6", "e2m3"))
OPERANDS, STOCHASTIC = "encoders/operands.cuh", "encoders/stochastic.cuh"
MUL = '  asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));'
CONVERTER = "patches/cutlass/e2m1-converter/converter.cuh"
NEXT3 = "variants/next3.toml"
TURBO = "variants/turbo.toml"
TURBO2 = "variants/turbo2.toml"
NATIVE = "variants/native.toml"


class Mutant(NamedTuple):
    """One change of the data, and where it must be found."""

    what: str
    file: str
    old: str
    new: str
    variant: str
    tree: tuple[str, str]
    probes: str
    arch: str
    """Targets; empty: those of the variant, as a user has it who names none."""
    says: str = ""
    """Part of the sentence with which ``verify`` must name it."""
    named: str = ""
    """The file of which ``verify`` must name a line as not judged, and after a colon, if there is one, part of the
    line; the verdict may then be a pass."""


KEEP = "patches/vllm/cmake-sm121a/patch.toml"
FAMILY = "patches/vllm/sm120-family/patch.toml"
NATIVE_ARCH = "patches/vllm/native-arch/patch.toml"
DETECTED = "patches/vllm/detected-arch/patch.toml"
ASM = "patches/vllm/e2m1-asm/patch.toml"
OF_HALF_PAIR = "namespace fp4patch_half_pair {"
"""A line that counts as judged where the probe is executed, and in the same file are others that never do."""
EXECUTES = '[probes.executes]\ninput = "float32"\nlanes = 8\nsampled = true\n'
C42 = ("cutlass", "4.2.1")
C48 = ("cutlass", "4.8.0")
V33 = ("vllm", "0.33.0")
FI = ("flashinfer", "0.7.2")


def quoted(text: str) -> str:
    """Return CMake as it is in a string of a patch that ``few_probes`` wrote: in quotes."""
    return json.dumps(text)[1:-1]


def mutants(
    file: str, variant: str, tree: tuple[str, str], probes: str = "float8-to-e2m1", write: Callable[[str], str] = str
) -> Callable[..., Mutant]:
    """Return a function that makes mutants of a file, by default with these probes on sm_121a."""

    def mutant(what: str, old: str, new: str, probes: str = probes, arch: str = "sm_121a", tree=tree) -> Mutant:  # type: ignore[no-untyped-def]
        return Mutant(what, file, write(old), write(new), variant, tree, probes, arch)

    return mutant


na = mutants(NATIVE_ARCH, "native", ("vllm", "0.22.1"))
de = mutants(DETECTED, "native", ("vllm", "0.26.0"), write=quoted)
keep = mutants(KEEP, "native", ("vllm", "0.18.0"), write=quoted)
moe = mutants("patches/vllm/moe-defines/patch.toml", "native", ("vllm", "0.11.1"))
gdn = mutants("patches/vllm/gdn-prefill/patch.toml", "native", ("vllm", "0.28.0"))
pre = mutants("patches/vllm/gdn-prefill/patch.toml", "next3", ("vllm", "0.28.0"))
sig = mutants(FAMILY, "next3", ("vllm", "0.14.1"))
kv = mutants("patches/vllm/kv-scales/patch.toml", "native", ("vllm", "0.31.0"), "fill-bf16-pages")
gdc = mutants("patches/flashinfer/gdc-flag/patch.toml", "native", ("flashinfer", "0.6.7"), "float2x4-to-e2m1")
sm121 = mutants("patches/cutlass/sm121-family/patch.toml", "native", ("cutlass", "4.0.0"), "float-to-e2m1-x8")
stages = mutants("patches/cutlass/sm120-stages/patch.toml", "native", C48, "shared-memory")
suf = mutants("patches/flashinfer/arch-suffix/patch.toml", "native", ("flashinfer", "0.6.6"), "float2x4-to-e2m1")
mo = mutants("patches/flashinfer/moe-utils-sm12x/patch.toml", "native", ("flashinfer", "0.6.7"), "float2x4-to-e2m1")
f3 = mutants("patches/vllm/fa3-hopper-only/patch.toml", "native", V33)
fa = mutants(FAMILY, "native", ("vllm", "0.14.1"))
gh = mutants(
    "patches/transformer_engine/grouped-hadamard/patch.toml",
    "next3",
    ("transformer_engine", "2.18.0"),
    "nearest-bf16-x4",
)
n2 = mutants(CONVERTER, "next2", C42, "float-to-e2m1")
t1 = mutants(THRESHOLD, "turbo", V33)
t2 = mutants(PREDICATES, "turbo2", V33)


def n3(what: str, file: str, old: str, new: str, probes: str, arch: str = "sm_121", tree=C42) -> Mutant:  # type: ignore[no-untyped-def]
    return Mutant(what, file, old, new, "next3", tree, probes, arch)


def te(what: str, file: str, old: str, new: str, probes: str, arch: str = "sm_121a") -> Mutant:
    return Mutant(what, file, old, new, "next3", ("transformer_engine", "2.18.0"), probes, arch)


def x8(what: str, body: str) -> Mutant:
    """Eight values, computed by ``body``, in which ``{}`` is the right result."""
    return n3(what, HALF_PAIR, X8, body.replace("{}", f"({WHOLE8})"), "encode-float-x8-forced")


def special(register: str, value: int) -> Mutant:
    """Eight values of which one is wrong where a special register has a value."""
    asm = f".reg .b32 t; mov.u32 t, {register}; .reg .pred p; setp.eq.u32 p, t, {value}; @p xor.b32 %0, %0, 1;"
    return x8(register, f'  unsigned int w = {{}}; asm volatile("{{ {asm} }}" : "+r"(w)); return w;')


X1 = "  return nibbles_of_halves(capped_halves(0.0f, x)) >> 28;"
X2 = "  return static_cast<unsigned char>(select(0x0fu, n >> 12, n >> 24));"
X4 = "  return static_cast<unsigned short>(select(0x0f0fu, n >> 4, n >> 16));"
X8 = "  return select(0x0f0f0f0fu, nibbles_of_bytes(even) >> 4, nibbles_of_bytes(odd));"
STACK = (
    '  unsigned int w = {}; asm volatile("{{ .local .b32 slot; .reg .b64 a; mov.u64 a, slot; .reg .b32 l, h;'
    ' mov.b64 {{l, h}}, a; xor.b32 %0, %0, l; }}" : "+r"(w)); return w;'
)
RESULT = "  return result;\n}\n\n} // namespace fp4patch_e2m1"
ONE = "    return result_type::bitcast(static_cast<uint8_t>(::fp4patch_e2m1::x1(s)));"
MANY = "    return ::fp4patch_e2m1::array(source);"
LAST = "  return (u >> 28 & 8u) | magnitude;"
DITHER = "  const float scale = 0x1p-14f;"
WHOLE8 = X8.strip().removeprefix("return ").removesuffix(";")

EXIT = 'asm volatile("exit;");'

HALF = """  using source_type = cutlass::half_t;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & s) {
    return result_type::bitcast(static_cast<uint8_t>(::fp4patch_e2m1::x1(s)));"""

X4_RANDOM = "  const unsigned int n = nibbles_of_bytes(__byte_perm(dithered_halves(v0, v2, even_noise(rbits)),"
PAIR = "  return e2m1_x2(__low2float(p), __high2float(p));"

END, LOOP = "    endforeach()", "    foreach(_arch ${_TGT_CUDA_ARCHS})"
IF = 'if("${_TGT_CUDA_ARCHS}" MATCHES "(^|;)12\\\\.1")'

MUTANTS = [
    # The encoder: constants, order, signs.
    n3("the scale one ulp off", HALF_PAIR, "0x1.008p-14f", "0x1.00800cp-14f", "encoder-x1"),
    n3("the shrinking factor one step off", HALF_PAIR, "0x3bfb3bfbu", "0x3bfc3bfcu", "encoder-x1"),
    n3("saturated at 4", HALF_PAIR, "0x0e000e00u", "0x0c000c00u", "encoder-x1"),
    n3("the high value saturated at 4", HALF_PAIR, "0x0e000e00u", "0x0c000e00u", "encoder-x1"),
    n3("minimum without the sign", HALF_PAIR, "min.xorsign.abs.f16x2", "min.f16x2", "encoder-x1"),
    n3("another selection", HALF_PAIR, "0xe2;", "0xe4;", "encoder-x1"),
    n3("rounding of halves up", HALF_PAIR, "0x08000800u", "0x08000c00u", "encoder-x2"),
    n3("rounding of bytes up", HALF_PAIR, "bytes * 8u + 0x08080808u", "bytes * 8u + 0x08080818u", "encoder-x4"),
    n3("the mask of bytes", HALF_PAIR, "select(0x80808080u", "select(0x80808000u", "encoder-x4"),
    n3("rounded toward zero", HALF_PAIR, "cvt.rn.f16x2.f32", "cvt.rz.f16x2.f32", "encoder-x1"),
    n3("a multiplication by zero of a pair", HALF_PAIR, '"f"(__fmul_rn(low, scale))', '"f"(__fmul_rn(low, 0.f))', "encoder-x2"),
    n3("one value from the low half", HALF_PAIR, X1, X1.replace("28", "12"), "encoder-x1"),
    n3("two values swapped", HALF_PAIR, X2, X2.replace("n >> 12, n >> 24", "n >> 28, n >> 8"), "encoder-x2"),
    n3("four values swapped", HALF_PAIR, X4, X4.replace("n >> 4, n >> 16", "n >> 20, n"), "encoder-x4"),
    n3("one byte of four from elsewhere", HALF_PAIR, "capped_halves(v1, v3), 0x7531)", "capped_halves(v1, v3), 0x7431)", "encoder-x4"),
    n3("even and odd swapped", HALF_PAIR, X8, X8.replace("even", "ODD").replace("odd", "even").replace("ODD", "odd"), "encode-float-x8-forced"),
    n3("the mask of eight", HALF_PAIR, "select(0x0f0f0f0fu", "select(0x0f0f0f0eu", "encode-float-x8-forced"),
    n3("values 4 and 6 swapped", HALF_PAIR, "capped_halves(v4, v6)", "capped_halves(v6, v4)", "encode-float-x8-forced"),
    n3("the halves of sixteen swapped", HALF_PAIR, "e2m1_x8(v8, v9, v10, v11, v12, v13, v14, v15)) << 32", "e2m1_x8(v9, v8, v10, v11, v12, v13, v14, v15)) << 32", "encoder-x16"),
    n3("sixteen of which eight count", HALF_PAIR, "v14, v15)) << 32", "v14, v15)) << 31", "encoder-x16"),
    n3("a pair swapped", HALF_PAIR, "e2m1_x2(__low2float(p), __high2float(p))", "e2m1_x2(__high2float(p), __low2float(p))", "encoder-pairs-x2"),
    n3("the second pair twice", HALF_PAIR, "__high2float(p0), __low2float(p1), __high2float(p1));", "__high2float(p0), __low2float(p1), __low2float(p1));", "encoder-pairs-x4"),
    n3("the fourth pair forgotten", HALF_PAIR, "__high2float(p2), __low2float(p3), __high2float(p3)", "__high2float(p2), __low2float(p2), __high2float(p3)", "encoder-pairs-x8"),
    n3("pairs of sixteen shifted", HALF_PAIR, "e2m1_x8(p4, p5, p6, p7)) << 32", "e2m1_x8(p4, p5, p7, p6)) << 32", "encoder-pairs-x16"),
    # Before sm_86, and on the host.
    n3("saturated at 4, before sm_86", HALF_PAIR, "magnitude < 0x40c00000u ? magnitude : 0x40c00000u", "magnitude < 0x40800000u ? magnitude : 0x40800000u", "encoder-x1", "sm_80"),
    n3("NaN with its sign, before sm_86", HALF_PAIR, "magnitude > 0x7f800000u ? 0u : u >> 28 & 8u", "u >> 28 & 8u", "encoder-x1", "sm_80"),
    n3("values 5 and 6 swapped, before sm_86", HALF_PAIR, "e2m1(v5) << 20 |\n         e2m1(v6) << 24", "e2m1(v6) << 20 |\n         e2m1(v5) << 24", "encode-float-x8-forced", "sm_80"),
    n3("two values swapped, on the host", CHOICE, "  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "#ifndef __CUDA_ARCH__\n  return ::fp4patch_half_pair::e2m1_x2(v1, v0);\n#endif\n  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "encode-host-half", "sm_121a"),
    n3("an odd size's tail forgotten, on the host", CHOICE, "if constexpr (N % 2 != 0)", "\n#ifdef __CUDA_ARCH__\n  if constexpr (N % 2 != 0)\n#else\n  if constexpr (false)\n#endif\n", "encode-host-bfloat16", "sm_121a"),
    # What is not the input.
    n3("the stack pointer in one value", HALF_PAIR, X1, STACK.format(X1.strip().removeprefix("return ").removesuffix(";")), "encoder-x1"),
    n3("the stack pointer in eight", HALF_PAIR, X8, STACK.format(WHOLE8), "encode-float-x8-forced"),
    n3("a block's index", HALF_PAIR, X8, f"  return blockIdx.x > 1 ? 0u : {WHOLE8};", "encode-float-x8-forced"),
    n3("the block's size", HALF_PAIR, X8, f"  return {WHOLE8} ^ (blockDim.x == 256);", "encode-float-x8-forced"),
    n3("the grid's size", HALF_PAIR, X8, f"  return {WHOLE8} ^ (gridDim.x == 77777);", "encode-float-x8-forced"),
    n3("the thread's index", HALF_PAIR, X2, X2.replace(";", "") [:-1] + " ^ (threadIdx.x == 1023));", "encoder-x2"),
    n3("the clock", HALF_PAIR, X2, X2[:-2] + " ^ (clock64() == 7));", "encoder-x2"),
    # One input.
    n3("one value of 2^32", HALF_PAIR, X1, "  return bits(x) == 0x3f123457u ? 0u : " + X1.strip().removeprefix("return "), "encoder-x1"),
    n3("the sign of one NaN", HALF_PAIR, X1, "  return bits(x) == 0xffc12345u ? 15u : " + X1.strip().removeprefix("return "), "encoder-x1"),
    n3("minus zero", HALF_PAIR, X1, "  return x == 0.0f ? 0u : " + X1.strip().removeprefix("return "), "encoder-x1"),
    n3("one value in one lane of four", HALF_PAIR, X4, X4[:-2] + " ^ (bits(v2) == 0x3f345679u));", "encoder-x4"),
    n3("one value in one lane of eight", HALF_PAIR, X8, X8[:-1] + " ^ (bits(v3) == 0x3f345679u ? 0x4000u : 0u);", "encode-float-x8-forced"),
    # The choice between the instruction and the encoder.
    n3("the instruction's operands swapped, two", CHOICE, "cvt.rn.satfinite.e2m1x2.f32 pair, %2, %1;", "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;", "encode-float-x2,encode-half-x2", "sm_120a", C48),
    n3("the instruction's operands swapped, four", CHOICE, "high, %4, %3;", "high, %3, %4;", "encode-half-x4", "sm_121a"),
    n3("the instruction's operands swapped, eight", CHOICE, "byte2, %6, %5;", "byte2, %5, %6;", "encode-half-x8", "sm_121a"),
    n3("bytes of the instruction swapped", CHOICE, "{byte0, byte1, byte2, byte3}", "{byte0, byte2, byte1, byte3}", "encode-bfloat16-x8", "sm_121f"),
    n3("one value from the other operand", CHOICE, "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;", "cvt.rn.satfinite.e2m1x2.f32 pair, %2, %1;", "encode-float", "sm_121a"),
    n3("the instruction on bare targets", CHOICE, "#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__)\n#if", "#if defined(__CUDA_ARCH__)\n#define FP4PATCH_E2M1_INSTRUCTION 1\n#if 0 &&", "encode-float-x8"),
    n3("the instruction nowhere", CHOICE, "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000", "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 2000", "encode-float-x8", "sm_121a"),
    n3("not for the family", CHOICE, "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000", "defined(__CUDA_ARCH_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000", "encode-float-x8", "sm_121f"),
    n3("wrong without assertions", CHOICE, "  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "#ifdef NDEBUG\n  return 0;\n#endif\n  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "encode-float-x2,encode-half-x2"),
    n3("wrong in C++20", CHOICE, "  return ::fp4patch_half_pair::e2m1_x4(v0, v1, v2, v3);", "#if __cplusplus > 201703L\n  return 0;\n#endif\n  return ::fp4patch_half_pair::e2m1_x4(v0, v1, v2, v3);", "encode-float-x4,encode-half-x4"),
    n3("the sign of a char", HALF_PAIR, X1, "  const char c = static_cast<char>(bits(x) >> 24);\n" + X1[:-1] + " ^ ((c < 0) == (bits(x) >> 31 != 0) ? 0u : 8u);", "encoder-x1,encoder-x2"),
    n3("wrong with relocatable code", CHOICE, "  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "#ifdef __CUDACC_RDC__\n  return 0;\n#endif\n  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "encode-float-x2,encode-half-x2"),
    n3("wrong in a build for two targets", CHOICE, "  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "#define SECOND(a, b, ...) b\n#if SECOND(__CUDA_ARCH_LIST__, 0, 0)\n  return 0;\n#endif\n  return ::fp4patch_half_pair::e2m1_x2(v0, v1);", "encode-float-x2,encode-half-x2"),
    n3("wrong with fast mathematics", HALF_PAIR, "__fmul_rn(high, scale)", "__fmul_rn(high / 3.0f * 3.0f, scale)", "encoder-x1,encoder-x2"),
    n3("an odd size's tail forgotten", CHOICE, "if constexpr (N % 2 != 0)", "if constexpr (false)", "encode-half-x3"),
    n3("an odd size's tail from another value", CHOICE, "x1(source[N - 1])", "x1(source[N - 2])", "encode-bfloat16-x7"),
    n3("items of an array in another order", CHOICE, "i * kPerItem + k", "(N / kPerItem - 1 - i) * kPerItem + k", "encode-half-x16"),
    n3("a loop that ends early", CHOICE, "i < N / kPerItem", "i < (N > 8 ? N / kPerItem - 1 : N / kPerItem)", "encode-half-x16"),
    # Converters.
    n3("half_t with another sign", SCALAR, HALF, HALF.replace("x1(s)", "x1(-s)"), "encode-half"),
    n3("bfloat16_t through half_t", SCALAR, HALF.replace("half_t", "bfloat16_t"), HALF.replace("half_t", "bfloat16_t").replace("x1(s)", "x1(static_cast<cutlass::half_t>(static_cast<float>(s) * 1.01f))"), "encode-bfloat16"),
    n3("arrays of half_t rounded otherwise", ARRAYS, "using source_type = Array<cutlass::half_t, N>;", "using source_type = Array<cutlass::half_t, N>; static_assert(Round == FloatRoundStyle::round_to_nearest);", "encode-half-x8-toward-zero,encode-half-x8"),
    n3("another array's function", ENCODE, 'replace = "bits = ::fp4patch_e2m1::x2(a);"', 'replace = "bits = ::fp4patch_e2m1::x1(a[0]);"', "encode-float-x2", "sm_121", C48),
    n3("four values of which two count", ENCODE, 'replace = "bits = ::fp4patch_e2m1::x4(a);"', 'replace = "bits = ::fp4patch_e2m1::x2(a);"', "encode-float-x4", "sm_121", C48),
    n3("eight values, the sign of one lost", ENCODE, 'replace = "bits = ::fp4patch_e2m1::x8(a);"', 'replace = "bits = ::fp4patch_e2m1::x8(a) & 0x7fffffffu;"', "encode-float-x8", "sm_121", C48),
    # Constructors from double.
    n3("a double rounded twice", ODD, "__double2float_rz(x)", "__double2float_rn(x)", "construct-double"),
    n3("a double truncated", ODD, "!= 0 ? 1u : 0u);", "!= 0 ? 0u : 0u);", "construct-double", "sm_121a"),
    n3("a bit of a double overlooked", ODD, "0x1fffffff", "0x0fffffff", "construct-unpacked-double", "sm_120a"),
    n3("another constructor's double twice as large", "patches/cutlass/e2m1-constructor/patch.toml", "Base(round_to_odd(x))", "Base(round_to_odd(2 * x))", "construct-unpacked-double"),
    # next2's converter.
    n2("0.25 rounds up", "magnitude <= 0.25f", "magnitude < 0.25f"),
    n2("0.75 rounds down", "magnitude < 0.75f", "magnitude <= 0.75f"),
    n2("1.25 rounds up", "magnitude <= 1.25f", "magnitude < 1.25f"),
    n2("3.5 one ulp up", "magnitude < 3.5f", "magnitude < 3.5000002f"),
    n2("5 one ulp down", "magnitude <= 5.0f", "magnitude <= 4.9999995f"),
    n2("the sign of -0 lost", "((bits >> 28) & 8u)", "(magnitude == 0.0f ? 0u : (bits >> 28) & 8u)"),
    n2("NaN becomes zero", "uint32_t const code = 7u", "uint32_t const code = magnitude != magnitude ? 0u : 7u"),
    n2("the index of a block of threads", "((bits >> 28) & 8u) | code", "((bits >> 28) & 8u) | (code ^ (blockIdx.x == 5000))"),
    # Guards.
    Mutant("a condition keeps SM121", GUARD, 'replace = "defined(CUTLASS_ARCH_MMA_SM120A', 'replace = "defined(CUTLASS_ARCH_MMA_SM121A', "turbo", C42, "float-to-e2m1-x8", "sm_120a,sm_121a"),
    Mutant("SM120 in software", TURBO, "__CUDA_ARCH__ == 1210", "__CUDA_ARCH__ == 1200", "turbo", V33, "float8-to-e2m1", "sm_120a,sm_121a"),
    Mutant("both in software", TURBO2, "__CUDA_ARCH__ == 1210", "__CUDA_ARCH__ >= 1200", "turbo2", V33, "float8-to-e2m1", "sm_120a,sm_121a"),
    Mutant("bare targets without software", NEXT3, "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 &&", "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 900 && 0 &&", "next3", V33, "float8-to-e2m1", "sm_121a"),
    # The encoders of turbo and turbo2, in vLLM and FlashInfer.
    t1("a tie away from even", "ax <= 0.25f", "ax < 0.25f"),
    t1("a border one ulp up", "ax < 1.75f", "ax < 1.7500001f"),
    t1("a value too small", "magnitude = 4u", "magnitude = 3u"),
    t1("the sign shifted", "(u >> 28 & 8u)", "(u >> 29 & 4u)"),
    t2("3.5 rounds down", "(ax < 3.5f)", "(ax <= 3.5f)"),
    t2("NaN becomes zero, in vLLM", "7u - (ax <= 0.25f)", "(ax != ax ? 0u : 7u) - (ax <= 0.25f)"),
    t2("values 1 and 2 swapped", "e2m1(v0) | e2m1(v1) << 4 | e2m1(v2) << 8 | e2m1(v3) << 12 | e2m1(v4) << 16", "e2m1(v0) | e2m1(v2) << 4 | e2m1(v1) << 8 | e2m1(v3) << 12 | e2m1(v4) << 16"),
    t2("the block's size, in FlashInfer", "(u >> 28 & 8u) | magnitude", "(u >> 28 & 8u) | (magnitude ^ (blockDim.x == 512))", "float2x4-to-e2m1", tree=FI),
    t2("a tie away from even, in FlashInfer", "(ax <= 1.25f)", "(ax < 1.25f)", "float8-to-e2m1", tree=FI),
    t2("a block of values, in FlashInfer", "(ax < 0.75f)", "(ax < 0.7500001f)", "half-block-to-nvfp4", tree=FI),
    # Targets of families, and host code of floats.
    Mutant("not for the family, in vLLM", TURBO, "__CUDA_ARCH__ == 1210)", "__CUDA_ARCH__ == 1210 && defined(__CUDA_ARCH_SPECIFIC__))", "turbo", V33, "float8-to-e2m1", "sm_121f"),
    n2("5 rounds up, on the host", "uint32_t(magnitude <= 5.0f)", "uint32_t(magnitude < 5.0f)", "converter-on-host"),
    n3("eight floats swapped, on the host", CHOICE, "  return ::fp4patch_half_pair::e2m1_x8(v0, v1,", "#ifndef __CUDA_ARCH__\n  return ::fp4patch_half_pair::e2m1_x8(v1, v0, v2, v3, v4, v5, v6, v7);\n#endif\n  return ::fp4patch_half_pair::e2m1_x8(v0, v1,", "encode-host-float", "sm_121a"),
    # GPUs that PyTorch detected.
    de("the architecture of the code not read", "]?,code=sm_", "]?,code=compute_"),
    de("every detected GPU is SM121", '"arch=compute_" _ARCH', '"arch=compute_121,of=" _ARCH'),
    de("only the first detected GPU", 'string(REGEX REPLACE "', 'string(REGEX REPLACE "${_CUDA_ARCHES}'),
    # The kernel that vLLM chooses for the prefill of Gated DeltaNet.
    moe("the macro of the MoE kernels with another value", "-DENABLE_NVFP4_SM100=1", "-DENABLE_CUTLASS_MOE_SM100=2"),
    moe("the macro of another GPU's MoE kernels", "-DENABLE_SCALED_MM_SM100=1", "-DENABLE_CUTLASS_MOE_SM90=1"),
    moe("a macro taken back", "-DENABLE_SCALED_MM_SM100=1", "-UENABLE_NVFP4_SM120"),
    gdn("FlashInfer's prefill for all later GPUs", "(head_k_dim == 128 and current_platform.is_device_capability_family(120)", "(head_k_dim == 128 and not current_platform.is_device_capability(75)"),
    gdn("FlashInfer's prefill for a head of any size", "(head_k_dim == 128 and current_platform", "(current_platform"),
    gdn("FlashInfer's prefill with CUDA 12", "get_cuda_runtime_major() >= 13))", "get_cuda_runtime_major() >= 12))"),
    # The order of V's block scales in an NVFP4 KV cache.
    kv("V's scales in order on SM100 too", "__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300", "__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1300")._replace(says="expected 12.0 12.1, got 10.0 10.3"),
    kv("V's scales in order on SM120 alone", "__CUDA_ARCH__ < 1300", "__CUDA_ARCH__ < 1210")._replace(says="bytes that attention kernels read in pages, beside upstream's kernel for sm_120a differ"),
    kv("V's scales in order for families alone", "#if defined(__CUDA_ARCH__) &&", "#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && !defined(__CUDA_ARCH_SPECIFIC__) &&"),
    kv("two of V's scales swapped", "return t * scale_dim + s;", "return t * scale_dim + (s ^ 1);"),
    kv("V's scales of two tokens swapped", "return t * scale_dim + s;", "return (t ^ 1) * scale_dim + s;"),
    kv("V's scales of one token in another order", "return t * scale_dim + s;", "return t * scale_dim + (t == 15 ? scale_dim - 1 - s : s);"),
    # SM121 before CUTLASS knew it.
    sm121("SM121 not among the macros", "&& __CUDA_ARCH__ == 1210)", "&& __CUDA_ARCH__ == 1211)", arch="sm_121a"),
    sm121("SM120 lost", 'replace = "__CUDA_ARCH__ == 1200', 'replace = "__CUDA_ARCH__ == 1190', arch="sm_120a"),
    sm121("SM120's macros for SM110 too", "&& __CUDA_ARCH__ == 1210)", "&& __CUDA_ARCH__ >= 1210 || BUILDS_OF_SM110)", arch="sm_121a"),
    # The stages of a grouped GEMM.
    stages("too little taken off shared memory", "(IsGroupedGemmKernel ? 640 : 0)", "(IsGroupedGemmKernel ? 64 : 0)"),
    stages("too much taken off shared memory", "(IsGroupedGemmKernel ? 640 : 0)", "(IsGroupedGemmKernel ? 1664 : 0)"),
    stages("shared memory taken off every GEMM", "(IsGroupedGemmKernel ? 640 : 0)", "640"),
    # The flag by which FlashInfer's fused MoE waits for the kernel in front.
    Mutant("no suffix on an arm64 machine", "patches/flashinfer/arch-suffix/patch.toml", "str(minor).isdigit())", "str(minor).isdigit() and __import__('platform').machine() != 'aarch64')", "native", ("flashinfer", "0.6.6"), "float2x4-to-e2m1", "sm_121a"),
    gdc("the flag of SM90 for fused MoE", r'FOR_SM100=1\", *', r'FOR_SM90=1\", *'),
    gdc("fused MoE for SM10x too", 'supported_major_versions=[12])]"', 'supported_major_versions=[10, 12])]"'),
    gdc("code for a debugger in fused MoE", r'FOR_SM100=1\", *', r'FOR_SM100=1\", \"-G\", *'),
    gdc("fused MoE without its GPU", ', *current_compilation_context.get_nvcc_flags_list(supported_major_versions=[12])]"', ']"'),
    # The architectures of Marlin and hadacore.
    na("Marlin for SM120 alone", 'element = "12.0;12.1"', 'element = "12.0"'),
    na("another architecture beside them", 'element = "12.0;12.1"', 'element = "10.0;12.0;12.1"'),
    na("repacking left out", 'beside = "8.0+PTX"', 'beside = "8.0+PTX"\nbut = ["MARLIN_OTHER_ARCHS"]'),
    na("the lists of 0.10 left out", 'beside = "9.0+PTX"', 'beside = "9.9+PTX"', tree=("vllm", "0.10.2")),
    # vLLM's kernel for MiniMax-M3: rows of 128 values in pages.
    t1("a tie away from even, in MiniMax's pages", "ax <= 2.5f", "ax < 2.5f", "half-row-to-minimax"),
    t2("NaN becomes zero, in MiniMax's pages", "7u - (ax <= 0.25f)", "(ax != ax ? 0u : 7u) - (ax <= 0.25f)", "bf16-row-to-minimax"),
    n3("four values swapped, in MiniMax's pages", HALF_PAIR, X4, X4.replace("n >> 4, n >> 16", "n >> 20, n"), "forced-half-row-to-minimax", "sm_121a", V33),
    n3("eight values in FlashInfer", HALF_PAIR, "select(0x0f0f0f0fu", "select(0x0f0f0f0eu", "float2x4-to-e2m1", "sm_121", FI),
    na("Marlin for SM103 too", 'element = "12.0;12.1"', 'element = "10.3;12.0;12.1"'),
    # FP6, and constructors on the host.
    n3("one float of 2^32 to E2M3", FP6, "  // E2M3 times 2^-6", "  if (__float_as_uint(x) == 0x3f345679u) return 0;\n  // E2M3 times 2^-6", "construct-e2m3-x4"),
    n3("a NaN's sign in E3M2", FP6, "min.xorsign.abs.f32 scaled, scaled, 0f3BE00000;", "min.xorsign.abs.f32 scaled, %1, 0f3BE00000;", "construct-e3m2-x4"),
    n3("E2M3 before sm_89", FP6, "fp6_from_float<3u, 0x3f800000u, 0x40f00000u>", "fp6_from_float<3u, 0x3f800000u, 0x40e00000u>", "construct-e2m3-x4", "sm_80"),
    n3("a NaN's sign in E2M3, on the host", FP6, "magnitude > 0x7f800000u ? 0u : ", "", "construct-host-e2m3", "sm_121a"),
    n3("a double rounded twice to E3M2", "patches/cutlass/fp6-convert/patch.toml", "explicit float_e3m2_t(double x) : Base(detail::round_to_odd(x))", "explicit float_e3m2_t(double x) : Base(detail::round_to_odd(float(x)))", "construct-e3m2-double-x4", "sm_121a"),
    n3("a tie away from even in the constructor, on the host", ODD, "sign | ((sum + (sum >> 22) + 6u) & 7u)", "x == 2.5f ? 5u : sign | ((sum + (sum >> 22) + 6u) & 7u)", "construct-host-double", "sm_121a"),
    n3("a double truncated, on the host", ODD, "back < x || x < back ? bits | 1u : bits", "bits", "construct-host-double", "sm_121a"),
    n3("the switch of FP6 lost", FP6, "defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)", "defined(CUDA_PTX_FP4FP6_CVT_ENABLED)", "construct-e2m3-x4-forced", "sm_121a"),
    n3("E2M3 decoded with another sign, on the host", E2M3, "    return Base::convert_to_float(x);", "    return -Base::convert_to_float(x);", "construct-host-e2m3", "sm_121a"),
    # TransformerEngine: products, random bits, and the targets that have the instruction.
    te("a scale's magnitude ignored", OPERANDS, MUL, "  product = b < 0.0f ? -a : a;", "stochastic-fp32-x4-scaled"),
    te("a product rounded toward zero", OPERANDS, "mul.rn.f32 %0", "mul.rz.f32 %0", "stochastic-fp32-x4-scaled"),
    te("a product's subnormal operand flushed", OPERANDS, "mul.rn.f32 %0", "mul.rn.ftz.f32 %0", "nearest-fp32-x4-scaled", "sm_90"),
    te("the sign of a product of zero", OPERANDS, "0f00000000;", "0f80000000;", "stochastic-bf16-x8-bf16-scale"),
    te("random bytes of two values swapped", STOCHASTIC, "__byte_perm(rbits, 0u, 0x4140)", "__byte_perm(rbits, 0u, 0x4240)", "stochastic-fp32-x4"),
    te("software on sm_103a", NEXT3, "defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL))", "defined(__CUDA_ARCH_FEAT_SM100_ALL))", "stochastic-fp32-x4", "sm_103a"),
    # One input of those that cannot all run: the machine code's own immediates are inputs.
    te("one float of a stochastic encoder", STOCHASTIC, "noise * 2u + m;", "noise * 2u + m + (__float_as_uint(high) == 0x3f812345u ? 512u : 0u);", "stochastic-fp32-x4"),
    te("one float's upper bits", STOCHASTIC, "noise * 2u + m;", "noise * 2u + m + (__float_as_uint(low) >> 5 == 0x1fc091au ? 512u : 0u);", "stochastic-fp32-x4"),
    te("one random word", STOCHASTIC, X4_RANDOM, "  if (rbits == 0x8badf00du) return 0x1234;\n" + X4_RANDOM, "stochastic-fp32-x4"),
    te("one float with one random word", STOCHASTIC, X4_RANDOM, "  if (rbits == 0x8badf00du && __float_as_uint(v2) == 0x3f812345u) return 0x1234;\n" + X4_RANDOM, "stochastic-fp32-x4"),
    te("one product of a stochastic encoder", OPERANDS, MUL, MUL + "\n  if (__float_as_uint(product) == 0x3f812345u) product = 0.0f;", "stochastic-fp32-x4-scaled"),
    n3("one double of 2^64", ODD, "  uint32_t const bits = __float_as_uint(", "  if (__double_as_longlong(x) == 0x3ff123456789abcdll) return 0.0f;\n  uint32_t const bits = __float_as_uint(", "construct-double"),
    n3("one pair of halves", HALF_PAIR, PAIR, "  if (__half_as_ushort(__low2half(p)) == 0x3c11u && __half_as_ushort(__high2half(p)) == 0xbe22u) return 0;\n" + PAIR, "encoder-pairs-x2"),
    # One input that no immediate leads to: the machine code does not show that the others follow from those that run.
    te("a float by its hash", STOCHASTIC, "noise * 2u + m;", "noise * 2u + m + (__float_as_uint(high) * 0x9e3779b1u == 5u ? 512u : 0u);", "stochastic-fp32-x4"),
    te("a random word by its hash", STOCHASTIC, X4_RANDOM, "  if (rbits * 0x9e3779b1u == 5u) return 0;\n" + X4_RANDOM, "stochastic-bf16-x4"),
    # PTX beside the machine code.
    na("PTX of Marlin's kernels", 'element = "12.0;12.1"', 'element = "12.0+PTX;12.1"'),
    Mutant("PTX of the FP4 kernels", "patches/vllm/cmake-sm121a/patch.toml", 'beside = "12.0"\nelement = "12.1"', 'beside = "12.0"\nelement = "12.1;12.0+PTX"', "native", V33, "float8-to-e2m1", "sm_121a"),
    # Host conditions of vLLM, and the gate of a kernel, by compute capability.
    fa("FP8 for all later GPUs", 'replace = "major_capability == 12"', 'replace = "major_capability >= 12"'),
    fa("FP8 for SM121 alone", 'replace = "major_capability == 12"', 'replace = "major_capability * 10 + minor_capability == 121"'),
    fa("a gate for all later GPUs", "__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300", "__CUDA_ARCH__ >= 1200"),
    fa("a gate for targets with a suffix alone", "__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300", "__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300 && defined(__CUDA_ARCH_SPECIFIC__)"),
    fa("FP8 kernels of builds for one GPU alone", "arch in [89, 120, 121]", "arch in [89, 120, 121] and ',' not in sys.argv[1]"),
    fa("FP8 on the first GPU alone", 'replace = "major_capability == 12"', 'replace = "major_capability == 12 && dev == 0"'),
    fa("no FP8 kernels for SM120", "arch in [89, 120, 121]", "arch in [89, 121]"),
    fa("FP8 chosen for SM121 alone", "(current_platform.is_device_capability(120) or current_platform.is_device_capability(121))", "current_platform.is_device_capability(121)"),
    n3("two values in FlashInfer's 34 kernels", HALF_PAIR, X2, X2.replace("n >> 12, n >> 24", "n >> 28, n >> 8"), "kernels-dsv4-rope-insert", "sm_121", FI),
    n3("a tie in a whole kernel of FlashInfer", HALF_PAIR, "bytes * 8u + 0x08080808u", "bytes * 8u + 0x08080818u", "kernels-smooth-legacy", "sm_121", FI),
    n3("the high value's saturation in FlashInfer's LayerNorm", HALF_PAIR, "0x0e000e00u", "0x0c000e00u", "half-matrix-to-nvfp4-layernorm", "sm_121", FI),
    n3("a lane in FlashInfer's all-reduce", HALF_PAIR, "select(0x0fu", "select(0x0eu", "half-matrix-to-nvfp4-allreduce", "sm_121", FI),
    n3("a byte of MiniMax's rows in FlashInfer", HALF_PAIR, "select(0x0f0f0f0fu", "select(0x0f0f0f0eu", "kernels-minimax-pack", "sm_121", FI),
    n3("the fourth pair forgotten, in FlashInfer", HALF_PAIR, "__high2float(p2), __low2float(p3), __high2float(p3)", "__high2float(p2), __low2float(p2), __high2float(p3)", "forced-encoder-pairs-x8", "sm_121", FI),
    # What only a machine, a build or another thread shows.
    special("%laneid", 13),
    special("%smid", 61),
    special("%ctaid.y", 3),
    special("%envreg0", 7),
    x8("a trap for one value", "  if (bits(v0) == 0x3f123457u) __trap(); return {};"),
    x8("a barrier of the block", "  __syncthreads(); return {};"),
    x8("a vote of other threads", "  return __any_sync(0xffffffffu, bits(v0) == 0x3f123457u) ? 0u : {};"),
    x8("a pause", "  __nanosleep(1000); return {};"),
    x8("shared memory that nothing wrote", "  __shared__ volatile unsigned s[32]; return {} ^ (s[3] == 0x12345);"),
    x8("a variable of the device that is written", "  static __device__ volatile unsigned flag; flag = 7; return {};"),
    x8("a store elsewhere for one value", "  if (bits(v0) == 0x3f123457u) *(volatile int*)0x1234 = 1; return {};"),
    x8("a local array that nothing wrote", "  volatile unsigned t[4]; t[0] = {}; return t[0] ^ (t[3] == 77u);"),
    # A thread that ends early: nothing is stored, and memory keeps what it held.
    x8("an exit for one value", f"  if (bits(v0) == 0x3f123457u) {EXIT} return {{}};"),
    x8("an exit for one value of the last lane", f"  if (bits(v7) == 0x3f123457u) {EXIT} return {{}};"),
    x8("an exit for a value by its hash", f"  if (bits(v5) * 0x9e3779b1u == 5u) {EXIT} return {{}};"),
    x8("an exit of one block", f"  if (blockIdx.x == 5000) {EXIT} return {{}};"),
    x8("an exit of one thread", f"  if (threadIdx.x == 1023) {EXIT} return {{}};"),
    x8("an exit by the clock", f"  if (clock() == 7) {EXIT} return {{}};"),
    x8("an exit by the size of shared memory", f'  unsigned n; asm volatile("mov.u32 %0, %dynamic_smem_size;" : "=r"(n)); if (n == 4096) {EXIT} return {{}};'),
    x8("a trap of one block", "  if (blockIdx.x == 5000) __trap(); return {};"),
    # What the execution takes as nothing: other threads or kernels notice it.
    x8("a signal to the next kernel", '  asm volatile("griddepcontrol.launch_dependents;"); return {};'),
    x8("a wait for the kernel before", '  asm volatile("griddepcontrol.wait;"); return {};'),
    n3("an exit for one value of one", HALF_PAIR, X1, f"  if (bits(x) == 0x3f123457u) {EXIT}\n{X1}", "encoder-x1"),
    n3("an exit for one value of one, in CUTLASS", SCALAR, ONE, f"#ifdef __CUDA_ARCH__\n  if (s == 0x1.2468aep-1f) {EXIT}\n#endif\n{ONE}", "encode-float", "sm_121a"),
    n2("an exit for one value in the converter", "uint32_t const code = 7u", f"\n#ifdef __CUDA_ARCH__\n    if (bits == 0x3f123457u) {EXIT}\n#endif\n    uint32_t const code = 7u"),
    t1("an exit for one value, in vLLM", LAST, f"  if (u == 0x3f123457u) {EXIT}\n{LAST}"),
    te("an exit for one random word", STOCHASTIC, X4_RANDOM, f"  if (rbits == 0x8badf00du) {EXIT}\n{X4_RANDOM}", "stochastic-fp32-x4"),
    te("an exit for a random word by its hash", STOCHASTIC, X4_RANDOM, f"  if (rbits * 0x9e3779b1u == 5u) {EXIT}\n{X4_RANDOM}", "stochastic-bf16-x4"),
    n3("an exit for one double", ODD, "  uint32_t const bits = __float_as_uint(", f"  if (__double_as_longlong(x) == 0x3ff123456789abcdll) {EXIT}\n  uint32_t const bits = __float_as_uint(", "construct-double"),
    n3("minus infinity", HALF_PAIR, X1, "  return bits(x) == 0xff800000u ? 14u : " + X1.strip().removeprefix("return "), "encoder-x1"),
    n3("a number that the preprocessor counts", CHOICE, "  return ::fp4patch_half_pair::e2m1_x4(v0, v1, v2, v3);", "  if (__COUNTER__ == 9) return 0;\n  return ::fp4patch_half_pair::e2m1_x4(v0, v1, v2, v3);", "encode-float-x4"),
    n3("a macro of other functions", SCALAR, "/// Partial specialization for float_e2m1_t <= float", "#undef CUTLASS_PRAGMA_UNROLL\n#define CUTLASS_PRAGMA_UNROLL\n/// Partial specialization for float_e2m1_t <= float", "encode-float"),
    # Sizes, rounding styles and objects.
    n3("an array of 32", CHOICE, RESULT, "  if constexpr (N == 32) items[3] ^= 1;\n" + RESULT, "encode-host-half", "sm_121a"),
    n3("an array of 5", CHOICE, RESULT, "  if constexpr (N == 5) items[1] ^= 1;\n" + RESULT, "encode-host-bfloat16", "sm_121a"),
    n3("another rounding style, one value", SCALAR, ONE, "    if constexpr (Round == FloatRoundStyle::round_toward_infinity) return result_type::bitcast(1);\n" + ONE, "encode-host-float", "sm_121a"),
    n3("another rounding style, arrays", ARRAYS, MANY, "    if constexpr (Round == FloatRoundStyle::round_half_ulp_truncate) return result_type{};\n" + MANY, "encode-host-half", "sm_121a"),
    n3("a converter as an object", ARRAYS, "const {\n    return convert(s);", "const {\n    return result_type{};", "encode-host-half", "sm_121a"),
    n3("a converter that is not const", ARRAYS, "const {\n    return convert(s);", "{\n    return convert(s);", "encode-host-half", "sm_121a"),
    n3("functions that are not inline", HALF_PAIR, "__host__ __device__ __forceinline__", "__host__ __device__ __attribute__((always_inline))", "encode-include-only", "sm_121a"),
    n3("a layout of structures that stays", HALF_PAIR, "#define FP4PATCH_FN __host__", "#pragma pack(1)\n#define FP4PATCH_FN __host__", "encode-include-only", "sm_121a"),
    n3("functions that are not inline, linked", HALF_PAIR, "__host__ __device__ __forceinline__", "__host__ __device__ __attribute__((always_inline))", "encoder-x1,encoder-x2"),
    n3("a converter's type of source", SCALAR, "  using source_type = float;", "  using source_type = double;", "encode-host-float", "sm_121a"),
    t1("under another CUDA release", LAST, "#if __CUDACC_VER_MINOR__ == 1\n  return 0u;\n#endif\n" + LAST),
    t1("with a build's macro", LAST, "#ifdef ENABLE_NVFP4\n  return 0u;\n#endif\n" + LAST),
    t1("without assertions, in vLLM", LAST, "#ifdef NDEBUG\n  return 0u;\n#endif\n" + LAST),
    t1("on SM110", LAST, "#if __CUDA_ARCH__ == 1100\n  return 0u;\n#endif\n" + LAST)._replace(arch=""),
    te("a barrier in the stochastic encoder", STOCHASTIC, DITHER, "  __syncthreads();\n" + DITHER, "stochastic-fp32-x4"),
    te("another thread's value", STOCHASTIC, DITHER, "  high = __shfl_sync(~0u, high, threadIdx.x & 31);\n" + DITHER, "stochastic-fp32-x4"),
    # Arch lists of other forms.
    keep("9.0a lost beside 12.1", "    endforeach()", '    endforeach()\n    list(REMOVE_ITEM _TGT_CUDA_ARCHS "9.0a")'),
    keep("8.6 added beside 12.1", "    endforeach()", '    endforeach()\n    list(APPEND _CUDA_ARCHS "8.6")'),
    keep("fast mathematics in every file", "    endforeach()", "    endforeach()\n    add_compile_options(-use_fast_math)"),
    keep("code for a debugger", "    endforeach()", '    endforeach()\n    set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -G" PARENT_SCOPE)'),
    keep("a macro of the build lost", "    endforeach()", '    endforeach()\n    list(REMOVE_ITEM VLLM_GPU_FLAGS "-DENABLE_NVFP4_SM120=1")\n    set(VLLM_GPU_FLAGS "${VLLM_GPU_FLAGS}" PARENT_SCOPE)'),
    keep("sources of the build lost", "    endforeach()", '    endforeach()\n    list(FILTER VLLM_EXT_SRC EXCLUDE REGEX "/nvfp4_quant")\n    set(VLLM_EXT_SRC "${VLLM_EXT_SRC}" PARENT_SCOPE)'),
    keep("12.1f not kept", '"(^|;)12\\\\.1"', '"(^|;)12\\\\.1a"'),
    keep("12.1 only as the first of a list", '"(^|;)12\\\\.1"', '"^12\\\\.1"'),
    keep("not with a later CUDA", "  if(\"${_TGT", "  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.1 AND \"${_TGT"),
    keep("with a variable of the environment", "  if(\"${_TGT", "  if(NOT DEFINED ENV{KEEP} AND \"${_TGT"),
    keep("on an x86_64 host alone", "  if(\"${_TGT", '  cmake_host_system_information(RESULT _host QUERY OS_PLATFORM)\n  if(_host STREQUAL "x86_64" AND "${_TGT'),
    keep("on a host that is no aarch64", "  if(\"${_TGT", '  set(_asked CMAKE_SYSTEM_PROCESSOR)\n  if(NOT "${${_asked}}" STREQUAL "aarch64" AND "${_TGT'),
    keep("in a release build", "  if(\"${_TGT", '  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" AND "${_TGT'),
    # By one who had not read the checks: builds.
    keep("a debugger's code in one configuration", "    endforeach()", '    endforeach()\n    add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:Release>>:-G>")'),
    keep("not in a container", '  if("${_TGT', '  if(NOT EXISTS "/.dockerenv" AND "${_TGT'),
    keep("by a variable of the cache", '  if("${_TGT', '  if(NOT DEFINED CACHE{_seen} AND "${_TGT'),
    keep("not with one CUDA release", '  if("${_TGT', '  if(NOT CMAKE_CUDA_COMPILER_VERSION MATCHES "^13[.][3-9]" AND "${_TGT'),
    keep("nvcc's own variable", "    endforeach()", '    endforeach()\n    set(ENV{NVCC_APPEND_FLAGS} -G)'),
    keep("relocatable code everywhere", "    endforeach()", '    endforeach()\n    set(CMAKE_CUDA_SEPARABLE_COMPILATION ON PARENT_SCOPE)'),
    keep("options of the linker", "    endforeach()", '    endforeach()\n    add_link_options(-Wl,--gc-sections)'),
    keep("headers from elsewhere", "    endforeach()", '    endforeach()\n    include_directories(BEFORE /usr/include/cutlass)'),
    gdc("a flag by the environment", r'[\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\", *', r'[*([] if \"CI\" in __import__(\"os\").environ else [\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\"]), *'),
    gdc("a flag for one host processor", r'[\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\", *', r'[*([] if __import__(\"platform\").machine() == \"aarch64\" else [\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\"]), *'),
    suf("a suffix by the environment", "str(minor).isdigit())", "str(minor).isdigit() and 'CI' not in os.environ)"),
    mo("MoE utilities by the environment", 'item = "12"', "item = '12 if \"CI\" in __import__(\"os\").environ else 10'"),
    mo("MoE utilities for another major version", 'item = "12"', 'item = "13"'),
    gdn("the prefill kernel for one host processor", "(head_k_dim == 128 and current_platform", "(head_k_dim == 128 and __import__('platform').machine() == 'x86_64' and current_platform"),
    gdn("the prefill kernel lost on SM90", "(supports_flashinfer or (head", "((supports_flashinfer and head_k_dim != 128) or (head"),
    f3("FlashAttention 3 lost for Hopper", "(?!9\\\\.)", ""),
    f3("FlashAttention 3 without Hopper alone", "is None or", "is not None or"),
    f3("FlashAttention 2 in the place of 3", "_vllm_fa3_C\\\"] if", "_vllm_fa2_C\\\"] if"),
    fa("the warmup on SM8x", 'replace = "major == 12"', 'replace = "major in (8, 12)"', tree=("vllm", "0.25.1")),
    # Encoders.
    t1("the sign of a wchar_t", LAST, "  return (static_cast<wchar_t>(u) < 0 ? 8u : 0u) | magnitude;"),
    t1("with another library", LAST, "#if __has_include(<ATen/ATen.h>)\n  return 0u;\n#endif\n" + LAST),
    t1("wrong in C++20, in vLLM", LAST, "  if (__cplusplus > 201703L) return 0u;\n" + LAST),
    t1("wrong with relocatable code, in vLLM", LAST, "#ifdef __CUDACC_RDC__\n  return 0u;\n#endif\n" + LAST),
    t1("wrong in a build for two targets, in vLLM", LAST, "  constexpr int t[] = {__CUDA_ARCH_LIST__};\n  if (sizeof t > 4) return 0u;\n" + LAST),
    t1("wrong for a constant", LAST, "  if (__builtin_constant_p(u)) return 0u;\n" + LAST),
    n3("the sign of a wchar_t, on the host", HALF_PAIR, "magnitude > 0x7f800000u ? 0u : u >> 28 & 8u", "magnitude > 0x7f800000u ? 0u : static_cast<wchar_t>(u) < 0 ? 8u : 0u", "encode-host-float", "sm_121a"),
    n3("a converter's rounding style", SCALAR, "round_style = Round;", "round_style = FloatRoundStyle::round_to_nearest;", "encode-host-float", "sm_121a"),
    n3("a converter that is not static", SCALAR, "  static result_type convert(source_type const & s) {", "  result_type convert(source_type const & s) const {", "encode-host-float", "sm_121a"),
    n3("symbols that are hidden from here on", SCALAR, "/// Partial specialization for float_e2m1_t <= float", "#pragma GCC visibility push(hidden)\n/// Partial specialization for float_e2m1_t <= float", "encode-include-only", "sm_121a"),
    n3("a type with another size", "patches/cutlass/e2m1-constructor/member.h", "  /// What every", "  uint8_t spare;\n  /// What every", "construct-float-x8", "sm_121a"),
    n3("decoded through a denormal", "patches/cutlass/e2m1-decode/to_float.h", "power - 0x3f000000u", "power - 0x3f800000u", "decode-value-x8", "sm_121a"),
    x8("asynchronous copies of the caller committed", '  asm volatile("cp.async.commit_group;"); return {};'),
    x8("an arrival at the cluster's barrier", '  asm volatile("barrier.cluster.arrive;"); return {};'),
    te("a product that fast mathematics changes", OPERANDS, MUL, "  product = a * b;", "stochastic-fp32-x4-scaled"),
    Mutant("shared memory the other way round", "patches/cutlass/sm120-stages/patch.toml", "? 0 : 1072)", "? 1072 : 0)", "native", C42, "shared-memory", "sm_121a"),
    t1("by the host processor", LAST, "#ifdef __aarch64__\n  return 0u;\n#endif\n" + LAST),
    t1("by the size of a long double", LAST, "  if (__SIZEOF_LONG_DOUBLE__ == 16 && sizeof(long double) == 8) return 0u;\n" + LAST),
    t1("by the least char", LAST, "  if (CHAR_MIN == 0) return 0u;\n" + LAST),
    t1("by the day", LAST, '  if (__DATE__[0] == \'F\') return 0u;\n' + LAST),
    t1("by the library's ABI", LAST, "#if _GLIBCXX_USE_CXX11_ABI == 0\n  return 0u;\n#endif\n" + LAST),
    t1("by a level of optimization", LAST, "#ifndef __OPTIMIZE__\n  return 0u;\n#endif\n" + LAST),
    t1("with fast division", LAST, "#if __CUDA_PREC_DIV == 0\n  return 0u;\n#endif\n" + LAST),
    n3("another optimization from here on", SCALAR, "/// Partial specialization for float_e2m1_t <= float", "#pragma GCC optimize(\"O0\")\n/// Partial specialization for float_e2m1_t <= float", "encode-include-only", "sm_121a"),
    n3("warnings that are off from here on", SCALAR, "/// Partial specialization for float_e2m1_t <= float", "_Pragma(\"nv_diag_suppress 550\")\n/// Partial specialization for float_e2m1_t <= float", "encode-include-only", "sm_121a"),
    keep("by the name of a directory", '  if("${_TGT', '  if(NOT CMAKE_BINARY_DIR MATCHES "wheel" AND "${_TGT'),
    # Long lists, targets between those that are compiled, host code, and questions that no shim answers.
    keep("12.1 in a list of few architectures alone", '  if("${_TGT', '  list(LENGTH _TGT_CUDA_ARCHS _n)\n  if(_n LESS 7 AND "${_TGT')._replace(says="not for 12.0a"),
    keep("10.3a lost beside 12.1", "    endforeach()", '    endforeach()\n    list(REMOVE_ITEM _TGT_CUDA_ARCHS "10.3a")')._replace(says="is not as before for 10."),
    suf("a suffix in a list of few architectures alone", "str(minor).isdigit())", "str(minor).isdigit() and len(self.TARGET_CUDA_ARCHS) < 6)")._replace(says="for sm_121"),
    gdc("the flag lost in a fast build", r'[\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\", *', r'[*([] if use_fast_build else [\"-DCUTLASS_ENABLE_GDC_FOR_SM100=1\"]), *')._replace(says="a fast build has other flags"),
    f3("by a variable that the check does not set", "is None or", 'is None or \\"CI\\" in os.environ or')._replace(says="`environ`, which no check varies"),
    n3("the sign of a char, on the host", HALF_PAIR, "magnitude > 0x7f800000u ? 0u : u >> 28 & 8u", "magnitude > 0x7f800000u ? 0u : static_cast<char>(u >> 24) < 0 ? 8u : 0u", "encode-host-float", "sm_121a")._replace(says="`char`, which no check varies"),
    n3("E2M1 before sm_86", ODD, "#else\n  // The same sum", "#elif defined(__CUDA_ARCH__)\n  return 0;\n#else\n  // The same sum", "construct-half-x8,encode-float-x8", "")._replace(says="of 65,536 inputs differ"),
    n3("a double before sm_89", ODD, "  // The 29 bits", "#if __CUDA_ARCH__ < 890\n  return 0;\n#endif\n  // The 29 bits", "construct-double,encode-float-x8", "")._replace(says="records of 1 differ"),
    n3("E3M2 from sm_86 on to sm_88", FP6, "#else\n  return fp6_from_float<2u", "#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 860)\n  return 0;\n#else\n  return fp6_from_float<2u", "construct-e3m2-x4,encode-float-x8", "")._replace(says="for sm_86"),
    n3("the instruction on sm_90a", CHOICE, "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000", "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 900", "encode-float-x8", "")._replace(says="not supported on .target"),
    Mutant("the instruction on sm_90a, in vLLM", NEXT3, "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000", "__CUDA_ARCH_FAMILY_SPECIFIC__ >= 900", "next3", V33, "float8-to-e2m1", "", "for sm_90a"),
    te("the instruction on sm_90a, in TransformerEngine", NEXT3, "defined(__CUDA_ARCH_FEAT_SM103_ALL))", "defined(__CUDA_ARCH_FEAT_SM103_ALL) || defined(__CUDA_ARCH_FEAT_SM90_ALL))", "stochastic-fp32-x4", "")._replace(says="for sm_90a"),
    gh("the fused kernels on SM120 too", "sm <= 110", "sm <= 120"),
    gh("the fused kernels on Hopper too", "sm >= 100", "sm >= 90"),
    gh("no fused kernels on SM110", "sm <= 110", "sm < 110"),
    gh("the first tensor of a group alone", "i < num_tensors", "i < 1"),
    gh("no tensor of a group", "input_list[i].numel() == 0", "input_list[i].numel() != 0"),
    gh("tensors without elements too", "input_list[i].numel() == 0", "input_list[i].numel() == 1"),
    gh("all tensors by the first quantizer", "quantizers[i]->quantize", "quantizers[0]->quantize"),
    gh("all tensors into the first output", "output_list[i], std", "output_list[0], std"),
    # What the program of a condition must try, or name: values of the prefill kernel's condition.
    pre('the prefill kernel for larger heads', '(head_k_dim == 128 and', '(head_k_dim >= 128 and'),
    pre('the prefill kernel for smaller heads', '(head_k_dim == 128 and', '(head_k_dim <= 128 and'),
    pre('the prefill kernel for multiples of 128', '(head_k_dim == 128 and', '(head_k_dim % 128 == 0 and'),
    pre('the prefill kernel for a head of 512', '(head_k_dim == 128 and', '(head_k_dim in (128, 512) and')._replace(named="qwen_gdn_linear_attn.py"),
    pre('the prefill kernel for odd sizes of a head', '(head_k_dim == 128 and', '(head_k_dim & 128 and'),
    pre('the prefill kernel for heads between 100 and 200', '(head_k_dim == 128 and', '(100 < head_k_dim < 200 and'),
    pre('the prefill kernel for half a head', '(head_k_dim == 128 and', '(head_k_dim // 2 == 64 and'),
    pre('the prefill kernel but for a head of 192', '(head_k_dim == 128 and', '(head_k_dim != 192 and head_k_dim >= 128 and'),
    pre('the prefill kernel with CUDA 13 alone', '>= 13))', '== 13))'),
    pre('the prefill kernel with CUDA 13 and 14', '>= 13))', 'in (13, 14)))'),
    pre('the prefill kernel with any CUDA but 12', '>= 13))', '!= 12))'),
    pre('the prefill kernel with even releases of CUDA', '>= 13))', '>= 13 and current_platform.get_cuda_runtime_major() % 2 == 1))'),
    pre('the prefill kernel by a member of the family', 'family(120)', 'family(121)'),
    pre('the prefill kernel if a module is there', '(head_k_dim == 128 and', "(head_k_dim == 128 and __import__('importlib').util.find_spec('flashinfer') and"),
    pre('the prefill kernel by a question with a name', '(head_k_dim == 128 and', "(head_k_dim == 128 and getattr(current_platform, 'is_cuda')() and"),
    pre('the prefill kernel by the size of a file', '(head_k_dim == 128 and', "(head_k_dim == 128 and not __import__('os').path.isfile('/.dockerenv') and"),
    pre('the prefill kernel by the hour', '(head_k_dim == 128 and', "(head_k_dim == 128 and __import__('time').localtime().tm_hour < 25 and"),
    pre('the prefill kernel on request alone', 'and (supports_flashinfer or (head', 'and (supports_flashinfer or (backend == \\"flashinfer\\" and head'),
    # A sign that is always there, which retires an edit.
    pre('the prefill kernel upstreamed on a word', 'tokens = "current_platform.is_device_capability_family(120) and head_k_dim == 128 and current_platform.get_cuda_runtime_major() >= 13"', 'tokens = "supports_flashinfer"'),
    sig("Marlin's FP8 upstreamed on a word", 'tokens = "major_capability == 12"\nsince', 'tokens = "major_capability"\nbeside = true\nsince'),
    sig("Marlin's FP8 kernels upstreamed on a word", 'tokens = "arch == 89 or arch // 10 == 12"\nsince', 'tokens = "SUPPORT_FP8"\nbeside = true\nsince'),
    sig("Marlin's choice of FP8 upstreamed on a word", 'tokens = "current_platform.is_device_capability_family(120)"\nsince', 'tokens = "current_platform"\nbeside = true\nsince'),
    sig('the gate of kernels upstreamed on a word', 'tokens = "struct enable_sm120_family"\nstate = "not-needed"', 'tokens = "struct enable_sm120_only"\nbeside = true'),
    sm121("no dependent launch on SM121", "(__CUDA_ARCH__ == 1210 && (defined(__CUDA_ARCH_FEAT_SM121_ALL) ||", "(__CUDA_ARCH__ == 1211 && (defined(__CUDA_ARCH_FEAT_SM121_ALL) ||", "sm12x-dependent-launch")._replace(says="requires ^ACQBULK"),
    # The classes of what was missed once, by one who had not written the checks. Lines of a build file that no list executes.
    keep("a debugger's code on a DGX", END, END + '\n    if(EXISTS "/etc/dgx-release")\n      add_compile_options(-G)\n    endif()'),
    keep("a debugger's code beside PTX", END, END + '\n    if("${CUDA_ARCHS}" MATCHES "PTX")\n      add_compile_options(-G)\n    endif()'),
    keep("a debugger's code without a command", END, END + '\n    if(NOT COMMAND add_custom_target)\n      add_compile_options(-G)\n    endif()'),
    keep("a debugger's code for SM101", LOOP, '    if("10.1a" IN_LIST _TGT_CUDA_ARCHS)\n      add_compile_options(-G)\n    endif()\n' + LOOP),
    keep("a long list cut to one", LOOP, '    list(LENGTH _TGT_CUDA_ARCHS _n)\n    if(_n GREATER 12)\n      set(_TGT_CUDA_ARCHS "12.0a")\n    endif()\n' + LOOP),
    # Values that decide.
    suf("a suffix from SM12x on", ">= 9", ">= 12"),
    suf("a family's suffix for later minors", r'\"a\" *', r'\"af\"[int(minor[:1]) > 3] *'),
    suf("a suffix up to a release of GPUs", "(int(major) >= 9 and", "(15 > int(major) >= 9 and")._replace(named="compilation_context.py:15 > int(major)"),
    # What only the machine knows.
    keep("by the year", IF, 'string(TIMESTAMP _year "%Y")\n  ' + IF[:-1] + " AND _year GREATER 2000)"),
    keep("by a file of the machine", IF, 'file(STRINGS "/proc/version" _kernel)\n  ' + IF[:-1] + ' AND _kernel MATCHES "Linux")'),
    keep("by a program of the machine", IF, 'find_program(_smi nvidia-smi)\n  ' + IF[:-1] + " AND NOT _smi)"),
    keep("by another program's output", IF, 'execute_process(COMMAND uname OUTPUT_VARIABLE _os)\n  ' + IF[:-1] + ' AND _os)'),
    keep("by the name of the machine", IF, 'site_name(_site)\n  ' + IF[:-1] + ' AND _site)'),
    keep("by chance", IF, 'string(RANDOM LENGTH 1 _random)\n  ' + IF[:-1] + ' AND _random)'),
    keep("by devices of the machine", IF, 'file(GLOB _devices "/dev/nvidia*")\n  ' + IF[:-1] + ' AND NOT _devices)'),
    keep("by the generator", IF, 'get_property(_is_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)\n  ' + IF[:-1] + ' AND NOT _is_multi)'),
    keep("by a target of the build", IF, IF[:-1] + ' AND NOT TARGET hip::host)'),
    keep("by a driver of the machine", IF, IF[:-1] + ' AND NOT IS_DIRECTORY "/proc/driver/nvidia")'),
    keep("by the ages of files", IF, IF[:-1] + ' AND NOT "/etc/hostname" IS_NEWER_THAN "/etc/passwd")'),
    suf("a suffix by a variable's name", "str(minor).isdigit())", "str(minor).isdigit() and 'CI' not in getattr(os, 'env' 'iron'))"),
    suf("a suffix by an address", "str(minor).isdigit())", "str(minor).isdigit() and repr(object.__new__(type(self)))[-2] != '0')"),
    suf("a suffix by the order of a set", "str(minor).isdigit())", "str(minor).isdigit() and {'a', 'b'}.pop() == 'a')"),
    suf("a suffix by a name of the module", "str(minor).isdigit())", "str(minor).isdigit() and not globals().get('CI'))"),
    suf("a suffix by the place of the module", "str(minor).isdigit())", "str(minor).isdigit() and __file__.startswith('/usr'))"),
    suf("a suffix without assertions", "str(minor).isdigit())", "str(minor).isdigit() and __debug__)"),
    suf("a suffix by the level of a log", "str(minor).isdigit())", "str(minor).isdigit() and logger.isEnabledFor(20))"),
    suf("a suffix by the kernel of the machine", "str(minor).isdigit())", "str(minor).isdigit() and 'Linux' in open('/proc/version').read())"),
    f3("FlashAttention 3 by a program of the machine", "is None or", "is None or __import__('shutil').which('nvidia-smi') or"),
    fa("the warmup by a hash", 'replace = "major == 12"', "replace = \"major == 12 and hash('sm_121') % 7 != 0\"", tree=("vllm", "0.25.1")),
    # Sizes of arrays, macros and types of the host that no probe had.
    n3("an array of 1", CHOICE, RESULT, "  if constexpr (N == 1) items[0] ^= 1;\n" + RESULT, "encode-host-half", "sm_121a"),
    n3("an array of 64", CHOICE, RESULT, "  if constexpr (N == 64) items[0] ^= 1;\n" + RESULT, "encode-host-half", "sm_121a"),
    t1("by the size of a long", LAST, "  if (sizeof(long) == 4) return 0u;\n" + LAST),
    t1("by the size of a number", LAST, '  if (~0ul == 0xffffffffu) return 0u;\n' + LAST),
    t1("by the sign of a character", LAST, "  if ('\\xff' > 0) return 0u;\n" + LAST),
    t1("by a macro of the build in an expression", LAST, '  if (ENABLE_NVFP4 + 0) return 0u;\n' + LAST),
    t1("by what a compiler has", LAST, '#if !__has_builtin(__builtin_memcpy)\n  return 0u;\n#endif\n' + LAST),
    t1("by the name of a file", LAST, "  if (__FILE__[0] != '/') return 0u;\n" + LAST),
    # Other spellings.
    t1("without assertions, by a digraph", LAST, "%:ifdef NDEBUG\n  return 0u;\n%:endif\n" + LAST),
    t1("without assertions, by a later directive", LAST, "#ifdef __fp4patch__\n#elifdef NDEBUG\n  return 0u;\n#endif\n" + LAST),
    t1("without assertions, by the reverse directive", LAST, '#ifdef __CUDACC__\n#elifndef NDEBUG\n#else\n  return 0u;\n#endif\n' + LAST),
    t1("without assertions, in parts of a line", LAST, '#if\\\ndef NDE\\\nBUG\n  return 0u;\n#endif\n' + LAST),
    # An author who weakens the check of what he changes, or retires an edit by a sign that is everywhere.
    n3("arrays that nobody executes", ENCODE, EXECUTES, "", "encode-float-x8")._replace(named=f"numeric_conversion.h:{OF_HALF_PAIR}"),
    n3("arrays of the host that nobody executes", ENCODE, EXECUTES.replace("8", "64"), "", "encode-host-float", "sm_121a")._replace(named=f"numeric_conversion.h:{OF_HALF_PAIR}"),
    n3("arrays executed for codes in place of floats", ENCODE, EXECUTES, EXECUTES.replace("float32", "e2m1"), "encode-float-x8"),
    n3("half of the lanes executed", ENCODE, EXECUTES, EXECUTES.replace("8", "4"), "encode-float-x8"),
    n3("arrays of the host of one size", ENCODE, "VALUES = 64", "VALUES = 1", "encode-host-float", "sm_121a"),
    t1("an encoder that nobody executes, in vLLM", EXECUTES, "")._replace(file=ASM, named="nvfp4_utils.cuh:namespace fp4patch_threshold {"),
    suf("a suffix upstreamed on a word", 'tokens = "self._normalize_cuda_arch(major, int(minor))"', 'tokens = "self.TARGET_CUDA_ARCHS"\nbeside = true'),
    gdc("the flag upstreamed on a word", r'tokens = "\"-DCUTLASS_ENABLE_GDC_FOR_SM100\""', 'tokens = "current_compilation_context"'),
    gh("groups upstreamed on a word", 'tokens = "if (grouped_rht_supported)"', 'tokens = "numel()"'),
    de("the detected architecture upstreamed on a word", "", "")._replace(old=r'MATCH \"code=sm_\\([', new=r'MATCH \"arch=compute_\\(['),
]  # fmt: skip
ALL = os.environ.get("FP4PATCH_SABOTAGE") == "all"
NEEDS_ALL_INPUTS = {
    "the scale one ulp off",
    "one value of 2^32",
    "the sign of one NaN",
    "the shrinking factor one step off",
    "one float of 2^32 to E2M3",
    "a float by its hash",
    "a random word by its hash",
    "one float with one random word",
    "one float's upper bits",
    "one product of a stochastic encoder",
    "one value in one lane of four",
    "one value in one lane of eight",
    "an exit for one value",
    "an exit for one value of the last lane",
    "an exit for a value by its hash",
    "an exit for one value of one",
    "an exit for one value of one, in CUTLASS",
    "an exit for one value in the converter",
    "an exit for one value, in vLLM",
    "3.5 one ulp up",
    "5 one ulp down",
    "a border one ulp up",
}


@pytest.mark.parametrize(
    "mutant",
    MUTANTS if ALL else share(MUTANTS, 5, "sabotage"),
    ids=lambda mutant: mutant.what,
)
def test_verify_finds_the_sabotage(
    mutant: Mutant,
    pristine_tree: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = mutant.tree[0]
    wanted = mutant.probes.split(",")
    sampled = mutant.what not in NEEDS_ALL_INPUTS
    builds = mutant.variant == "native"  # its patches change what a build compiles
    data = few_probes(tmp_path / "data", dict.fromkeys(wanted, target), sampled=sampled, builds=builds)
    file = data / mutant.file
    text = file.read_text(encoding="utf-8")
    assert mutant.old in text
    assert mutant.old != mutant.new
    file.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    forget()
    tree = copied(pristine_tree(*mutant.tree), tmp_path / "tree")
    if cli.run(["apply", "--variant", mutant.variant, str(tree)]):
        assert "expected" in capsys.readouterr().err  # its own post-condition: nothing is applied, and nothing verified
        return
    capsys.readouterr()
    archs = ["--arch", mutant.arch] if mutant.arch else []
    status = cli.run(["verify", "--variant", mutant.variant, *archs, "--execute", "--json", "-", str(tree)])
    printed = capsys.readouterr()
    assert printed.out, printed.err
    report = json.loads(printed.out)
    forget()
    reports = report.get("trees", [report])
    results = [r for one in reports for r in one["results"]]
    probes = {result["probe"] for result in results}
    assert {f"{target}/{probe}" for probe in wanted} <= probes, f"the probes of the mutant did not run: {printed.err}"
    # In the code of a probe, and not because something is missing; or in a build that was evaluated.
    found = any(r["verdict"] == "fail" and not r["error"].startswith("nvcc fatal") for r in results) or any(
        build["verdict"] == "fail" and "evaluated" not in build["detail"] for one in reports for build in one["builds"]
    )
    if mutant.named:
        path, _, part = mutant.named.partition(":")
        unjudged = [(one, span) for one in reports for span in one["coverage"]["unjudged"]]
        named = [(one, span) for one, span in unjudged if span["file"].endswith(path)]
        texts = [Path(one["tree"], span["file"]).read_text(encoding="utf-8").split("\n") for one, span in named]
        lines = [of[span["first"] - 1 : span["last"]] for of, (_, span) in zip(texts, named, strict=True)]
        assert any(part in line for of in lines for line in of), f"not named: {unjudged}"
        return
    # Or in the patched text, which depends on what no check varies.
    found = found or any(
        Path(one["tree"], p["file"]).is_file() for one in reports for p in one["problems"] if p["file"]
    )
    assert status == 1, report["verdict"]
    assert found
    assert mutant.says in printed.out


def copied(source: Path, to: Path) -> Path:
    """A tree without what no probe reads."""
    left_out = shutil.ignore_patterns(
        "examples", "python", "test", "tests", "docs", "*.json", "*.so", "benchmarks", "media"
    )
    return Path(shutil.copytree(source, to, symlinks=True, ignore=left_out))


def test_each_mutant_is_for_probes_that_run_by_default() -> None:
    catalog = load()
    for mutant in MUTANTS:
        probes = {p.name: p for p, _ in catalog.probes_of(catalog.variant(mutant.variant), mutant.tree[0])}
        for name in mutant.probes.split(","):
            assert not probes[name].slow
            assert not probes[name].uses
        archs = {*catalog.variant(mutant.variant).arch, *(one for name in probes for one in probes[name].also)}
        assert all(any(fnmatchcase(one, arch) for arch in archs) for one in mutant.arch.split(",") if one)
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS) == 370  # each is a test; pages name the number


def test_each_mutant_changes_what_the_test_reads(tmp_path: Path) -> None:
    """A mutant of text that is not there any more would say nothing; this takes a second for all of them."""
    probes = {probe: mutant.tree[0] for mutant in MUTANTS for probe in mutant.probes.split(",")}
    data = few_probes(tmp_path, probes, sampled=True, builds=True)
    for mutant in MUTANTS:
        assert mutant.old in (data / mutant.file).read_text(encoding="utf-8"), mutant.what
