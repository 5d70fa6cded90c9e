"""The functions of C++ texts, and those that an edit touches: by their tokens, their conditions, or a macro."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fp4patch.edits.functions import WHOLE, outline, touched

TEXT = """
#pragma once
namespace lib { namespace detail {
template <class T> struct Outer<T, 2> { void f() { if (x < 2) {} } struct Inner {}; };
}
enum class Kind { A };
int const table[] = {1, 2};
template <int N>
__global__ void __launch_bounds__(512, 4) kernel(float const (&x)[N], int n = 3) { return; }
extern "C" {
static inline float plain(float x) {
#if defined(FAST)
  if (x) {
#else
  if (-x) {
#endif
  } return x; }
}
struct alignas(16) Load { float v[4]; };
auto late(int n) -> decltype(n) { return n; }
bool operator==(A a, B b) { return true; }
Class::Class(int n) : base(n), member(n) { body(); }
}
"""


def names(text: str) -> list[str]:
    return [function.name for function in outline(text).functions]


def test_each_definition_is_one_function_with_its_namespaces() -> None:
    assert names(TEXT) == [
        "lib::detail::Outer<T, 2>",
        "lib::kernel(float const(&x)[N], int n=3)",
        "lib::plain(float x)",
        "lib::Load",
        "lib::late(int n)",
        "lib::operator==(A a, B b)",
        "lib::Class::Class(int n)",
    ]


def none(_: frozenset[str]) -> Mapping[str, str]:
    return {}


def changed(old: str, new: str, text: str = TEXT) -> tuple[str, ...]:
    assert text.count(old) == 1
    return tuple(touched({"a.h": text}, {"a.h": text.replace(old, new)}, none).get("a.h", ()))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("x < 2", "x < 3", ("lib::detail::Outer<T, 2>",)),
        ("  if (-x) {", "  if (+x) {", ("lib::plain(float x)",)),
        ("defined(FAST)", "defined(SLOW)", ("lib::plain(float x)",)),
        ("512, 4", "256, 4", ("lib::kernel(float const(&x)[N], int n=3)",)),
        ("body()", "body(1)", ("lib::Class::Class(int n)",)),
        ("{1, 2}", "{1, 3}", ("a.h",)),
        ("{ A }", "{ B }", ("a.h",)),
        ("#pragma once", "#pragma once // a comment", ()),
        ("#pragma once", "#define FAST 1", ("lib::plain(float x)",)),
        ("#pragma once", "#ifdef X\n#define Y 1\n#endif", ()),
    ],
)
def test_what_differs_is_touched_and_nothing_else(old: str, new: str, expected: tuple[str, ...]) -> None:
    assert changed(old, new) == expected


GUARD = "#if defined(A) || defined(B)\n#define HAS_IT 1\n#endif\n"
USER = "#ifdef HAS_IT\n#define BY_IT\n#endif\nint f() {\n#ifdef BY_IT\n return 1;\n#endif\n}\nint g() { return 2; }\n"


def test_a_macro_on_other_conditions_touches_its_users_in_other_files_too() -> None:
    def mentioning(macros: frozenset[str]) -> Mapping[str, str]:
        return {"user.h": USER} if macros & {"HAS_IT", "BY_IT"} else {}

    found = touched({"guard.h": GUARD}, {"guard.h": GUARD.replace(" || defined(B)", "")}, mentioning)
    assert found == {"user.h": {"f()": (range(4, 9),)}}


def test_a_function_around_which_a_condition_appears_is_touched() -> None:
    found = touched({"a.h": "int f() {}"}, {"a.h": "#if X\nint f() {}\n#endif"}, none)
    assert found == {"a.h": {"f()": (range(2, 3),)}}


def test_a_function_has_the_lines_of_all_its_definitions() -> None:
    text = "#if X\nint f() {\n  return 1;\n}\n#else\ntemplate <int N>\nint\nf() { return 2; }\n#endif\n"
    found = touched({"a.h": "int f();"}, {"a.h": text}, none)
    assert found["a.h"]["f()"] == (range(2, 5), range(6, 9))


def test_a_file_that_was_not_there_counts_as_a_whole_too() -> None:
    assert touched({}, {"a.h": "int f() {}"}, none) == {"a.h": {"f()": (range(1, 2),), "a.h": WHOLE}}
