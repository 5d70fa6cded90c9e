"""Projects that are no known tree: what their build files set, and what the preprocessor leaves of FP4 statements."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fp4patch import cli
from fp4patch.core.arch import Arch
from fp4patch.cxx.preprocessor import Preprocessor
from fp4patch.doctor.statements import Left, SourceFile, StatementKind, what_is_left

Doctor = Callable[..., tuple[int, dict[str, Any]]]
CONVERT = 'asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; cvt.u32.u8 %0, b;}" : "=r"(o) : "f"(a), "f"(b));'
MULTIPLY = 'asm("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64" ".row.col");'
BOTH = f"__global__ void k() {{\n  {CONVERT}\n  {MULTIPLY}\n}}\n"
GENCODE = "-gencode arch=compute_{0},code=sm_{0}"


@pytest.fixture
def doctor(doctor: Doctor) -> Doctor:
    """Exit status, and the one project of the document."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        status, document = doctor(*arguments)
        return status, document["projects"][0] if document["projects"] else document

    return run


def write(root: Path, **files: str) -> Path:
    """Write files; ``__`` in a name stands for a dot, so that ``setup__py`` is setup.py."""
    for name, content in files.items():
        root.mkdir(exist_ok=True)
        (root / name.replace("__", ".")).write_text(content)
    return root


def answers(project: dict[str, Any]) -> dict[str, str]:
    return {row["gpu"]: row["answer"] for row in project["gpus"]}


@pytest.mark.parametrize(
    ("name", "text", "on_120", "on_121"),
    [
        ("Makefile", "CUDA_ARCH ?= sm_120\nF = -arch=$(CUDA_ARCH)\n", "not-judged", "not-judged"),
        ("Makefile", f"SM := 120f\nF = {GENCODE.format('$(SM)')}\n", "yes", "yes"),
        ("Makefile", "F = -arch=sm_121a\n", "not-judged", "no"),  # nvcc 13.0 adds PTX of plain sm_121
        ("Makefile", f"F = {GENCODE.format('120f')} {GENCODE.format('121')}\n", "no", "no"),
        ("Makefile", "all:\n\tnvcc x.cu\n", "not-judged", "not-judged"),
        ("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES 120a-real 121a-real)\n", "yes", "yes"),
        ("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES ${MINE})\n", "not-judged", "not-judged"),
        ("build.sh", "cmake -DCMAKE_CUDA_ARCHITECTURES='120f' ..\n", "yes", "yes"),
        ("setup.py", f"for a in ['90a', '120f']:\n    flags += [f'{GENCODE.format('{a}')}']\n", "yes", "yes"),
        ("setup.py", "os.environ['TORCH_CUDA_ARCH_LIST'] = '12.1a'\n", "not-judged", "yes"),
        ("Dockerfile", "ARG A='9.0 12.0f'\nFROM base\nARG A\nENV TORCH_CUDA_ARCH_LIST=${A}\n", "yes", "yes"),
        ("Dockerfile", "ARG A=12.0f\nFROM base\nENV TORCH_CUDA_ARCH_LIST=${A}\n", "not-judged", "not-judged"),
    ],
)
def test_what_a_build_file_sets_decides(
    doctor: Doctor, tmp_path: Path, name: str, text: str, on_120: str, on_121: str
) -> None:
    root = write(tmp_path / "p", kernel__cu=BOTH)
    (root / name).write_text(text)
    status, project = doctor("--cuda", "13.0", root)
    assert answers(project) == {"sm_120": on_120, "sm_121": on_121}
    assert status == (0 if "yes" in (on_120, on_121) else 1)
    assert project["statements"] == {"conversion to E2M1": 1, "mma on E2M1": 1}


TEMPLATES = "using A = cutlass::nv_float4_t<cutlass::float_e2m1_t>; // OpClassBlockScaledTensorOp\n"


def test_templates_from_outside_are_not_judged_and_comments_name_none(doctor: Doctor, tmp_path: Path) -> None:
    root = write(tmp_path / "p", kernel__cu=f"void k() {{ {CONVERT} }}\n", gemm__cu=TEMPLATES)
    (root / "CMakeLists.txt").write_text("set(CMAKE_CUDA_ARCHITECTURES 120f)\n")
    _, project = doctor("--for", "gb10", root)
    (row,) = project["gpus"]
    assert (row["answer"], row["axis"], "gemm.cu:1" in " ".join(row["evidence"])) == ("not-judged", "multiplies", True)
    (root / "gemm.cu").write_text(f"// {TEMPLATES}")
    (row,) = doctor("--for", "gb10", root)[1]["gpus"]
    assert (row["answer"], row["verdict"]) == ("reservation", "it multiplies nothing in FP4")
    write(root, kernel__cu="int x;\n", gemm__cu=TEMPLATES)
    (row,) = doctor("--for", "gb10", root)[1]["gpus"]
    assert (row["answer"], "gemm.cu:1" in " ".join(row["evidence"])) == ("not-judged", True)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"#" * ((4 << 20) + 1), "it is larger than 4 MiB"),
        ("set(CMAKE_CUDA_ARCHITECTURES 120f)\n".encode("utf-16"), "it is UTF-16: save it as UTF-8"),
        (b"set(CMAKE_CUDA_ARCHITECTURES 120f)\n\0", "it is no text: it has NUL bytes"),
    ],
)
def test_what_is_not_read_says_why(doctor: Doctor, tmp_path: Path, content: bytes, why: str) -> None:
    root = write(tmp_path / "p", kernel__cu=BOTH)
    (root / "CMakeLists.txt").write_bytes(content)
    for path in (root, root / "CMakeLists.txt"):
        status, project = doctor("--for", "gb10", path)
        (row,) = project["gpus"]
        assert (status, row["answer"], f"not read: CMakeLists.txt: {why}" in row["evidence"]) == (1, "not-judged", True)


CMAKE = "CMakeLists.txt"
SET = "set(CMAKE_CUDA_ARCHITECTURES {})\n"
NEW = "CUDA_VERSION VERSION_GREATER 12.7"
FAMILY, HOPPER = GENCODE.format("120f"), GENCODE.format("90a")
EXTENSION = "from torch.utils.cpp_extension import CUDAExtension\n"


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        # What only says something, or is a comment, sets nothing.
        ("setup.py", '"""TORCH_CUDA_ARCH_LIST=12.0f"""\nraise Error("TORCH_CUDA_ARCH_LIST=12.0f")\n', "not-judged"),
        (CMAKE, 'message(FATAL_ERROR "set -DCMAKE_CUDA_ARCHITECTURES=120f")\n', "not-judged"),
        (CMAKE, f"#[[\n{SET.format('120f')}]]\n{SET.format('90')}", "no"),
        # The last of two counts, and what changes a list is not followed.
        (CMAKE, SET.format("120f") + SET.format("90"), "no"),
        ("Dockerfile", "FROM x\nENV TORCH_CUDA_ARCH_LIST=12.0f\nENV TORCH_CUDA_ARCH_LIST=9.0\n", "not-judged"),
        (CMAKE, f"set(A 90 120f)\nlist(REMOVE_ITEM A 120f)\n{SET.format('${A}')}", "no"),
        (CMAKE, f"set(A 90 120f)\nlist(FILTER A EXCLUDE REGEX 120f)\n{SET.format('${A}')}", "not-judged"),
        (CMAKE, f"set(A 90)\nif({NEW})\nlist(APPEND A 120f)\nendif()\n{SET.format('${A}')}", "yes"),
        # Alternatives under a condition that is not known.
        ("Makefile", f"A ?= 120a\nifeq ($(B),1)\nA := 121a\nendif\nF = {GENCODE.format('$(A)')}\n", "not-judged"),
        ("Makefile", f"ifeq ($(B),1)\nF = {FAMILY}\nelse\nF = {HOPPER}\nendif\n", "reservation"),
        ("setup.py", f"if CUDA >= (12, 9):\n    f = '{FAMILY}'\nelse:\n    f = '{HOPPER}'\n", "yes"),
        (CMAKE, f"set(A 90)\nif(MINE)\nlist(APPEND A 120f)\nendif()\n{SET.format('${A}')}", "reservation"),
        (CMAKE, f"if(MINE)\n{SET.format('120f')}endif()\n", "reservation"),
        (CMAKE, f"if(CUDA_VERSION VERSION_GREATER_EQUAL 13.1)\n{SET.format('90')}endif()\n{SET.format('120f')}", "yes"),
        (CMAKE, f"if(CUDA_VERSION VERSION_LESS 12.9)\n{SET.format('120f')}endif()\n{SET.format('90')}", "no"),
        (CMAKE, SET.format('"native"'), "no"),  # the machine's own GPU is a target without a suffix
        (CMAKE, SET.format("$<IF:$<BOOL:${B}>,120f,90>"), "not-judged"),
        ("build.sh", f"case $B in\nx) A=120f;;\n*) A=90;;\nesac\nnvcc {GENCODE.format('$A')}\n", "not-judged"),
        ("build.sh", f"if $B; then A=90; else A=120f; fi\nnvcc {GENCODE.format('$A')} kernel.cu\n", "not-judged"),
        ("build.sh", f"if $B; then\n  if $C; then\n  :\n  fi\nfi\nif $B; then :; fi\nnvcc {FAMILY}\n", "yes"),
        ("build.sh", f"nvcc {HOPPER} kernel.cu\nnvcc {GENCODE.format('$A')} kernel.cu\n", "not-judged"),
        (CMAKE, SET.format("native") + SET.format("${CMAKE_CUDA_ARCHITECTURES_NATIVE}"), "not-judged"),  # as GGML does
        # Loops over a list; targets and commands that differ are for some sources each, and not followed.
        ("Makefile", f"S := 120a 121a\nF := $(foreach s,$(S),{GENCODE.format('$(s)')})\n", "yes"),
        ("build.sh", f"for a in 90 100a; do\n  nvcc {GENCODE.format('${a}')} -c kernel.cu\ndone\n", "not-judged"),
        ("build.sh", f"nvcc {HOPPER} -c kernel.cu\nnvcc {FAMILY} -c other.cu\n", "not-judged"),
        ("setup.py", f"f = '{FAMILY}' if {FAMILY!r} in flags else ''\n", "not-judged"),  # a comparison
        # PTX alone, and what PyTorch's extensions take.
        ("Makefile", "F = -gencode arch=compute_120f,code=compute_120f\n", "reservation"),
        (CMAKE, 'string(APPEND CMAKE_CUDA_FLAGS " -gencode arch=compute_120f,code=compute_120f")\n', "reservation"),
        # The suffix is that of the PTX, and -arch adds plain PTX (tests/core/test_arch.py asks nvcc).
        ("Makefile", "F = -gencode arch=compute_120f,code=sm_120\n", "yes"),
        ("Makefile", "F = -gencode arch=compute_120f,code=[sm_120,sm_121]\n", "yes"),
        ("Makefile", "F = -gencode arch=compute_120,code=sm_120f\n", "no"),
        ("Makefile", "F = -arch=compute_120f\n", "reservation"),
        ("setup.py", f"{EXTENSION}os.environ['TORCH_CUDA_ARCH_LIST'] = '12.0f'\n", "no"),
        ("setup.py", f"{EXTENSION}os.environ['TORCH_CUDA_ARCH_LIST'] = '12.0a;12.1a'\n", "yes"),
        ("setup.py", f"{EXTENSION}A = '12.0a;12.1a'\nos.environ['TORCH_CUDA_ARCH_LIST'] = A\n", "yes"),
        ("setup.py", "env['TORCH_CUDA_ARCH_LIST'] = f'{a}.0'\nx = dict(TORCH_CUDA_ARCH_LIST=chosen())\n", "not-judged"),
        ("setup.py", "run('cmake', '-DCMAKE_CUDA_ARCHITECTURES=native')\n", "no"),
        ("a.yml", "a:\n  if: $B\n  if-b: c\n  if c:\n  env:\n    CMAKE_CUDA_ARCHITECTURES: 120f\n", "yes"),
        ("setup.py", EXTENSION, "not-judged"),  # not set: plain sm_120 and PTX
    ],
)
def test_a_build_file_is_read_as_its_own_program_reads_it(
    doctor: Doctor, tmp_path: Path, name: str, text: str, answer: str
) -> None:
    root = write(tmp_path / "p", kernel__cu=BOTH, other__cu="__global__ void other() {}\n", **{name: text})
    _, project = doctor("--cuda", "13.0", root)
    assert set(answers(project).values()) == {answer}
    assert ("native" in str(project["gpus"])) == ("native" in text and answer == "no")
    assert not any(re.search(r"LIST=.*\df", row["todo"]) for row in project["gpus"])


def test_what_does_not_compile_is_named_and_ptx_beside_the_code_as_such(doctor: Doctor, tmp_path: Path) -> None:
    root = write(tmp_path / "p", kernel__cu=BOTH, Makefile="F = -arch=sm_120\n")
    (row,) = doctor("--for", "rtx-5090", root)[1]["gpus"]
    assert re.match("kernel.cu:2, and 1 more is compiled for sm_120, .* needs sm_120a or sm_120f$", row["evidence"][0])
    assert (row["verdict"], "sm_120f" in row["todo"]) == ("it does not compile", True)
    write(root, Makefile="F = -arch=sm_120f\n")
    (row,) = doctor("--for", "rtx-5090", root)[1]["gpus"]
    assert "is compiled for PTX of sm_120, which -arch sm_120f makes" in row["evidence"][0]


def test_a_loops_variable_has_one_value_in_a_line(doctor: Doctor, tmp_path: Path) -> None:
    loop = f"S := 90a 120a\nF := $(foreach s,$(S),$(eval G += {GENCODE.format('$(s)')}))\n"
    root = write(tmp_path / "p", kernel__cu=BOTH, Makefile=loop)
    (setting,) = doctor(root)[1]["settings"]
    assert setting["value"] == "arch=compute_90a,code=sm_90a arch=compute_120a,code=sm_120a"


def test_what_ends_a_build_is_said_once_for_both_gpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "FROM x\nENV TORCH_CUDA_ARCH_LIST=12.1a NVCC_APPEND_FLAGS=-arch=sm_121a\n"
    path = write(tmp_path / "p", Dockerfile=text) / "Dockerfile"
    assert cli.run(["doctor", "--for", "gb10,rtx-pro-6000", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "✗ sm_121  no (driver and toolkit): the build ends\n✗ sm_120  no (driver and toolkit): the build ends\n"
    )
    assert out.count("adds PTX for plain sm_121") == 1
    assert "-gencode arch=compute_121a,code=sm_121a in its place" in out


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        ("__device__ void f(char* out, float x) { *out = 0; }", "not-judged"),
        ("__device__ int f(float x) { return 0; }", "not-judged"),
        ("__device__ unsigned f() { out = 0u; return out; }", "not-judged"),
        ('__device__ void f() { printf("not-judged"); __trap(); }', "not-judged"),
        ('__device__ int f() {\n  assert(0 && "FP4 needs SM120");\n  return 0;\n}', "not-judged"),
        ("__device__ void f() { for (int i = 0; i < 8; ++i) out |= encode(v[i]) << 4 * i; }", "reservation"),
        ("__device__ int f(float x) { if (x > 0.25f) { return 1; } return 0; }", "reservation"),
        ("__device__ void f(char* out, float x) { *out = g(x); }", "reservation"),
    ],
)
def test_another_function_in_the_place_of_a_statement_is_software_only_if_it_computes(
    doctor: Doctor, tmp_path: Path, other: str, answer: str
) -> None:
    text = f"#if __CUDA_ARCH__ == 1200\n{BOTH}\n#else\n{other}\n#endif\n"
    root = write(tmp_path / "p", kernel__cu=text, Makefile=f"F = {GENCODE.format('121a')}\n")
    assert answers(doctor("--for", "gb10", root)[1]) == {"sm_121": answer}


def test_an_unknown_directory_is_not_judged_and_options_count_or_are_usage_errors(
    doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path / "p", Makefile="all:\n\tgcc x.c\n")
    status, project = doctor("--for", "gb10", root)
    assert (status, answers(project)) == (1, {"sm_121": "not-judged"})
    assert "--arch-list 12.1a" in project["gpus"][0]["todo"]
    assert "BUILD_DIR" in project["gpus"][0]["todo"]
    write(root, kernel__cu=BOTH)
    assert doctor("--arch-list", "12.1a", root)[0] == 0
    assert doctor("--arch-list", "12.1", root)[0] == 1
    assert doctor("--arch-list", "12.1a", "--cuda", "12.8", root)[0] == 1
    log = write(tmp_path / "q", x__log="text\n") / "x.log"
    for arguments in (["--cuda", "13.0", str(log)], ["--arch-list", "12.1a"]):
        assert cli.run(["doctor", *arguments]) == 2
        assert "no effect" in capsys.readouterr().err


def test_a_known_tree_inside_is_found_and_judged(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path / "p", Makefile="all:\n\tgcc x.c\n")
    (root / "third").mkdir()
    (root / "third/cutlass").symlink_to(pristine_tree("cutlass", "4.2.1"))
    assert cli.run(["doctor", "--json", "--cuda", "13.0", str(root)]) == 1  # links are not followed
    capsys.readouterr()
    (root / "third/cutlass").unlink()
    subprocess.run(["cp", "-r", pristine_tree("cutlass", "4.2.1"), root / "third/cutlass"], check=True)
    assert cli.run(["doctor", "--json", "--cuda", "13.0", str(root)]) == 0
    (tree,) = json.loads(capsys.readouterr().out)["trees"]
    assert tree["tree"] == str(root / "third/cutlass")


@pytest.mark.parametrize(
    ("docker", "says"),
    [
        ("ARG V=12.8.1\nFROM nvidia/cuda:${V}-devel\nENV TORCH_CUDA_ARCH_LIST=12.1a\n", "CUDA 12.8 does not support"),
        ("FROM nvidia/cuda:12.8.1-devel AS b\nFROM b\nENV TORCH_CUDA_ARCH_LIST=12.1a\n", "CUDA 12.8 does not support"),
        ("FROM x\nENV TORCH_CUDA_ARCH_LIST=12.1a NVCC_APPEND_FLAGS=-arch=sm_121a\n", "adds PTX for plain sm_121"),
        ("FROM x\nENV FLASHINFER_CUDA_ARCH_LIST=12.0a,12.1a\n", "with one space between them"),
        ("FROM x\nENV TORCH_CUDA_ARCH_LIST=121a\n", "PyTorch takes nothing but"),
    ],
)
def test_a_dockerfile_that_cannot_be_built_is_no(doctor: Doctor, tmp_path: Path, docker: str, says: str) -> None:
    path = write(tmp_path / "p", Dockerfile=docker) / "Dockerfile"
    status, project = doctor("--for", "gb10", path)
    assert (status, answers(project)) == (1, {"sm_121": "no"})
    assert says in " ".join(project["gpus"][0]["evidence"])
    fine = write(tmp_path / "q", Dockerfile="FROM nvidia/cuda:13.0.1-devel\nENV TORCH_CUDA_ARCH_LIST=12.1a\n")
    assert answers(doctor("--for", "gb10", fine / "Dockerfile")[1]) == {"sm_121": "not-judged"}


# --- guards ----------------------------------------------------------------------------------------------------------

GUARDS = f"""#ifndef GUARDS_H
#define GUARDS_H
#include "own.h"
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000) && (__CUDA_ARCH__ != 1210)
#define ENABLED 1
#endif
__device__ unsigned excluded(float a, float b) {{
#ifdef ENABLED
  {CONVERT}
#else
  return 0;
#endif
}}
__device__ unsigned returns(float a, float b) {{
#if __CUDA_ARCH__ == 1210
  return 0;
#endif
  {CONVERT}
}}
__device__ unsigned family(float a, float b) {{
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1200
  {CONVERT}
#elif !defined __CUDA_ARCH_SPECIFIC__
  return software(a, b);
#endif
}}
// {CONVERT}
__device__ unsigned header() {{
#if OF_HEADER
  {CONVERT}
#endif
#ifdef OF_THE_BUILD
  {MULTIPLY}
#endif
}}
#endif
"""
OWN = "#pragma once\n#if __CUDA_ARCH__ >= 1200\n#define OF_HEADER 1\n#else\n#define OF_HEADER 0\n#endif\n"


@pytest.mark.parametrize("name", ["90a", "100a", "120", "120a", "120f", "121", "121a", "121f"])
def test_what_is_left_is_what_the_preprocessor_leaves(tmp_path: Path, name: str) -> None:
    """Against ``g++ -E`` with the macros of nvcc."""
    arch = Arch.parse(name)
    write(tmp_path / "p", guards__h=GUARDS, own__h=OWN)
    macros = [f"-D{key}={value}" for key, value in arch.macros.items()]
    ran = subprocess.run(
        ["g++", "-E", "-x", "c++", *macros, tmp_path / "p/guards.h"], capture_output=True, text=True, check=True
    )
    kept, line = set(), 0
    for text in ran.stdout.splitlines():
        if text.startswith("# "):
            line = int(text.split()[1]) if "guards.h" in text else -10_000
        else:
            kept |= {line} if "satfinite" in text else set()
            line += 1
    file = SourceFile("guards.h", GUARDS)
    run = Preprocessor(arch, "13.0", {}, lambda _: SourceFile("own.h", OWN), lambda _, name: name)
    left = what_is_left(file, run)
    unknown = {s.line: why for s, (fate, why) in left.items() if fate is Left.UNKNOWN}
    assert list(unknown.values()) == ["OF_THE_BUILD"]
    returns = next(s for s in left if GUARDS.splitlines()[s.line - 2] == "#endif")
    assert left[returns][0] is (Left.CONSTANT if arch.gpu == Arch(12, 1) else Left.COMPILED)
    compiled = {s.line for s, (fate, _) in left.items() if fate is Left.COMPILED} | {returns.line}
    assert compiled == kept


def test_a_return_under_a_macro_that_is_not_known_decides_nothing() -> None:
    text = f"unsigned f() {{\n#ifdef MINE\n  return 0;\n#endif\n  {CONVERT}\n}}\n"
    ((left, why),) = what_is_left(SourceFile("a", text), Preprocessor(Arch.parse("121a"), "13.0")).values()
    assert (left, why) == (Left.UNKNOWN, "MINE")


@pytest.mark.parametrize(("condition", "fate"), [("== 1210", Left.CONSTANT), ("== 1200", Left.COMPILED)])
@pytest.mark.parametrize("form", ["if (__CUDA_ARCH__ {}) return 0;", "if constexpr (__CUDA_ARCH__ {}) {{ return 0; }}"])
def test_an_early_return_of_the_language_is_read_as_the_preprocessors(condition: str, fate: Left, form: str) -> None:
    text = f"unsigned f() {{\n  {form.format(condition)}\n  {CONVERT}\n}}\nunsigned g() {{\n{CONVERT}\n}}\n"
    left = list(what_is_left(SourceFile("a", text), Preprocessor(Arch.parse("121a"), "13.0")).values())
    assert [found for found, _ in left] == [fate, Left.COMPILED]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"mma.sync.aligned."\n "kind::mxf4nvf4.block_scale"', StatementKind.MATRIX),
        ('"mma.sp::ordered_metadata.sync.aligned.kind::mxf4.block_scale"', StatementKind.SPARSE),
        ('"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale"', StatementKind.TENSOR_MEMORY),
        ('"cvt.rs.satfinite.e2m1x4.f32 %0"', StatementKind.STOCHASTIC),
        ('"cvt.rn.f16x2.e2m1x2 %0"', StatementKind.DECODING),
        ("__nv_cvt_float2_to_fp4x2(v, __NV_E2M1, r)", StatementKind.INTRINSIC),
        ('"cvt.rn.satfinite.e4m3x2.f32 %0"', None),
        ('"mma.sync.aligned.m16n8k16.row.col.f32.f16"', None),
    ],
)
def test_statements_are_told_by_their_kind(text: str, kind: StatementKind | None) -> None:
    assert [one.kind for one in SourceFile("a", f"asm({text});").statements] == ([kind] if kind else [])
