"""Tests for exactly SM120 that no edit is for, in both languages."""

from __future__ import annotations

import pytest

from fp4patch.edits.exact_tests import BECAUSE, may_have, places

HOST = "void f(const Device& props, int arch) {{\n  if ({}) g();\n}}\n"
CAPABILITY = "(major * 10 + minor)"


@pytest.mark.parametrize(
    "test",
    [
        *("arch == 120", "1200 == arch", "!(arch != (120))", "arch <= 120", "arch < 121", "121 > arch", "120 >= arch"),
        *(f"{CAPABILITY} == 120", "props.major == 12 && props.minor == 0", "props.minor == 0 && props.major == 12"),
        *("12 == major && 0 == minor", "props.major == 12 && props.minor < 1", "major == 12 && !minor"),
    ],
)
def test_cxx_that_takes_sm120_alone_is_named(test: str) -> None:
    text = HOST.format(test)
    assert may_have("c++", set())(text.encode())
    assert [(place.line, place.because) for place in places("c++", set(), text)] == [(2, BECAUSE)]


@pytest.mark.parametrize(
    "text",
    [
        *(HOST.format(test) for test in ("arch >= 120", "arch == 120 || arch == 121", "major == 12", "arch > 120")),
        "#if __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300\n#endif\n",
        "#if 0\n#if __CUDA_ARCH__ == 1200\n#endif\n#endif\n",
        "// arch == 120\nArray<120> a;\nint x = size[120] << 121;\nswitch (head_size) { case 120: break; }\n",
    ],
)
def test_cxx_that_sm121_passes_too_is_not(text: str) -> None:
    assert places("c++", set(), text) == []


def test_directives_and_cases_are_named() -> None:
    text = "#if defined(X) && __CUDA_ARCH__ == 1200\n#endif\nswitch (sm_version) {\n  case 90:\n  case 120: f();\n}\n"
    assert [place.line for place in places("c++", set(), text)] == [1, 5]


def test_a_gate_in_use_has_no_reason_to_remain() -> None:
    text = "struct enable_only : K {};\nusing A = enable_only<K>;\n"
    assert may_have("c++", {"enable_only"})(text.encode())
    assert [(place.line, place.because) for place in places("c++", {"enable_only"}, text)] == [(2, "")]


@pytest.mark.parametrize(
    "test",
    [
        *("capability == 120", "120 == arch", "not (arch != 120)", "arch >= 120 and arch < 121", "arch <= 120"),
        *("121 > arch and arch >= 120", "arch in (90, 120)", "capability not in [120]", "(major, minor) == (12, 0)"),
        *("p.get_device_capability() == (12, 0)", "capability in {(9, 0), (12, 0)}", "c.major == 12 and c.minor == 0"),
        *("platform.is_device_capability(120)", "platform.is_device_capability((12, 0))"),
    ],
)
def test_python_that_takes_sm120_alone_is_named(test: str) -> None:
    text = f"def f():\n    return {test}\n"
    assert may_have("python", set())(text.encode())
    assert [(place.line, place.because) for place in places("python", set(), text)] == [(2, BECAUSE)]


@pytest.mark.parametrize(
    "test",
    [
        *("arch in (120, 121)", "arch >= 120", "major == 12", "head_size == 120", "'arch == 120'", "f(120, arch)"),
        "p.is_device_capability(120) or p.is_device_capability(121)",
    ],
)
def test_python_that_sm121_passes_too_is_not(test: str) -> None:
    assert places("python", set(), f"def f():\n    return {test}\n") == []


@pytest.mark.parametrize(("language", "text"), [("python", "def ("), ("c++", "/* arch == 120")])
def test_a_text_that_cannot_be_read_is_named(language: str, text: str) -> None:
    (place,) = places(language, set(), text)
    assert "cannot be read" in place.because
