"""Tests for exactly SM120 in every notation: spellings of the number in contexts, and near misses of each."""

import pytest

from fp4patch.edits.exact_tests import BECAUSE, may_have, places


def in_function(code: str) -> str:
    return f"void f(const Device& props, int arch) {{\n  {code}\n}}\n"


NUMBERS = [
    *("120", "0x78", "0X78", "0170", "0b1111000", "0b111'1000", "1'20", "120u", "120UL", "0x78ull", "0x7'8", "(120)"),
    *("12 * 10", "121 - 1", "0b0111'1000", "120LL", "((120))"),
]
LARGE = ["1200", "0x4B0", "0x4b0", "02260", "1'200", "12'00", "1200u", "0b10010110000", "0x4'b0", "12 * 100"]
COMPARED = [
    *("if (arch == @) g();", "if (@ == arch) g();", "if (!(arch != @)) g();", "if (arch != @) return;"),
    *("if (arch <= @) g();", "if (@ >= arch) g();", "bool b = arch == @ && x;", "return y || arch == @;"),
    *("return arch == @ ? 1 : 2;", "while (arch == @) g();", "assert(arch == @);", "x = h(arch == @, 3);"),
    *("if (x) { if (sm == @) g(); }", "for (; arch == @; ) g();", "auto l = [&] { return arch == @; };"),
    *("if constexpr (Arch == @) g();", 'static_assert(kArch == @, "");', "if (props.arch == @ and x) g();"),
    *("if (not (arch == @)) throw 1;", "if (get_arch(0) == @) g();", "std::enable_if_t<Arch == @, int> x;"),
    *("switch (arch) { case @: g(); }", "if (auto a = arch; a == 1 || arch == @) g();"),
]
STRINGS = [
    *('"sm_120"', '"sm_120a"', '"sm120"', '"compute_120"', '"12.0"', '"12.0a"', '"sm_" "120"', '"sm_1" "20"'),
    *('"sm_\\x31\\x32\\x30"', '"sm_\\061\\062\\060"', 'R"(sm_120)"', 'u8"sm_120"', '"sm" "_120a"', '"120a"'),
]
OF_STRINGS = [
    "if (arch.find(@) != std::string::npos) g();",
    "if (arch.rfind(@, 0) == 0) g();",
    "if (strstr(arch, @)) g();",
    *("if (arch == @) g();", "if (!strcmp(arch, @)) g();", "if (strcmp(@, arch) == 0) g();"),
    *("if (arch != @) return;", "if (arch.compare(@) == 0) g();", "bool b = std::string_view(arch) == @;"),
]
NESTED = [
    "if (p.major == 12) if (p.minor == 0) g();",
    "if (p.major == 12) { if (!p.minor) { g(); } }",
    "if (!p.minor) {\n  h();\n  if (x && p.major == 12) g();\n}",
    "if constexpr (kMajor == 12) { for (auto& x : y) if (kMinor < 1) g(); }",
]
NAMES = [
    *(
        "if (is_sm120(d)) g();",
        "if (arch == kSm120) g();",
        "if (arch == Arch::SM120) g();",
        "if (!is_sm120a(d)) return;",
    ),
    *("if constexpr (std::is_same_v<A, Sm120>) g();", "switch (arch) { case Arch::Sm120: g(); }"),
    *("NV_IF_TARGET(NV_IS_EXACTLY_SM_120, (g();));", "NV_IF_TARGET(NV_IS_EXACTLY_SM_120a, (g();), (h();))"),
    *("if (std::is_same<A, Sm120>::value) g();", "return is_sm120(d) && x;", "bool b = a == SM_120;"),
]
CAPABILITIES = [
    *(
        "major == 12 && minor == 0",
        "12 == p.major && 0 == p.minor",
        "p.major == 12 && !p.minor",
        "major == 0xc && minor < 1",
    ),
    *(
        "major * 10 + minor == 120",
        "major * 10 + minor == 0x78",
        "p.major == 12 && p.minor <= 0",
        "!(minor || major != 12)",
    ),
    *("major_capability == 12 && minor_capability == 0", "cudaDevMajorCC == 12 && cudaDevMinorCC < 1"),
    *("cap == std::make_pair(12, 0)", "cap == DeviceCapability{12, 0}", "arch / 10 == 12 && arch % 10 == 0"),
    *("std::get<0>(cap) == 12 && std::get<1>(cap) == 0", "cap.first == 12 && cap.second == 0", "(arch ^ 120) == 0"),
    "std::tie(p.major, p.minor) == std::make_tuple(12, 0)",
    *("arch - 120 == 0", "!(arch - 120)", "cap[0] == 12 && cap[1] == 0", "major == 12 && minor != 1", "arch < 121"),
    *("arch < 0x79", "121 > arch", "arch >= 120 && arch < 121", "static_cast<int>(arch) == 120", "(int)arch == 120"),
]
DIRECTIVES = [
    *("#if __CUDA_ARCH__ == @\n#endif", "#if X\n#elif __CUDA_ARCH__ == @\n#endif", "#if @ == __CUDA_ARCH__\n#endif"),
    *(
        "#if defined(X) && (__CUDA_ARCH__ == @)\n#endif",
        "#if !(__CUDA_ARCH__ != @)\n#endif",
        "#define ON (__CUDA_ARCH__ == @)",
    ),
    *("#if __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ <= @\n#endif", "%:if __CUDA_ARCH__ == @\n%:endif"),
]
OF_NAMES = [
    *("#ifdef @\n#endif", "#if defined(@)\n#endif", "#if defined @ && X\n#endif", "#if X\n#elifdef @\n#endif"),
    *("#ifndef @\n#endif", "#if X\n#elif defined(@)\n#endif", "#if X\n#elifndef @\n#endif", "%:ifdef @\n%:endif"),
]
MACROS = ["__CUDA_ARCH_FEAT_SM120_ALL", "CUTLASS_ARCH_MMA_SM120A_ENABLED", "CUTLASS_ARCH_MMA_SM120F_ENABLED"]
SUMS = [
    "if (arch == 100 + 20) g();",
    "if (arch != 119 + 1) return;",
    "return arch == 60 * 2;",
    "bool b = sm == (1 << 7) - 8;",
]
DECLARED = [
    *("template <> struct Arch<120> {};", "template <> struct ForSm<0x78> {};", "template <> struct X<Sm120> {};"),
    *("template <> bool is_arch<120>() { return true; }", "template <class T> struct KernelArch<T, 120> {};"),
    "template <> struct X<90> {};\ntemplate <> struct X<100> {};\ntemplate <> struct X<120> {};",
    *("int archs[] = {80, 90, 120};", "int archs[] = {80, 0x5a, 0x78};", "std::set<int> s{90, 120};"),
    *("std::map<int, F> m = {{90, f}, {120, g}};", "constexpr int kOnly = 120;\nbool b = arch == kOnly;"),
    *(
        "enum { kBlackwell = 0x78 };\nbool b = arch == kBlackwell;",
        "#define ONLY 1200\n#if __CUDA_ARCH__ == ONLY\n#endif",
    ),
]
CXX = [
    *(in_function(test.replace("@", number)) for test in COMPARED for number in NUMBERS),
    *map(in_function, SUMS),
    *(in_function(test.replace("@", text)) for test in OF_STRINGS for text in STRINGS),
    *(in_function(test) for test in (*NAMES, *NESTED)),
    *(in_function(f"if ({test}) g();") for test in CAPABILITIES),
    *(in_function(f"bool b = {test};") for test in CAPABILITIES),
    *(f"{test.replace('@', number)}\n" for test in DIRECTIVES for number in LARGE),
    *(f"{test.replace('@', name)}\n" for test in OF_NAMES for name in MACROS),
    *(f"{test}\n" for test in DECLARED),
]
PY_NUMBERS = ["120", "0x78", "0b1111000", "0o170", "1_20", "12 * 10", "(120)", "int('120')", "121 - 1"]
PY_COMPARED = [
    *(
        "x = arch == @",
        "x = @ == arch",
        "if arch != @:\n    raise ValueError",
        "assert arch == @",
        "x = arch in (90, @)",
    ),
    *(
        "x = arch in [@]",
        "x = not (arch != @)",
        "x = a if arch == @ else b",
        "while sm == @:\n    f()",
        "x = arch <= @",
    ),
    *("x = [a for a in b if a.arch == @]", "x = f(arch == @)", "x = lambda arch: arch == @", "x = arch is @"),
    *(
        "if (c := arch) == @:\n    f()",
        "x = {90: a, @: b}[arch]",
        "x = p.is_device_capability(@)",
        "x = arch >= 120 and arch <= @",
    ),
    *("x = p.is_device_capability(capability=@)", "match arch:\n    case c if c == @:\n        f()"),
]
PY_STRINGS = [
    *(
        '"sm_120"',
        '"sm_120a"',
        '"sm" "_120"',
        '"sm_" + "120"',
        '"sm_1" + "20"',
        'f"sm_{120}"',
        '"sm_%d" % 120',
        '"SM120"',
    ),
    *(
        '"sm_{}".format(120)',
        '"_".join(["sm", "120"])',
        '"sm_" + str(120)',
        '"compute_120"',
        '"12.0"',
        '"sm_\\x3120"',
        "'sm_' '120'",
    ),
]
PY_OF_STRINGS = [
    "x = arch == @",
    "x = arch != @",
    "x = arch in (@, 'sm_90')",
    "x = arch.startswith(@)",
    "if @ == arch:\n    f()",
]
PY_CAPABILITIES = [
    *(
        "cap == (12, 0)",
        "(12, 0) == cap",
        "cap[0] == 12 and cap[1] == 0",
        "cap[:2] == (12, 0)",
        "cap[0] * 10 + cap[1] == 120",
    ),
    *(
        "arch // 10 == 12 and arch % 10 == 0",
        "divmod(arch, 10) == (12, 0)",
        "major == 12 and minor == 0",
        "major == 12 and not minor",
    ),
    *("c.major == 12 and c.minor < 1", "(major, minor) == (12, 0)", "(c := get_device_capability()) == (12, 0)"),
    *("get_device_capability()[0] == 12 and get_device_capability()[1] == 0", 'f"{major}.{minor}" == "12.0"'),
    *(
        'f"sm_{major}{minor}" == "sm_120"',
        'f"sm_{arch}" == "sm_120"',
        "DeviceCapability(12, 0) == x",
        "not (minor or major != 12)",
    ),
    *(
        "DeviceCapability(major=12, minor=0) == x",
        "arch - 120 == 0",
        "not arch - 120",
        "arch ^ 120 == 0",
        "is_sm120(d)",
    ),
    *("arch == Arch.SM120", "cap >= (12, 0) and cap < (12, 1)", "tuple(cap) == (12, 0)", "(12, 0) <= cap <= (12, 0)"),
    *(
        "arch in range(120, 121)",
        "arch in {90, 100, 120}",
        "cap in [(9, 0), (12, 0)]",
        "str(major) + str(minor) == '120'",
    ),
    "(c.major == 12) & (c.minor == 0)",
    "all([c.major == 12, c.minor == 0])",
    "any((x, c.major == 12 and c.minor == 0))",
    "p.has_device_capability(120) and not p.has_device_capability(121)",
    "p.is_device_capability_family(120) and not p.is_device_capability(121)",
    "str(cap) == '(12, 0)'",
    "'.'.join(map(str, cap)) == '12.0'",
    "'{}.{}'.format(*cap) == '12.0'",
    "arch in 'sm_90 sm_120'",
    "arch.rstrip('af') == 'sm_120'",
]
PY_MATCHES = [
    *(
        "match cap:\n    case (12, 0):\n        f()",
        "match arch:\n    case 0x78:\n        f()",
        "match arch:\n    case 90 | 120:\n        f()",
    ),
    *(
        "match cap:\n    case DeviceCapability(12, 0):\n        f()",
        "match cap:\n    case DeviceCapability(major=12, minor=0):\n        f()",
    ),
    *("match name:\n    case 'sm_120' | 'sm_90':\n        f()", "match cap:\n    case (12, m) if m == 0:\n        f()"),
    *(
        "match major, minor:\n    case 12, 0:\n        f()",
        "match cap:\n    case {'major': 12, 'minor': 0}:\n        f()",
    ),
    *("match cap:\n    case [12, 0]:\n        f()", "match arch:\n    case int(a) if arch == 120:\n        f()"),
]
PY_MODULES = [
    *(
        "ONLY = 120\nx = arch == ONLY",
        "ONLY = (12, 0)\nx = cap == ONLY",
        "a, b = get_device_capability()\nx = a == 12 and b == 0",
    ),
    *(
        "if major == 12:\n    if minor == 0:\n        f()",
        "if minor == 0:\n    if x and major == 12:\n        f()",
        "x = c.major == 12 if c.minor == 0 else False",
        "@supported_compute_capability([100, 103, 120])\ndef f(): pass",
        "@api\n@supported_compute_capability([120])\nasync def f(x):\n    return x",
        "@requires(cc={120})\nclass A:\n    x = 1",
        "def f(major, minor):\n    if major != 12:\n        return 0\n    return minor == 0",
    ),
    *("ARCHS = [80, 90] + [120]", "BY = {'sm_90': a, 'sm_120': b}", "c = get_device_capability()\nx = c == (12, 0)"),
]
PYTHON = [
    *(f"{test.replace('@', number)}\n" for test in PY_COMPARED for number in PY_NUMBERS),
    *(f"{test.replace('@', text)}\n" for test in PY_OF_STRINGS for text in PY_STRINGS),
    *(f"x = {test}\n" for test in PY_CAPABILITIES),
    *(f"if {test}:\n    f()\n" for test in PY_CAPABILITIES),
    *(f"{test}\n" for test in (*PY_MATCHES, *PY_MODULES)),
]
CMAKE = [
    *(
        f"if({left} {operator} {right})\nendif()\n"
        for left in ("ARCH", "${CUDA_ARCH}")
        for operator in ("EQUAL", "STREQUAL", "VERSION_EQUAL")
        for right in ("120", '"12.0"', "sm_120a")
    ),
    *(
        "if(ARCH VERSION_LESS 12.1)\nendif()\n",
        "if(NOT ARCH STREQUAL 12.0)\nendif()\n",
        'if(ARCH MATCHES "^12\\\\.0a?$")\nendif()\n',
    ),
    *(
        "if(X AND (ARCH EQUAL 120))\nendif()\n",
        "if(X)\nelseif(12.0 IN_LIST CUDA_ARCHS)\nendif()\n",
        "if(NOT 12.1 IN_LIST CUDA_ARCHS)\nendif()\n",
    ),
    *("if(ARCH VERSION_LESS_EQUAL 12.0)\nendif()\n", "while(ARCH EQUAL 120)\nendwhile()\n"),
    *(
        'if("${SM_MAJOR}${SM_MINOR}" STREQUAL "120")\nendif()\n',
        'if("sm_${CUDA_ARCH}a" STREQUAL "sm_120a")\nendif()\n',
        'if(";${CUDA_ARCHS};" MATCHES ";120;")\nendif()\n',
        'if("${CUDA_ARCHS}-${CMAKE_SYSTEM}" MATCHES "12.0a")\nendif()\n',
    ),
]
FORMS = [*(("c++", text) for text in CXX), *(("python", text) for text in PYTHON), *(("cmake", text) for text in CMAKE)]


def silent(forms: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the forms that the quick look does not pass, or in which the search finds nothing."""
    missed = []
    for language, text in forms:
        if not may_have(language, frozenset()).passes(text.encode()):
            missed.append((language, "look", text))
        elif not [place for place in places(language, set(), text) if place.because == BECAUSE]:
            missed.append((language, "search", text))
    return missed


def test_no_form_of_a_test_is_passed_over() -> None:
    assert len(set(FORMS)) == len(FORMS) > 1000
    assert silent(FORMS) == []


NEAR = {
    "c++": [
        *(
            in_function(f"if ({test}) g();")
            for test in (
                "arch >= 120",
                "arch >= 0x78",
                "arch == 120 || arch == 121",
                "std::tie(major, minor) >= std::make_tuple(12, 0)",
                'arch.find("sm_12") == std::string::npos',
                "arch == 0x78 || arch == 0x79",
                "arch > 120",
                "arch / 10 == 12",
                "major == 12",
                "major == 12 && minor >= 0",
                "head_size == 120",
                "num_sms == 0x78",
                "smem == 120",
                "search == 120",
                "sm_count == 120",
                "is_sm120_or_sm121(d)",
                "is_sm120(d) || is_sm121(d)",
                "arch == 121",
                "major == 12 && (minor == 0 || minor == 1)",
                "arch == kSm120 || arch == kSm121",
                "std::is_same_v<A, Sm120> || std::is_same_v<A, Sm121>",
                "cuda_major == 12 && cuda_minor == 0",
                "std::is_same_v<ArchTag, cutlass::arch::Sm120>",
                "arch >= 120 && arch < 130",
                "x == 120 && arch >= 90",
                "(x && arch == 120) || (x && arch == 121)",
                "tile == 12 * 10",
                "width == 0170",
                "CUDART_VERSION == 12000",
            )
        ),
        *(
            f"{test}\n#endif\n"
            for test in (
                "#if __CUDA_ARCH__ >= 1200",
                "#if __CUDA_ARCH__ == 1200 || __CUDA_ARCH__ == 1210",
                "#ifdef ENABLE_SM120",
                "#if defined(CUTLASS_ARCH_MMA_SM120A_ENABLED) || defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)",
                "#if __CUDA_ARCH__ / 100 == 12",
                "#if defined(CUTLASS_ARCH_MMA_SM120_SUPPORTED)",
                "#if CUDA_VERSION == 12000",
                "#if defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL)",
                "#if WIDTH == 120",
            )
        ),
        in_function("if (major == 12) if (x) g();"),
        in_function("if (minor == 0) { h(); } if (major == 12) g();"),
        "Array<120> a;\n",
        "template <> struct Tile<120> @;\n",
        "int x[120];\n",
        "// arch == 0x78\n",
        '"arch == 120";\n',
        "template <> struct X<Sm120> @;\ntemplate <> struct X<Sm121> @;\n",
        "NV_IF_TARGET(NV_PROVIDES_SM_120, (g();));\n",
        "switch (arch) {\n  case 120:\n  case 121:\n    f();\n}\n",
        "switch (head) { case 0x78: f(); }\n",
        "int archs[] = {90, 120, 121};\n",
        "void g() { h(120, arch); }\n",
        "constexpr int kWidth = 120;\nbool b = w == kWidth;\n",
        "NV_DISPATCH_TARGET(NV_IS_EXACTLY_SM_120, (f();), NV_IS_EXACTLY_SM_121, (f();));\n",
    ],
    "python": [
        *(
            f"x = {test}\n"
            for test in (
                "arch >= 120",
                "arch in (120, 121)",
                "arch == 120 or arch == 121",
                "head == 120",
                "width == 0x78",
                "shape == (12, 0)",
                "major == 12",
                "cap[0] == 12",
                "arch // 10 == 12",
                "divmod(arch, 10)[0] == 12",
                "cap >= (12, 0)",
                "arch == 121",
                "torch.version.cuda == '12.0'",
                "cuda_version == (12, 0)",
                "num_sms == 120",
                "'arch == 120'",
                "f(120, arch)",
                "is_sm120(d) or is_sm121(d)",
                "p.has_device_capability(120)",
                "p.has_device_capability(90) and not p.has_device_capability(120)",
                "(c.major == 12) & (c.minor >= 0)",
                "any([arch == 120, arch == 121])",
                "flags & 120",
                "p.is_device_capability_family(120)",
                "name in ('sm_120', 'sm_121')",
                "arch in range(120, 130)",
                "minor == 0",
                "sizes in (80, 120)",
                "(x and arch == 120) or (x and arch == 121)",
                "f'sm_{arch}' in ('sm_120', 'sm_121')",
                "arch == 100 or major == 12",
            )
        ),
        "match arch:\n    case 120 | 121:\n        f()\n",
        "match arch:\n    case 120:\n        f()\n    case 121:\n        g()\n",
        "WIDTH = 120\nx = w == WIDTH\n",
        "if major == 12:\n    f()\n",
        "if minor == 0:\n    f()\nif major == 12:\n    g()\n",
        "@supported_compute_capability([100, 120, 121])\ndef f(): pass\n",
        "@parametrize('width', [120])\ndef f(): pass\n",
        "f(width=[120], arch=arch)\n",
        "x = is_device_capability_family([120])\n",
    ],
    "cmake": [
        *(
            f"if({test})\nendif()\n"
            for test in (
                "CUDA_VERSION VERSION_LESS 12.1",
                "ARCH VERSION_GREATER_EQUAL 12.0",
                "ARCH EQUAL 120 OR ARCH EQUAL 121",
                "CMAKE_CUDA_COMPILER_VERSION VERSION_EQUAL 12.0",
                "WIDTH EQUAL 120",
                'ARCH MATCHES "12.[01]"',
                "12.0 IN_LIST ARCHS OR 12.1 IN_LIST ARCHS",
                "CUDA_VERSION VERSION_GREATER 12.0",
            )
        ),
        "set(ARCH 12.0)\n",
    ],
}


@pytest.mark.parametrize("language", NEAR)
def test_what_sm121_passes_too_is_not_named(language: str) -> None:
    assert [(text, found) for text in NEAR[language] if (found := places(language, set(), text))] == []
