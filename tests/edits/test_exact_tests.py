"""Tests for exactly SM120 that no edit is for, in both languages."""

import pytest

from fp4patch.edits.exact_tests import BECAUSE, may_have, places

HOST = "void f(const Device& props, int arch) {{\n  if ({}) g();\n}}\n"
CAPABILITY = "(major * 10 + minor)"


IN_CXX = [
    *(HOST.format(test) for test in ("arch == 120", "1200 == arch", "!(arch != (120))", "arch <= 120", "arch < 121")),
    *(HOST.format(test) for test in ("121 > arch", "120 >= arch", f"{CAPABILITY} == 120", "12 == major && 0 == minor")),
    *(HOST.format(test) for test in ("p.major == 12 && p.minor == 0", "p.minor == 0 && p.major == 12")),
    *(HOST.format(test) for test in ("p.major == 12 && p.minor < 1", "major == 12 && !minor")),
    *(HOST.format(test) for test in ("!minor && major == 12", "arch == kSm120", "sm == Arch::SM120", "is_sm120(dev)")),
    *(HOST.format(test) for test in ("cap == DeviceCapability{{12, 0}}", "cap == std::make_pair(12, 0)")),
    *(
        HOST.format(test)
        for test in ('name == "sm_120"', '!strcmp(arch, "sm_120a")', "set<int>{{90, 120}}.count(arch)")
    ),
    "#if defined(__CUDA_ARCH_FEAT_SM120_ALL)\n#endif\n",
    "#ifdef __CUDA_ARCH_FEAT_SM120_ALL\n#endif\n",
    "#if A\n#elif B && defined(__CUDA_ARCH_FEAT_SM120_ALL)\n#endif\n",
    "constexpr int kTarget120 = 120;\nbool b = arch == kTarget120;\n",
    "#define ONLY_ARCH 1200\n#if __CUDA_ARCH__ == ONLY_ARCH\n#endif\n",
    "enum { kArch120 = 120 };\nbool b = arch == kArch120;\n",
    "int archs[] = {80, 90, 120};\n",
    "std::map<int, F> by_arch = {{90, f}, {120, g}};\n",
    "switch (sm) { case 120: f(); }\n",
    "switch (arch) { case Arch::SM120: f(); }\n",
    "static const std::pair<int, int> sm120_cap{12, 0};\n",
]
IN_PYTHON = [
    "capability == 120",
    "120 == arch",
    "not (arch != 120)",
    "arch >= 120 and arch < 121",
    "arch <= 120",
    "121 > arch and arch >= 120",
    "arch in (90, 120)",
    "capability not in [120]",
    "(major, minor) == (12, 0)",
    "p.get_device_capability() == (12, 0)",
    "capability in {(9, 0), (12, 0)}",
    "c.major == 12 and c.minor == 0",
    "platform.is_device_capability(120)",
    "platform.is_device_capability((12, 0))",
    "cap in {(12, 0)}",
    "cap in frozenset((90, 120))",
    "DeviceCapability(major=12, minor=0) == current",
    "{90: a, 120: b}[arch]",
    "{(9, 0): a, (12, 0): b}.get(cap)",
    '{"sm90": a, "sm120": b}[name]',
    'name == "sm_120"',
    'arch in ("9.0", "12.0")',
    'name in ["sm_90a", "sm_120a"]',
    "major == 12 and not minor",
    "arch is Arch.SM120",
    "is_sm120(device)",
    "f() if is_sm120a() else g()",
    "cap[0] * 10 + cap[1] == 120",
    'f"{major}.{minor}" == "12.0"',
    "y\nSM120 = 120\nif arch == SM120:\n    f()",
    "y\nONLY_CAP = (12, 0)\nb = cap == ONLY_CAP",
    "y\nmatch arch:\n    case 120:\n        f()",
    "y\nmatch cap:\n    case (12, 0):\n        f()",
    "y\nmatch name:\n    case 'sm_120':\n        f()",
    "y\nassert arch == 120",
    "y\nARCHS = [80, 90, 120]",
]
IN_CMAKE = [
    'if(ARCH STREQUAL "120")',
    'if("12.0" IN_LIST CUDA_ARCHS)',
    "if(CUDA_ARCH EQUAL 120)",
    'if(ARCHS MATCHES "^12\\\\.0")',
    'if(X)\nelseif(A STREQUAL "sm_120a")',
]
FORMS = [
    *(("c++", text) for text in IN_CXX),
    *(("python", f"x = {test}\n") for test in IN_PYTHON),
    *(("cmake", f"{test}\nendif()\n") for test in IN_CMAKE),
]


@pytest.mark.parametrize(("language", "text"), FORMS)
def test_every_form_is_named_once(language: str, text: str) -> None:
    assert may_have(language, frozenset()).passes(text.encode())
    assert [place.because for place in places(language, set(), text)] == [BECAUSE]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        *(("c++", HOST.format(test)) for test in ("tile % 120 == 0", "head_size == 120", "is_sm120_or_sm121(arch)")),
        *(
            ("c++", f"#if {test}\n#endif\n")
            for test in ("defined(ENABLE_SM120)", "defined(F_SM120) || defined(F_SM121)")
        ),
        ("c++", "int sizes[] = {64, 80, 120};\n"),
        ("c++", "int archs[] = {90, 120, 121};\n"),
        ("python", "x = head in (64, 96, 120)\n"),
        ("python", "x = {90: a, 120: b, 121: c}[arch]\n"),
        ("python", "x = shape == (12, 0)\n"),
        ("python", "x = name in ('sm_120', 'sm_121')\n"),
        ("python", "x = any(is_family(f) for f in (90, 120))\n"),
        ("python", "match arch:\n    case 120 | 121: f()\n"),
        *(
            ("c++", HOST.format(test))
            for test in ("arch >= 120", "arch == 120 || arch == 121", "major == 12", "arch > 120")
        ),
        ("c++", "#if __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300\n#endif\n"),
        ("c++", "#define __CUDA_ARCH_SPECIFIC__ 1200\n#ifdef __CUDA_ARCH_SPECIFIC__\n#endif\n"),
        ("c++", "switch (arch) {\n  case 1200:\n    f();\n    break;\n  case 1210:\n    g();\n}\n"),
        ("c++", "#if 0\n#if __CUDA_ARCH__ == 1200\n#endif\n#endif\n"),
        ("c++", "// arch == 120\nArray<120> a;\nint x = size[120] << 121;\nswitch (head_size) { case 120: break; }\n"),
        *(
            ("python", f"x = {test}\n")
            for test in ("arch in (120, 121)", "arch >= 120", "major == 12", "head_size == 120")
        ),
        *(("python", f"x = {test}\n") for test in ("'arch == 120'", "f(120, arch)", "p.is_device_capability(121)")),
        ("python", "x = p.is_device_capability(120) or p.is_device_capability(121)\n"),
        ("cmake", "if(V VERSION_GREATER_EQUAL 12.0)\nendif()\n"),
        ("cmake", "set(A 12.0)\n"),
    ],
)
def test_what_is_about_something_else_is_not(language: str, text: str) -> None:
    assert places(language, set(), text) == []


def test_directives_and_cases_are_named() -> None:
    text = "#if defined(X) && __CUDA_ARCH__ == 1200\n#endif\nswitch (sm_version) {\n  case 90:\n  case 120: f();\n}\n"
    assert [place.line for place in places("c++", set(), text)] == [1, 5]


def test_a_gate_in_use_has_no_reason_to_remain() -> None:
    text = "struct enable_only : K {};\nusing A = enable_only<K>;\n"
    assert may_have("c++", frozenset({"enable_only"})).passes(text.encode())
    assert [(place.line, place.because) for place in places("c++", {"enable_only"}, text)] == [(2, "")]


@pytest.mark.parametrize(("language", "text"), [("python", "def ("), ("c++", "/* arch == 120")])
def test_a_text_that_cannot_be_read_is_named(language: str, text: str) -> None:
    (place,) = places(language, set(), text)
    assert "cannot be read" in place.because


TESTED = ("120", "1200", "12.0", "'12.0+PTX'", "'sm_120a'", "'SM120'", "'compute_120'", "'120a'", "(12, 0)", "{120}")
NAMES = ("is_device_sm120", "isSm120", "cap_sm120", "Arch.SM120", "DEV_SM_120", "sm120_only", "target_sm_120")
ENDS = ("\n", " \n", "  # c\n", "#c\n", "; y\n", " \\\n and y\n", " if arch else 1\n", " and y\n", " or not z\n")


@pytest.mark.parametrize("end", ENDS)
def test_whatever_follows_a_test_in_python_the_quick_look_passes_it(end: str) -> None:
    tests = [f"{begin}{value}{end}" for begin in ("x = capability == ", "x = arch!=") for value in TESTED]
    tests += [f"if {name}:\n    pass\n" for name in NAMES]
    found = [text for text in tests if places("python", set(), text)]
    assert len(found) >= len(TESTED)
    assert [text for text in found if not may_have("python", frozenset()).passes(text.encode())] == []
