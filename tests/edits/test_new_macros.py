"""Macros and variables of builds, and targets, on which a text depends since an edit."""

import pytest

from fp4patch.core.arch import Arch
from fp4patch.edits.new_macros import (
    asked_since,
    definitions,
    macros_since,
    new_lines,
    pragmas,
    targets_unseen,
    variables_since,
)

BEFORE = """#ifndef NDEBUG
int a() { return __LINE__; }
#endif
#if defined(OLD_NAME) && defined(OTHER)
int b();
#endif
"""


def macros(after: str) -> list[tuple[int, str]]:
    return [(line, name) for _, line, name in macros_since({"a.h": BEFORE}, {"a.h": after})]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#ifdef NDEBUG\nint c();\n#endif\n", "NDEBUG"),
        ("#if __CUDACC_VER_MINOR__ == 1\nint c();\n#endif\n", "__CUDACC_VER_MINOR__"),
        ("#if 0\n#elif defined(MINE)\nint c();\n#endif\n", "MINE"),
        ("#ifndef MINE\nint c();\n#endif\n", "MINE"),
        ("int c() { return __COUNTER__; }\n", "__COUNTER__"),
        ("bool c(int u) { return static_cast<wchar_t>(u) < 0; }\n", "wchar_t"),
        ("bool c(int u) { return static_cast<char>(u) < 0; }\n", "char"),
        ("int c() { return __cplusplus > 201703L; }\n", "__cplusplus"),
        ("int c() { return __LINE__; }\n", "__LINE__"),  # one more than before
    ],
)
def test_a_macro_of_the_build_that_an_edit_brings_is_found(text: str, name: str) -> None:
    assert [found for _, found in macros(BEFORE + text)] == [name]


def test_the_first_word_of_a_file_counts_too() -> None:
    assert list(macros_since({"a.h": ""}, {"a.h": "wchar_t c();\n"})) == [("a.h", 1, "wchar_t")]


@pytest.mark.parametrize(
    "text",
    [
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860\nint c();\n#endif\n",
        "#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000\nint c();\n#endif\n",
        "#ifndef MINE_H\n#define MINE_H\nint c();\n#endif\n",
        "#if !defined(FP4PATCH_FORCE_SOFTWARE)\nint c();\n#endif\n",
        "// #ifdef NDEBUG\n",
        "int c() { return __float_as_uint(1.0f); }\n",
        "unsigned char c();\nsigned char d();\n",
    ],
)
def test_what_differs_between_targets_and_what_the_text_defines_does_not_count(text: str) -> None:
    assert macros(BEFORE + text) == []


def test_the_names_of_a_condition_that_changed_may_stay() -> None:
    assert macros(BEFORE.replace("defined(OLD_NAME) && ", "")) == []


def test_a_new_file_has_all_of_its_macros() -> None:
    assert [name for *_, name in macros_since({}, {"a.h": BEFORE})] == ["NDEBUG", "OLD_NAME", "OTHER", "__LINE__"]


CMAKE = 'set(ARCHS "12.0")\nif(CMAKE_BUILD_TYPE STREQUAL "Debug")\n  message("x")\nendif()\n'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("if(NOT DEFINED MINE)\nendif()\n", "MINE"),
        ("if(DEFINED ENV{MINE})\nendif()\n", "ENV{MINE}"),
        ('if("$ENV{MINE}" STREQUAL "1")\nendif()\n', "ENV{MINE}"),
        ('if(CMAKE_BUILD_TYPE STREQUAL "Release")\nendif()\n', "CMAKE_BUILD_TYPE"),
        ("if(ARCHS)\nelseif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.1)\nendif()\n", "CMAKE_CUDA_COMPILER_VERSION"),
        ('list(APPEND ARCHS "${MINE}")\n', "MINE"),
    ],
)
def test_a_variable_of_the_build_that_an_edit_brings_is_found(text: str, name: str) -> None:
    assert [found for _, found in variables_since(CMAKE, CMAKE + text)] == [name]


def test_variables_that_the_file_sets_do_not_count() -> None:
    text = 'foreach(one ${ARCHS})\n  if("${one}" IN_LIST ARCHS AND NOT one MATCHES "a")\n  endif()\nendforeach()\n'
    assert list(variables_since(CMAKE, CMAKE + text)) == []


SEEN = [Arch.parse(one) for one in ("sm_120a", "sm_121a", "sm_120f", "sm_121f", "sm_121", "sm_90")]


@pytest.mark.parametrize(
    ("condition", "missing"),
    [
        ("#if __CUDA_ARCH__ == 1100", "sm_110"),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1030 && __CUDA_ARCH__ >= 1000", "sm_100"),
        ("#ifdef __CUDA_ARCH_FEAT_SM103_ALL", "sm_103a"),
        ("#if __CUDA_ARCH__ == 1210", ""),
        ("#if __CUDA_ARCH__ >= 860", ""),
        ("#if __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300", ""),
        ("#if __CUDA_ARCH_FAMILY_SPECIFIC__ >= 900 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300", "sm_90a"),
        ("#if __CUDA_ARCH__ >= 1200\n#elif __CUDA_ARCH__ >= 1000", "sm_100"),
        ("#if defined(MINE) || __CUDA_ARCH__ == 1210", ""),
        ("#if defined(MINE) && __CUDA_ARCH__ == 1100", "sm_110"),
    ],
)
def test_a_condition_that_decides_otherwise_for_a_target_without_code_is_found(condition: str, missing: str) -> None:
    found = targets_unseen({"a.h": BEFORE}, {"a.h": f"{BEFORE}{condition}\nint c();\n#endif\n"}, SEEN)
    assert [str(arch) for *_, arch in found] == [missing] * bool(missing)


def test_a_condition_in_the_place_of_another_may_have_its_value() -> None:
    old, new = "#if __CUDA_ARCH__ == 1200\n#endif\n", "#if __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300\n#endif\n"
    of_sm12x = [Arch.parse("sm_120a"), Arch.parse("sm_121a")]
    assert list(targets_unseen({"a.h": old}, {"a.h": new}, of_sm12x)) == []
    narrow = "#if __CUDA_ARCH__ >= 1200 || __CUDA_ARCH__ == 1000\n#endif\n"
    assert list(targets_unseen({"a.h": narrow}, {"a.h": new}, of_sm12x)) != []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#define OTHER 1\n", "OTHER"),
        ("#undef OTHER\n", "OTHER"),
        ("#define PAIR(a, b) a\n", "PAIR"),
        ("int c();  // #define OTHER\n", ""),
    ],
)
def test_a_macro_that_an_edit_defines_is_found(text: str, name: str) -> None:
    found = list(new_lines({"a.h": BEFORE}, {"a.h": BEFORE + text}, definitions))
    assert found == ([("a.h", BEFORE.count("\n") + 1, name)] if name else [])


def test_a_definition_that_moved_is_none() -> None:
    assert (
        list(new_lines({"a.h": f"#define MINE 1\n{BEFORE}"}, {"a.h": f"{BEFORE}#define MINE 1\n"}, definitions)) == []
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#pragma GCC visibility push(hidden)\n", ["#pragma GCC visibility push ( hidden )"]),
        ('_Pragma("pack(1)")\n', ["_Pragma"]),
        ("#pragma once\n#pragma unroll 4\n// #pragma pack(1)\n", []),
    ],
)
def test_a_pragma_that_later_text_feels_is_found(text: str, found: list[str]) -> None:
    assert [name for *_, name in new_lines({"a.h": BEFORE}, {"a.h": BEFORE + text}, pragmas)] == found


def test_a_question_of_python_for_the_machine_is_found() -> None:
    old = "archs = [10] if os.environ else current_platform.archs\n"
    new = "archs = [10] if os.environ and __import__('platform').machine() else current_platform.archs\n"
    assert sorted(name for _, name in asked_since(old, new)) == ["machine", "platform"]
    new += "if os.environ.get('CI') or os.environ[\"HOME\"] or 'CI' in os.environ: pass\n"
    assert sorted(name for _, name in asked_since(old, new)) == ["CI", "HOME", "environ", "machine", "platform"]
    assert list(asked_since(old, old)) == []
