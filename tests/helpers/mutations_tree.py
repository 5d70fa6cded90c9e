# ruff: noqa: E501 - the sources of mutants, and what is done to them, are one line each
"""Seeded mutations of small source trees, and oracles that share nothing with the code under test.

A mutant is a tree with something that a patch must change, name or refuse, in a shape that upstream never had. The
oracles are ``g++ -E`` with a target's macros, Python's ``ast``, and CMake in script mode.
"""

import ast
import os
import random
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from fp4patch.edits import AddElement
from fp4patch.tree.fold import fold_tree
from fp4patch.tree.locking import locked

GUARD = "defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210"
OPTIONS = {"e2m1-asm": {"encoder": "threshold", "guard": GUARD}}
TARGETS = {
    "sm_121a": ("1210", "1210"),
    "sm_121f": ("1210", ""),
    "sm_120a": ("1200", "1200"),
    "sm_120f": ("1200", ""),
    "sm_100a": ("1000", "1000"),
}


@dataclass
class Mutant:
    """A tree: its files and its links."""

    files: dict[str, str]
    links: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Came:
    """Result of the patch: whether it refused, the files that it named, and the tree that it would leave."""

    refused: tuple[str, ...]
    named: frozenset[str]
    files: Mapping[str, str]


def run(patch: str, mutant: Mutant, root: Path) -> Came:
    """Write the tree, fold the patch over it and check it, as apply does."""
    for name, text in mutant.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    for name, to in mutant.links.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(os.path.relpath(root / to, (root / name).parent))
    catalog = load()
    tree = identify(root, catalog)
    whole = catalog.patches[patch]
    lists = tuple(edit for edit in whole.edits if isinstance(edit, AddElement))  # the other edits are of other places
    with locked([tree]) as (copy,):
        chosen = [replace(whole, edits=lists or whole.edits)]
        found = fold_tree(copy, "", chosen, OPTIONS)
    written = {path: done.desired.decode() for path, done in found.files.items() if done.desired is not None}
    named = {one.file for one in found.remainders}
    behind = tuple(to for link, to in mutant.links.items() if link in named)  # what a named link leads to is named
    named |= {file for file in mutant.files if behind and file.startswith(behind)}
    why = tuple(f"{one.file}:{one.line}: {one.expected}; {one.found}" for one in found.problems)
    return Came(why, frozenset(named), mutant.files | written)


# --- conversions to E2M1 (classes 9 and 12) --------------------------------------------------------------------------

STATEMENT = """\
__device__ unsigned {name}(float a, float b) {{
  unsigned v;
  asm volatile("{{.reg .b8 t; {opcode} t, %1, %2; cvt.u32.u8 %0, t;}}" : "=r"(v) : "f"(a), "f"(b));
  return v;
}}
"""
OPCODE = "cvt.rn.satfinite.e2m1x2.f32"


def _statement(rng: random.Random, opcode: str = OPCODE) -> str:
    return STATEMENT.format(name=f"pack{rng.randrange(10**6)}", opcode=opcode)


def _vllm(rng: random.Random, version: str = "0.33.0") -> Mutant:
    files = {
        "vllm/version.py": "",
        "vllm/_version.py": f"__version__ = version = '{version}'\n",
        "cmake/utils.cmake": "set(A 1)\n",
        "CMakeLists.txt": "set(A 1)\n",
        "csrc/fp4/utils.cuh": f"#pragma once\n#include <cuda.h>\n{_statement(rng)}",
    }
    return Mutant(files)


def _elsewhere(m: Mutant, rng: random.Random) -> None:
    suffix = rng.choice(["cc", "inc", "hh", "cxx", "cu.in", "cuh.j2", "cu.jinja", "impl", "inl", "tpl", "cuh", "c"])
    m.files[f"{rng.choice(['csrc', 'lib', 'kernels/deep', 'vllm/csrc'])}/more.{suffix}"] = _statement(rng)


def _linked(m: Mutant, rng: random.Random) -> None:
    m.files["moved/fp4.cuh" if rng.random() < 0.5 else ".store/fp4.cuh"] = _statement(rng)
    place = next(name for name in m.files if name.endswith("/fp4.cuh"))
    if rng.random() < 0.5:
        m.links["csrc/linked.cuh"] = place
    else:
        m.links["csrc/linked"] = place.partition("/")[0]


def _dead_copy(m: Mutant, rng: random.Random) -> None:
    opening, closing = rng.choice(
        [("#if 0", "#endif"), ("#if 1\n#else", "#endif"), ("/*", "*/"), ("#if 0 && A", "#endif")]
    )
    m.files["csrc/fp4/utils.cuh"] = f"#pragma once\n{opening}\n{_statement(rng)}{closing}\n{_statement(rng)}"


def _in_python(m: Mutant, rng: random.Random) -> None:
    pieces = rng.choice([f'"{OPCODE} t;"', f'"{{.reg .b8 t;" "{OPCODE} t;"', '"cvt.rn.satfinite." + "e2m1x2.f32 t;"'])
    call = rng.choice(["tl.inline_asm_elementwise", "llvm.inline_asm", "open('a.cu', 'w').write"])
    m.files[rng.choice(["vllm/ops/k.py", "csrc/generate.py", "tools/make.py"])] = (
        f"def f(x):\n    return {call}({pieces})\n"
    )


def asm_mutant(rng: random.Random) -> Mutant:
    """Return a vLLM with conversions where the patch does not expect them."""
    mutant = _vllm(rng)
    for mutate in rng.sample((_elsewhere, _linked, _dead_copy, _in_python), rng.choice([1, 1, 2])):
        mutate(mutant, rng)
    return mutant


def unguarded(came: Came, work: Path) -> set[str]:
    """Return the files in which a compiler for sm_121a would see the instruction, by ``g++ -E`` or Python's ``ast``."""
    found = set()
    for name, text in came.files.items():
        if name.endswith(".py"):
            strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
            if "e2m1x2" in "".join(string for string in strings if isinstance(string, str)):
                found.add(name)
        elif not name.endswith((".cmake", ".txt")):
            seen = preprocessed(re.sub(r"#include[^\n]*", "", text), work, {"__CUDA_ARCH__": "1210"})
            if "e2m1x2" in re.sub(r'"\s*"', "", seen):
                found.add(name)
    return found


def preprocessed(text: str, work: Path, macros: Mapping[str, str], *options: str) -> str:
    """Return the output of ``g++ -E`` for a text."""
    (work / "oracle.cc").write_text(text)
    defines = [f"-D{name}={value}" for name, value in macros.items()]
    command = ["g++", "-E", "-P", "-x", "c++", *defines, *options, "oracle.cc"]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=True).stdout


# --- the guard (classes 11 and 12) -----------------------------------------------------------------------------------

_ARCH = """\
#if __CUDA_ARCH__ == {arch}
#  if defined(__CUDA_ARCH_FEAT_SM{sm}_ALL)
#    define CUTLASS_ARCH_MMA_SM{sm}A_ENABLED 1
#  endif
#  if __CUDA_ARCH_FAMILY_SPECIFIC__ == {arch}
#    define CUTLASS_ARCH_MMA_SM{sm}F_ENABLED 1
#  endif
#endif
"""
MACRO = "CUDA_PTX_FP4FP6_CVT_ENABLED"
_ON = f"#define {MACRO} 1\n"
_SM121A = "defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)"
_SHAPES = (
    ("", "", "", ""),
    (f"#if {_SM121A}\n#define HAS_CVT 1\n#endif\n", "", " || defined(HAS_CVT)", ""),
    (f"#if __CUDA_ARCH__ == 1210\n{_ON}#endif\n", "", "", ""),
    ("", f"#if 0\n#if {_SM121A}\n{_ON}#endif\n#endif\n", "", ""),
    *(("", "", f" || defined({name})", "") for name in ("MY_CVT", "CUTLASS_HAS_CVT", "CUTLASS_ARCH_MMA_SM12X_ENABLED")),
    ("", "", " || !defined(CUTLASS_ARCH_MMA_SM100A_ENABLED)", ""),
    *(
        ("", "", "", f"#if {test}\n#ifndef {MACRO}\n{_ON}#endif\n#endif\n")
        for test in ("__CUDA_ARCH__ >= 1200", _SM121A, "defined(__CUDA_ARCH_FEAT_SM121_ALL)", "1")
    ),
    *(("", "", "", text) for text in (f"#undef {MACRO}\n", f"#if {_SM121A}\n#undef {MACRO}\n#endif\n")),
)
"""What is added to another header, in front of the guard, to one of its conditions, and behind it."""


def guard_mutant(rng: random.Random) -> Mutant:
    """Return a CUTLASS whose guard has another shape, or in which a macro of it is renamed."""
    other, before, beside, behind = rng.choice(_SHAPES)
    config = "".join(_ARCH.format(arch=sm * 10, sm=sm) for sm in (100, 120, 121)) + other
    blocks = {
        kind: " || ".join(f"defined(CUTLASS_ARCH_MMA_SM{sm}{kind}_ENABLED)" for sm in (100, 120, 121)) for kind in "AF"
    }
    blocks[rng.choice("AF")] += beside
    guard = "".join(f"#if ({test})\n{_ON}#endif\n" for test in blocks.values())
    files = dict.fromkeys(load().target("cutlass").marks, "") | {
        "include/cutlass/version.h": "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 4\n#define CUTLASS_PATCH 0\n",
        "include/cutlass/arch/config.h": f"#pragma once\n{config}",
        "include/cutlass/float_subbyte.h": f'#pragma once\n#include "cutlass/arch/config.h"\n{before}{guard}{behind}',
    }
    if rng.random() < 0.1:
        files = {name: text.replace("MMA_SM121A", "MMA_BLACKWELL121A") for name, text in files.items()}
    return Mutant(files)


def macro_of(came: Mapping[str, str], arch: str, work: Path) -> bool:
    """Return whether the header defines the macro for a target, by ``g++ -E``."""
    for name, text in came.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    number, specific = TARGETS[arch]
    macros = {"__CUDA_ARCH__": number, "__CUDA_ARCH_FAMILY_SPECIFIC__": number}
    if specific:
        macros |= {f"__CUDA_ARCH_FEAT_SM{number[:-1]}_ALL": "1", "__CUDA_ARCH_SPECIFIC__": number}
    text = f'#include "cutlass/float_subbyte.h"\n#ifdef {MACRO}\nIT_IS_ON\n#endif\n'
    return "IT_IS_ON" in preprocessed(text, work, macros, "-Iinclude")


# --- lists of CMake (classes 13 and 14) ------------------------------------------------------------------------------


def cmake_mutant(rng: random.Random) -> Mutant:
    """Return a vLLM whose lists of architectures are put together in several commands."""
    suffix = rng.choice(["12.0a", "12.0f"])
    others = rng.sample(["9.0a", "10.0a", "10.3a"], rng.randint(0, 3))

    def quoted(items: list[str]) -> str:
        return f'"{";".join(items)}"'

    whole = quoted([*others, suffix])
    use = 'cuda_archs_loose_intersection(X_ARCHS "{}" "${{CUDA_ARCHS}}")'
    shapes = {
        "written": use.format(";".join([*others, suffix])),
        "variable": f"set(X_LIST {whole})\n{use.format('${X_LIST}')}",
        "appended": f'set(X_LIST "9.0a")\nlist(APPEND X_LIST {" ".join(map(quoted, [[o] for o in others] + [[suffix]]))})\n'
        + use.format("${X_LIST}"),
        "branches": f'if(NEW)\n  list(APPEND X_LIST {whole})\nelse()\n  set(X_LIST "9.0a" "{suffix}")\nendif()\n'
        + use.format("${X_LIST}"),
        "two deep": f'set(X_SM12X {suffix})\nset(X_LIST "9.0a;${{X_SM12X}}")\n{use.format("${X_LIST}")}',
        "has it": f'set(X_LIST {whole})\nlist(APPEND X_LIST "12.1a")\n{use.format("${X_LIST}")}',
        "has it in a branch": f'set(X_LIST {whole})\nif(NEW)\n  list(APPEND X_LIST "12.1a")\nendif()\n{use.format("${X_LIST}")}',
        "dead": f'if(FALSE)\n  set(X_LIST {whole})\nendif()\nset(X_LIST "9.0a" "{suffix}")\n{use.format("${X_LIST}")}',
        "removed": f'set(X_LIST {whole})\nlist(REMOVE_ITEM X_LIST "12.1a")\n{use.format("${X_LIST}")}',
        "computed": f'set(B "12.0")\nset(X_LIST "9.0a;${{B}}{suffix[-1]}")\n{use.format("${X_LIST}")}',
        "a loop": f"foreach(one 9.0a {suffix})\n  list(APPEND X_LIST ${{one}})\nendforeach()\n{use.format('${X_LIST}')}",
        "a macro's": f"use_archs(X_ARCHS {whole})",
        "in another file": use.format("${X_LIST}"),
    }
    done = rng.choice(list(shapes))
    mutant = _vllm(rng)
    cmake = 'set(CUDA_SUPPORTED_ARCHS "9.0;12.0")\ncuda_archs_loose_intersection(FP4_ARCHS "12.0f" "${CUDA_ARCHS}")\n'
    cmake += 'cuda_archs_loose_intersection(SCALED_MM_ARCHS "12.0f;12.0a" "${CUDA_ARCHS}")\n'
    for name in ("FP4_OLD_ARCHS", "OTHER_ARCHS"):
        cmake += f'cuda_archs_loose_intersection({name} "12.0a" "${{CUDA_ARCHS}}")\n'
    cmake += 'cuda_archs_loose_intersection(MORE_ARCHS "9.0;12.0" "${CUDA_ARCHS}")\n'
    cmake += 'cuda_archs_loose_intersection(FAMILY_ARCHS "12.0f" "${CUDA_ARCHS}")\n'
    mutant.files["CMakeLists.txt"] = cmake
    first = f"set(X_LIST {whole})\n" if done == "in another file" else ""
    mutant.files["cmake/lists.cmake"] = first
    mutant.files["cmake/external_projects/x.cmake"] = shapes[done] + "\n"
    return mutant


def lists_of(files: Mapping[str, str], new: bool, work: Path) -> list[list[str]]:
    """Return every list that the intersection gets, run by CMake in script mode."""
    stub = 'function(cuda_archs_loose_intersection OUT SRC TGT)\n  message(NOTICE "LIST=${SRC}")\nendfunction()\n'
    stub += 'function(use_archs OUT)\n  message(NOTICE "LIST=${ARGN}")\nendfunction()\n'
    names = ("cmake/lists.cmake", "CMakeLists.txt", "cmake/external_projects/x.cmake")
    script = stub + f"set(NEW {'ON' if new else 'OFF'})\n" + "\n".join(files[name] for name in names)
    (work / "oracle.cmake").write_text(script)
    done = subprocess.run(["cmake", "-P", "oracle.cmake"], cwd=work, capture_output=True, text=True, check=True)
    return [found.split(";") for found in re.findall(r"LIST=(.*)", done.stderr)]


# --- tests for exactly SM120 (classes 9, 10 and 12) ------------------------------------------------------------------

_EXACT = "major_capability * 10 + minor_capability == 120"
_HOST = f"""\
void mm(int major_capability, int minor_capability) {{
  if (a_type == vllm::kFE4M3fn) {{
    TORCH_CHECK(major_capability * 10 + minor_capability == 89 ||
                {_EXACT}, "no");
  }}
}}
"""
_GENERATE = """\
SUPPORT_FP8 = False
for arch in ARCHS:
    if arch in [89, 120]:
        SUPPORT_FP8 = True
"""
_SPELLINGS = ("{0} == 120", "120 == {0}", "not ({0} != 120)", "{0} >= 120 and {0} < 121", "121 > {0} and {0} >= 120")
_HOST_SPELLINGS = (
    "major_capability == 12 && minor_capability == 0",
    "minor_capability == 0 && major_capability == 12",
    "12 == major_capability && 0 == minor_capability",
    "major_capability == 12 && minor_capability < 1",
    *(
        one.format("(major_capability * 10 + minor_capability)").replace(" and ", " && ").replace("not ", "!")
        for one in _SPELLINGS
    ),
)
_CHANGES = (
    ("kFE4M3fn", "kFloat8"),
    ("SUPPORT_FP8", "WITH_FP8"),
    *(("[89, 120]", other) for other in ("(89, 120)", "[89, 90, 120]", "{89, 120}")),
    ("void mm(", f"#if 0\n{_HOST}#endif\nvoid mm("),
    ("SUPPORT_FP8 = False", "if False:\n    SUPPORT_FP8 = arch in [89, 120]\nSUPPORT_FP8 = False"),
    ("SUPPORT_FP8 = False", '"""if arch in [89, 120]: SUPPORT_FP8"""\nSUPPORT_FP8 = False'),
    *(("arch in [89, 120]", one.format("arch")) for one in (*_SPELLINGS, "{0} in (90, 120)")),
    *((_EXACT, one) for one in _HOST_SPELLINGS),
)


def family_mutant(rng: random.Random) -> Mutant:
    """Return a vLLM 0.14.1 in which a place of the patch is renamed, moved, spelled differently, or doubled as dead
    code; or all places of its kind."""
    mutant = _vllm(rng, "0.14.1")
    del mutant.files["csrc/fp4/utils.cuh"]
    hosts = (
        "csrc/quantization/gptq_marlin.cu",
        rng.choice([*["csrc/moe/ops.cu"] * 3, "csrc/other/matmul.cu", "csrc/lib/ops.cc"]),
    )
    generators = "csrc/quantization/generate_kernels.py", "csrc/moe/generate_kernels.py"
    mutant.files |= dict.fromkeys(hosts, _HOST) | dict.fromkeys(generators, _GENERATE)
    old, new = rng.choice(_CHANGES)
    places = [name for name, text in mutant.files.items() if old in text]
    for name in rng.choice([[], places, places[:1], places[1:]]):
        mutant.files[name] = mutant.files[name].replace(old, new)
    mutant.files["csrc/cutlass_extensions/common.hpp"] = (
        "struct enable_sm90_or_later {};\n#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 1200\n#endif\n"
    )
    mutant.files["csrc/c3x/scaled_mm.cuh"] = (
        "struct cutlass_3x_gemm_sm120 {\n  using GemmKernel = cutlass::gemm::kernel::GemmUniversal<A>;\n};\n"
    )
    mutant.files["vllm/quantization/utils/marlin_utils.py"] = (
        "def get_marlin_input_dtype():\n    return current_platform.is_device_capability(120)\n"
    )
    return mutant


def shut_out(files: Mapping[str, str], work: Path) -> set[str]:
    """Return the files that accept SM120 and not SM121, by ``g++ -E`` and the condition's value, or by ``ast`` and
    eval."""
    found = set()
    for name, text in files.items():
        if name.endswith((".cu", ".cc")):
            seen = preprocessed(text, work, {})
            for condition in re.findall(r"TORCH_CHECK\((.*?), \"no\"\)", seen, re.DOTALL):
                values = [
                    _holds(re.sub("!(?!=)", " not ", condition.replace("||", " or ").replace("&&", " and ")), minor)
                    for minor in (0, 1)
                ]
                if values == [True, False]:
                    found.add(name)
        elif name.endswith("generate_kernels.py"):
            for node in ast.parse(text).body:
                if isinstance(node, ast.For) and isinstance(node.body[0], ast.If):
                    test = compile(ast.Expression(node.body[0].test), name, "eval")
                    if [bool(eval(test, {"arch": arch})) for arch in (120, 121)] == [True, False]:
                        found.add(name)
    return found


def _holds(condition: str, minor: int) -> bool:
    values = {"major_capability": 12, "minor_capability": minor}
    return bool(eval(" ".join(condition.split()), values))


KINDS: dict[str, Callable[[random.Random], Mutant]] = {
    "vllm/e2m1-asm": asm_mutant,
    "cutlass/e2m1-guard": guard_mutant,
    "vllm/cmake-sm121a": cmake_mutant,
    "vllm/sm120-family": family_mutant,
}
