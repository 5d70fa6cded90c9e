"""Changed lines, and those of which no probe's code was judged."""

from collections.abc import Collection, Mapping
from random import Random

import pytest

from fp4patch.core.arch import Arch
from fp4patch.proof.coverage import (
    LEFT_OUT,
    NO_CODE,
    NOT_READ,
    NOT_RUN,
    Coverage,
    changed_lines,
    coverage,
    coverage_of,
    lines_of_each,
)
from fp4patch.proof.source_lines import SourceLines

A, F = Arch.parse("sm_121a"), Arch.parse("sm_121")
BEFORE = """\
struct T {
  int member;
  int first() {
    return 1;
  }
  int second() {
    return 2;
  }
};
#if A
int third() { return 3; }
#endif
"""
FIRST, SECOND = (4, "return 1;"), (7, "return 2;")
ALL = [1, 2, 3, 4, 6, 7, 11]


def after(*lines: int) -> str:
    """Change some lines of the text."""
    return "\n".join(
        text.replace("int", "long").replace("return", "return 7 +").replace("#if", "#if !") if number in lines else text
        for number, text in enumerate(BEFORE.split("\n"), 1)
    )


def judged(
    text: str,
    code: Mapping[Arch, Collection[int]],
    read: Mapping[Arch, Collection[int]] | None = None,
    *,
    without: Collection[Arch] = (),
    before: str = BEFORE,
) -> Coverage:
    """Coverage of a changed file by a probe with code of some lines on each target; ``without``: not judged there."""
    made = {
        ("p", arch): SourceLines({"a.h": sorted((read or {}).get(arch, ALL))}, {"probe": {"a.h": sorted(lines)}})
        for arch, lines in code.items()
    }
    names = [at for at in made if at[1] not in without]
    return coverage({"a.h": before.encode()}, {"a.h": text.encode()}, made, names, {})


def places(of: Coverage) -> list[tuple[str, str]]:
    return [(f"{span.file}:{span.lines}", span.because) for span in of.unjudged]


def test_a_line_is_judged_where_a_kernel_has_an_instruction_of_it() -> None:
    found = judged(after(4, 7), {A: [4, 7], F: [4, 7]})
    assert (found.lines, found.unjudged) == (2, ())


def test_a_function_that_no_probe_calls_is_not_judged_whatever_else_its_file_holds() -> None:
    assert places(judged(after(4, 7), {A: [4], F: [4]})) == [("a.h:7", NO_CODE)]


def test_code_that_no_check_looked_at_judges_nothing() -> None:
    assert places(judged(after(4), {A: [4]}, without=[A])) == [("a.h:4", NOT_RUN)]


def test_a_line_without_code_on_one_target_may_be_judged_on_another() -> None:
    assert judged(after(4), {A: [4], F: []}).unjudged == ()


def test_a_file_that_no_probe_reads_is_not_judged() -> None:
    found = judged(after(4, 7), {})
    assert places(found) == [("a.h:4", NOT_READ), ("a.h:7", NOT_READ)]


def test_a_line_that_is_compiled_for_no_target_is_named_and_no_failure() -> None:
    found = judged(after(11), {A: [4], F: [4]}, {A: [1, 4], F: [1, 4]})
    assert places(found) == [("a.h:11", LEFT_OUT)]


def test_a_constant_condition_is_judged_with_the_code_of_its_block_and_its_block_alone() -> None:
    old = "void f() {\n  if constexpr (x) {\n    g();\n  } else {\n    h();\n  }\n}\n"
    new = old.replace("(x)", "(true || x)")
    every = range(1, 8)
    assert places(judged(new, {A: [3]}, {A: every}, before=old)) == []
    assert places(judged(new, {A: [5]}, {A: every}, before=old)) == [("a.h:2", NO_CODE)]
    assert places(judged(new.replace("g()", "i()"), {A: [2]}, {A: every}, before=old)) == [("a.h:3", NO_CODE)]
    assert places(judged(old.replace("h()", "i()"), {A: [2, 3]}, {A: every}, before=old)) == [("a.h:5", NO_CODE)]


def test_declarations_and_directives_count_where_they_are_read() -> None:
    assert judged(after(2, 3, 10), {A: []}).unjudged == ()
    assert places(judged(after(2, 10), {A: []}, without=[A])) == [("a.h:2", NOT_RUN), ("a.h:10", NOT_RUN)]


def test_neighbouring_lines_are_judged_together_but_not_across_functions() -> None:
    new = "int f() {\n  const int a = 1;\n  return a;\n}\nint g() { return 3; }\n"
    found = judged(new, {A: [3]}, {A: range(1, 6)}, before="")
    assert places(found) == [("a.h:5", NO_CODE)]


def test_a_branch_of_a_template_that_no_probe_instantiates_is_named() -> None:
    new = """\
template <int N> int f(int a) {
  int const b = a + 1;
  if constexpr (N == 1) {
    return b;
  } else if constexpr (N == 2) {
    if constexpr (sizeof(int) == 8) {
      return 8;
    }
    return 2 * b;
  } else {
    return N * b;
  }
}
"""
    every = range(1, 14)
    assert places(judged(new, {A: [2, 9]}, {A: every}, before="")) == [
        ("a.h:4", NO_CODE),
        ("a.h:7", NO_CODE),
        ("a.h:11", NO_CODE),
    ]
    assert places(judged(new, {A: [4, 7, 11]}, {A: every}, before="")) == []


@pytest.mark.parametrize("condition", ["N == 1", "1 == N && sizeof(T) == kOne", "(N > 0) && N < 2"])
def test_a_branch_that_parameters_of_a_template_select_is_named(condition: str) -> None:
    new = f"""\
template <class T, int N = 4> struct A {{
  T f(T a) {{
    if ({condition}) {{
      return 7;
    }}
    if ({condition}) return 8;
    return a + N;
  }}
}};
"""
    every = range(1, 10)
    assert places(judged(new, {A: [7]}, {A: every}, before="")) == [("a.h:4", NO_CODE), ("a.h:6", NO_CODE)]
    assert places(judged(new, {A: [4, 6, 7]}, {A: every}, before="")) == []


@pytest.mark.parametrize(
    "line",
    [
        "return N == 1 ? a : b;",
        "int c = f(a, (N > kOne) ? a : b);",
        "a = std::is_same_v<T, float> ? b : traits<T>::value ? a : b;",
        "if constexpr (N == 1) return a; else return b;",
        "if (!(sizeof(T) == 4)) { b(); } else { a(); }",
    ],
)
def test_what_parameters_of_a_template_choose_in_one_line_is_named(line: str) -> None:
    new = f"template <class T, int N = 4> int f(T a, T b) {{\n  a++;\n  {line}\n}}\n"
    assert places(judged(new, {A: [2, 3]}, {A: range(1, 5)}, before="")) == [("a.h:3", NO_CODE)]


@pytest.mark.parametrize(
    "line",
    [
        "return a == N ? a : b;",
        "return a < N ? a : b;",
        "return f(N) ? a : b;",
        "return N == 1 && a ? a : b;",
        "if (a < N) return a; else return b;",
        "if (N == 1) return a;",
        "return a >= N ? a : b;",
    ],
)
def test_what_is_chosen_when_the_code_runs_is_judged(line: str) -> None:
    new = f"template <class T, int N = 4> int f(T a, T b) {{\n  a++;\n  {line}\n}}\n"
    assert places(judged(new, {A: [2, 3]}, {A: range(1, 5)}, before="")) == []


def test_the_neighbours_of_removed_lines_count() -> None:
    assert changed_lines("a\nb\nc\nd\n", "a\nd\n") == {1, 2}
    assert changed_lines("a\nb\n", "a\nx\nb\n") == {2}
    assert changed_lines("a\n", "a\n") == set()


@pytest.mark.parametrize("text", ["// a comment", "", "  }", "/* of two\n lines */"])
def test_what_has_no_code_needs_no_check(text: str) -> None:
    assert judged(f"{BEFORE}{text}\n", {}).lines == 0


def test_a_text_that_is_not_understood_is_not_judged() -> None:
    assert places(judged(f"{BEFORE}/* open\n", {A: [13]}, {A: [13]})) == [("a.h:13", NO_CODE)]


def test_an_evaluated_line_is_judged_without_code() -> None:
    found = coverage({"a.py": b"a = 1\n"}, {"a.py": b"a = 2\nb = 3\n"}, {}, (), {"a.py": [range(1, 2)]})
    assert places(found) == [("a.py:2", NOT_READ)]


def test_lines_that_do_not_count_were_there_before_in_the_same_order() -> None:
    random = Random(5)
    for _ in range(500):
        old = [f"{random.choice('abc')}{at // 4}" for at in range(random.randrange(300))]
        new = [*old]
        for _ in range(4):
            at = random.randrange(len(new) + 1)
            new[at : at + random.randrange(3)] = random.choices("abcd", k=random.randrange(4))
        changed = changed_lines("\n".join(old), "\n".join(new))
        assert len(changed) <= 4 * (3 + 2)
        before = iter("\n".join(old).split("\n"))
        assert all(line in before for number, line in enumerate("\n".join(new).split("\n"), 1) if number not in changed)


def test_each_line_is_of_the_change_that_brought_it_last() -> None:
    pristine = {"a.h": b"one\ntwo\nthree\n", "gone.h": b"x\n", "same.h": b"s\n"}
    states: dict[str, dict[str, bytes | None]] = {
        "first": {"a.h": b"one\n1\ntwo\n2\nthree\n", "new.h": b"n\n"},
        "second": {"a.h": b"one\n1\n1b\ntwo\nthree\n", "new.h": b"n\nm\n", "gone.h": None},
    }
    written: dict[str, bytes | None] = {"a.h": b"one\n1\nours\ntwo\nthree\n", "new.h": b"n\nm\n", "gone.h": None}
    assert lines_of_each(pristine, states, written) == {
        "first": {"a.h": {2}, "new.h": {1}},
        "second": {"new.h": {2}},
    }


def test_lines_of_one_change_are_covered_as_those_of_all() -> None:
    before, after = {"a.py": b"a\nb\n"}, {"a.py": b"a\nc\nd\n"}
    whole = coverage(before, after, {}, (), {"a.py": [range(3, 4)]})
    part = coverage_of({"a.py": {2, 3}}, after, {}, (), {"a.py": [range(3, 4)]})
    assert whole == part
    assert [(span.first, span.last) for span in part.unjudged] == [(2, 2)]


def test_an_if_constexpr_of_one_line_is_judged_by_itself() -> None:
    new = (
        "template <int Round> int f(int x) {\n"
        "  x = g(x);\n"
        "  if constexpr (Round == 1) return h(x);\n"
        "  if constexpr (Round == 2) { return i(x); }\n"
        "  return x;\n}\n"
    )
    every = range(1, 7)
    found = places(judged(new, {A: [2, 5]}, {A: every}, before=""))
    assert found == [("a.h:3-4", NO_CODE)]
    assert places(judged(new, {A: [2, 3, 5]}, {A: every}, before="")) == [("a.h:4", NO_CODE)]


def test_the_numbers_of_lines_add_up() -> None:
    found = judged(after(4, 7), {A: [4], F: [4]})
    assert found.judged + sum(map(len, found.unjudged)) == found.lines == 2
