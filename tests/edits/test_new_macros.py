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
        ("bool c() { return '\\xff' > 0; }\n", "char"),
        ("bool c() { return '\\377' > 0; }\n", "char"),
        ("bool c() { return ~0ul == 0xffffffff; }\n", "long"),
        ("bool c() { return 0x7fff'ffffL + 1 < 0; }\n", "long"),
        ("int c() { return __cplusplus > 201703; }\n", "__cplusplus"),
        ("int c() { return __LINE__; }\n", "__LINE__"),  # one more than before
        ("bool c(int u) { return decltype('a')(u) < 0; }\n", "char"),
        ("bool c(int u) { auto x = 'a'; x = u; return x < 0; }\n", "char"),
        ("#define WHEN __TIME__\nint c() { return WHEN[0]; }\n", "__TIME__"),
        ("#define WHEN() int(__COUNTER__)\nint c() { return WHEN(); }\n", "__COUNTER__"),
        ("#define SIGN static_cast<char>(-1)\nbool c() { return SIGN < 0; }\n", "char"),
        ("#define OTHER MY_FLAG\nint c() { return OTHER; }\n", "MY_FLAG"),
        ("#define JOIN(a, b) a##b\nint c() { return JOIN(__TI, ME__)[0]; }\n", "##"),
    ],
)
def test_a_macro_of_the_build_that_an_edit_brings_is_found(text: str, name: str) -> None:
    assert [found for _, found in macros(BEFORE + text)] == [name]


def test_characters_and_numbers_that_are_the_same_on_every_host_depend_on_nothing() -> None:
    same = "bool c(int u) { return u == 'a' || u == '\\x7f' || u == '\\0' || u8'\\xff' || 0xfffULL || 1.0L; }\n"
    assert list(macros(BEFORE + same)) == []


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
        ('if(EXISTS "/etc/dgx-release")\nendif()\n', "EXISTS"),
        ('if(NOT EXISTS "/.dockerenv")\nendif()\n', "EXISTS"),
        ("if(NOT COMMAND add_gencode)\nendif()\n", "COMMAND"),
        ("if(TARGET _C)\nendif()\n", "TARGET"),
        ("if(IS_DIRECTORY /opt/nvidia)\nendif()\n", "IS_DIRECTORY"),
        ("if(/etc/a IS_NEWER_THAN /etc/b)\nendif()\n", "IS_NEWER_THAN"),
        ("if(POLICY CMP0150)\nendif()\n", "POLICY"),
        ("cmake_host_system_information(RESULT n QUERY NUMBER_OF_LOGICAL_CORES)\n", "cmake_host_system_information("),
        ("string(TIMESTAMP now %d)\n", "string("),
        ("string(RANDOM LENGTH 4 x)\n", "string("),
        ("string(UUID x NAMESPACE y NAME z TYPE MD5)\n", "string("),
        ("file(GLOB found /usr/lib/*)\n", "file("),
        ("execute_process(COMMAND uname)\n", "execute_process("),
        ("find_program(found ninja)\n", "find_program("),
        ("site_name(host)\n", "site_name("),
        ("get_filename_component(real /dev REALPATH)\n", "get_filename_component("),
        ("include(CheckCXXCompilerFlag)\n", "include("),
        ("add_compile_options(-G)\n", "add_compile_options("),
        ("cmake_language(CALL site_name host)\n", "cmake_language("),
        ("get_property(x GLOBAL PROPERTY y)\n", "get_property("),
        ("cmake_path(ABSOLUTE_PATH x)\n", "cmake_path("),
        ("try_compile(a b c)\n", "try_compile("),
        ("load_cache(x)\n", "load_cache("),
        ("cmake_file_api(QUERY)\n", "cmake_file_api("),
        ("variable_watch(ARCHS)\n", "variable_watch("),
        ('list(APPEND ARCHS "$<CONFIG:Debug>")\n', "$<CONFIG"),
        ('set(ARCHS "$<$<PLATFORM_ID:Linux>:12.1a>")\n', "$<PLATFORM_ID"),
        ("string(CONFIGURE @CMAKE_HOST_SYSTEM_NAME@ x)\n", "CMAKE_HOST_SYSTEM_NAME"),
        ("list(LENGTH CMAKE_CUDA_FLAGS n)\nif(n GREATER 0)\nendif()\n", "CMAKE_CUDA_FLAGS"),
        ("list(FIND MINE a n)\n", "MINE"),
        ("foreach(one IN LISTS MINE)\nendforeach()\n", "MINE"),
        ("foreach(one IN LISTS ARCHS MINE)\nendforeach()\n", "MINE"),
        ("message(MINE)\nif(MINE)\nendif()\n", "MINE"),
        ("set(x MINE)\nif(MINE)\nendif()\n", "MINE"),
    ],
)
def test_a_variable_of_the_build_that_an_edit_brings_is_found(text: str, name: str) -> None:
    assert name in [found for _, found in variables_since(CMAKE, CMAKE + text)]


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
    assert sorted(name for _, name in asked_since(old, new)) == ["__import__", "machine"]
    new += "if os.environ.get('CI') or os.environ[\"HOME\"] or 'CI' in os.environ: pass\n"
    assert sorted(name for _, name in asked_since(old, new)) == [
        "CI",
        "HOME",
        "__import__",
        "environ",
        "environ",
        "machine",
    ]
    assert list(asked_since(old, old)) == []


FUNCTION = "def choose(head, envs, platform):\n    return head == 128 and platform.family(120)\n"


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ('getattr(envs, "FAST", True)', "getattr"),
        ('hasattr(envs, "FAST")', "hasattr"),
        ('open("/etc/dgx-release")', "open"),
        ('__import__("os").path.exists("/x")', "__import__"),
        ('eval("1")', "eval"),
        ('vars(envs)["FAST"]', "vars"),
        ('globals()["CI"]', "globals"),
        ("hash(head)", "hash"),
        ("repr(envs)[-2] != '0'", "repr"),
        ("{'a', 'b'}.pop() == 'a'", "set"),
        ("next(iter({'a', 'b'})) == 'a'", "set"),
        ("[*frozenset(('a', 'b'))][0] == 'a'", "set"),
        ("list({v for v in 'ab'}) == ['a', 'b']", "set"),
        ("id(head) % 2", "id"),
        ("input()", "input"),
        ('importlib.util.find_spec("torch")', "find_spec"),
        ('os.path.isfile("/etc/dgx-release")', "isfile"),
        ('os.access("/dev/nvidia0", 4)', "access"),
        ("os.cpu_count() > 4", "cpu_count"),
        ('os.environ["CI"]', "CI"),
        ('os.environ.get("CI")', "CI"),
        ('os.getenv("CI")', "CI"),
        ('"CI" in os.environ', "environ"),
        ("os.environ.get(head)", "environ"),
        ("time.time() > 0", "time"),
        ("random.random() < 1", "random"),
        ('shutil.which("nvcc")', "which"),
        ('socket.gethostname() == "spark"', "gethostname"),
        ("sys.version_info > (3, 11)", "version_info"),
        ("sys.byteorder", "byteorder"),
        ('Path("/.dockerenv").is_file()', "is_file"),
        ("envs.FAST", "FAST"),
        ("platform.is_wsl()", "is_wsl"),
        ("torch.cuda.device_count() == 1", "device_count"),
        ("__debug__", "__debug__"),
        ("str(envs)[-2] != '0'", "str"),
        ("str(platform.family) > 'a'", "str"),
        ("f'{envs}'[-2] != '0'", "str"),
        ("f'{envs!r}'.endswith('0>')", "str"),
        ("f'{choose}' > 'a'", "str"),
        ("f'{head:{envs}}' > 'a'", "str"),
        ("'%r' % envs > 'a'", "str"),
        ("'%s %d' % (envs, 1) > 'a'", "str"),
        ("'{}'.format(envs) > 'a'", "str"),
        ("'{0.__class__}'.format(envs) > 'a'", "str"),
        ("format(envs) > 'a'", "str"),
        ("[*map(str, [envs])] > ['a']", "str"),
        ("str([envs]) > 'a'", "str"),
        ("str(map(len, 'a')) > 'a'", "str"),
        ("str(lambda: 1) > 'a'", "str"),
        ("(mine := envs) and str(mine) > 'a'", "str"),
        ("envs.__class__ is int", "__class__"),
        ("head.__hash__() % 2", "__hash__"),
        ("'a'.__hash__() % 2", "__hash__"),
        ("envs.__repr__() > 'a'", "__repr__"),
        ("envs.__dict__", "__dict__"),
        ("hash('a') % 2", "hash"),
        ("sorted('ab', key=hash)[0] == 'a'", "hash"),
        ("re._compiler.MAXCODE > 1", "_compiler"),
        ("__file__", "__file__"),
    ],
)
def test_a_name_that_the_function_had_not_is_a_question(condition: str, name: str) -> None:
    new = FUNCTION.replace("head == 128", f"head == 128 and {condition}")
    assert name in [found for _, found in asked_since(FUNCTION, new)]


@pytest.mark.parametrize(
    "condition",
    [
        "head >= 128",
        "head in (128, 256)",
        "head in {128, 256}",
        "len({head, 128}) == 1",
        "any(n == head for n in range(3))",
        "(wide := head > 64) or wide",
        'str(head).isdigit() and "a" * len(str(head))',
        're.fullmatch("1.*", str(head)) is not None',
        "platform.family(121)",
        "max([head, 3]) == sorted({head})[0]",
        "f'{head}' == '128'",
        "'%d' % (head + 1) == '129'",
        "'{}'.format(head) == '128'",
        "any(str(n) == str(head) for n in (64, 128))",
        "(wide := str(head)) and f'{wide}.' == '128.'",
    ],
)
def test_names_that_the_function_has_and_what_is_pure_are_none(condition: str) -> None:
    assert list(asked_since(FUNCTION, FUNCTION.replace("head == 128", condition))) == []


def test_a_name_that_is_divided_is_a_number() -> None:
    before = "cc = detected()\n\n\ndef flags():\n    return ['sm_120a']\n"
    after = before.replace("'sm_120a'", "f'sm_{cc}a' if cc // 10 == 12 else 'sm_120a'")  # as QuTLASS's patch has it
    assert list(asked_since(before, after)) == []
    assert list(asked_since(before, after.replace("cc // 10 == 12", "cc"))) == [(5, "str")]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("int c() { return CUTLASS_ENABLE_F16C; }\n", "CUTLASS_ENABLE_F16C"),
        ("int c() { return MY_FLAG + 1; }\n", "MY_FLAG"),
        ("bool c() { return sizeof(long) > 4; }\n", "long"),
        ("unsigned long c();\n", "long"),
        ("bool c() { return ULONG_MAX > 1; }\n", "ULONG_MAX"),
        ("unsigned long long c();\nlong long d();\nlong double e();\n", ""),
        ("MY_DECORATION int c();\n", ""),
        ("#define MY_FLAG 1\nint c() { return MY_FLAG; }\n", ""),
        ("enum { MY_FLAG, MY_OTHER = 2 };\nint c() { return MY_FLAG + MY_OTHER; }\n", ""),
        ("enum class K : int { MY_A, MY_B, };\nK c() { return K::MY_B; }\n", ""),
        ("enum { A = sizeof(MY_FLAG) };\n", "MY_FLAG"),
        ("enum { A = MY_FLAG };\n", "MY_FLAG"),
        ("constexpr int MY_MAX = 6;\nint c() { return MY_MAX; }\n", ""),
        ("static const int MY_NAMES[2] = {};\nauto c() { return MY_NAMES[0]; }\n", ""),
        ("constexpr unsigned MY_MAX{6};\nint c() { return MY_MAX; }\n", ""),
        ("constexpr int A = MY_FLAG;\n", "MY_FLAG"),
        ("constexpr bool A = MY_FLAG == 1;\n", "MY_FLAG"),
        ("const int a = MY_FLAG[0];\n", "MY_FLAG"),
        ("constexpr int c() { return MY_FLAG; }\n", "MY_FLAG"),
        ("bool c() { if constexpr (MY_FLAG == 1) { return true; } }\n", "MY_FLAG"),
        ("int c() { const int x = 1; return x ? MY_FLAG : 2; }\n", "MY_FLAG"),
    ],
)
def test_a_macro_of_an_expression_and_a_long_are_found(code: str, name: str) -> None:
    found = [found for *_, found in macros_since({"a.h": BEFORE}, {"a.h": BEFORE + code})]
    assert found[:1] == [name] * bool(name)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('bool c() { return getenv("CI"); }\n', "getenv"),
        ('bool c() { return std::getenv("CI"); }\n', "getenv"),
        ('bool c() { return ::getenv("CI"); }\n', "getenv"),
        ("bool c() { return time(nullptr) % 2; }\n", "time"),
        ("bool c() { return rand() % 2; }\n", "rand"),
        ("bool c() { return std::thread::hardware_concurrency() > 4; }\n", "hardware_concurrency"),
        ("auto c() { return std::chrono::steady_clock::now(); }\n", "now"),
        ('bool c() { return std::filesystem::exists("/x"); }\n', "exists"),
        ("long long c() { return clock64(); }\n", "clock64"),
        ("bool c() { return __isShared(p); }\n", "__isShared"),
        ("int c() { return __builtin_cpu_supports(p); }\n", "__builtin_cpu_supports"),
        ("bool c() { return sched_getcpu() == 0; }\n", "sched_getcpu"),
        ("#define ASKS() gethostid()\n", "gethostid"),
        ('int c() { int x; asm("mov.u32 %0, %%smid;" : "=r"(x)); return x; }\n', "%smid"),
        ('int c() { int x; asm volatile("mov.u32 %0, %clock;" : "=r"(x)); return x; }\n', "%clock"),
        ("int own(int x) { return x; }\nint c() { return own(1); }\n", ""),
        ("int c() { return __float_as_uint(__fmul_rn(a, 2.0f)); }\n", ""),
        ("int c(cutlass::Array<int, 2> x) { return x.size() + cutlass::bits(x) + static_cast<int>(x[0]); }\n", ""),
        ("int c() { return std::max(uint32_t(1), sizeof(int)); }\n", ""),
    ],
)
def test_a_function_that_may_ask_the_machine_is_found(code: str, name: str) -> None:
    found = [found for *_, found in macros_since({"a.h": BEFORE}, {"a.h": BEFORE + code}) if found != "long"]
    assert found[:1] == [name] * bool(name)
