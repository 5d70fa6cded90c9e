"""Replacement of C++ tokens, in the files that contain ``about``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import Replace, Retired
from fp4patch.edits.refusal import ADDED

EDIT = Replace(
    search=("*.cu",),
    about="struct gemm",
    otherwise="no gemm here",
    within="struct gemm",
    find="only<Kernel<",
    replace="family<Kernel<",
    retired=(Retired(tokens="family<", state=State.UPSTREAMED, since="9.9", because="upstream took the family"),),
)
SOURCE = """struct other { using T = only<Kernel<1>>; };  // only<Kernel<
struct gemm {
  struct inner { int a; };
  using T = only <
      Kernel /* only */ < 2>>;
};
using U = only<Kernel<3>>;
"""


def replace_tokens(edit: Replace, text: str) -> Outcome:
    return edit.rewrite(text, lambda _name: "")


def replaced(text: str, edit: Replace = EDIT) -> str:
    outcome = replace_tokens(edit, text)
    assert isinstance(outcome, Rewritten), outcome
    return outcome.text


def test_only_the_tokens_in_that_declaration_change() -> None:
    assert replaced(SOURCE) == SOURCE.replace("only <\n      Kernel /* only */ <", "family<Kernel<")


def test_a_condition_of_the_preprocessor_is_code_too() -> None:
    edit = Replace(
        search=("*.h",), about="__CUDA_ARCH__", find="__CUDA_ARCH__ == 1200", replace="__CUDA_ARCH__ >= 1200"
    )
    text = "#if A && \\\n  __CUDA_ARCH__==1200 // == 1200\nint a;\n#endif\n"
    assert replaced(text, edit) == text.replace("__CUDA_ARCH__==1200", "__CUDA_ARCH__ >= 1200")


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("only <", "once <"),
        SOURCE.replace("int a;", "using S = only<Kernel<9>>;"),
        SOURCE.replace("int a;", "using S = family<Kernel<9>>;"),
        SOURCE + "struct gemm { };",
        "struct gemm;",
        SOURCE + "/* never closed",
        SOURCE.replace("only <\n", "only <\n#define A\n"),
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    assert isinstance(replace_tokens(EDIT, text), Drift)


def test_tokens_on_both_sides_of_a_directives_end_are_refused() -> None:
    edit = Replace(search=("*.h",), about="A", find="A B", replace="C")
    assert isinstance(replace_tokens(edit, "#define A\nB\n"), Drift)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(defined(A) ||\\\n     defined(S))", "(defined(A))"),
        ("(defined(A) || defined(S)\\\n    )", "(defined(A)\\\n    )"),
        ("(defined(A) /* a */ || /* gone */ defined(S)  )", "(defined(A)  )"),
    ],
)
def test_tokens_that_are_left_out_or_added_leave_the_layout_of_the_others(before: str, after: str) -> None:
    out = Replace(
        search=("*.h",), about="ON", find="defined(A) || defined(S)) #define ON", replace="defined(A)) #define ON"
    )
    back = replace(out, find=out.replace, replace=out.find, reversal="someone took S out")
    text = "#if {}  // why\n#  define ON 1\n#endif\n"
    assert replaced(text.format(before), out) == text.format(after)
    outcome = replace_tokens(back, text.format(after))
    assert isinstance(outcome, Rewritten)
    assert outcome.text == text.format(after.replace("defined(A)", "defined(A) || defined(S)"))
    assert (outcome.reversal, outcome.notes) == ("someone took S out", ("line 1: someone took S out; it is back",))


def test_what_was_replaced_before_is_not_replaced_again() -> None:
    edit = Replace(search=("*.h",), about="A", find="A", replace="A || B")
    assert isinstance(replace_tokens(edit, replaced("if (A) {}\n", edit)), Drift)


def test_the_change_itself_is_told_from_an_unknown_shape() -> None:
    """The change was copied from upstream by hand, or the receipt of a patched tree was lost."""
    outcome = replace_tokens(replace(EDIT, retired=()), replaced(SOURCE))
    assert isinstance(outcome, Drift)
    assert (outcome.found, outcome.line, outcome.help) == ("`family<Kernel<` in its place", 4, ADDED)


def test_a_sign_in_the_declaration_retires_the_edit_and_one_elsewhere_does_not() -> None:
    there = SOURCE.replace("only <", "family <")
    assert replace_tokens(EDIT, there) == NothingToDo(State.UPSTREAMED, "upstream took the family", "9.9")
    assert "family<Kernel< 2" in replaced(SOURCE + "using V = family<Kernel<4>>;\n")


@pytest.mark.parametrize("text", ["", "struct gemm_other { };", "// struct gemm { only<Kernel<1>> };\n"])
def test_a_file_about_something_else_is_none_of_this_edits(text: str) -> None:
    assert replace_tokens(EDIT, text) == NothingToDo(State.NOT_NEEDED, "no gemm here", elsewhere=True)


def test_the_nearest_is_told() -> None:
    outcome = replace_tokens(EDIT, SOURCE.replace("Kernel /* only */ <", "Universal<"))
    assert isinstance(outcome, Drift)
    assert (outcome.expected, outcome.found) == ("1 of `only<Kernel<` in `struct gemm`", "0")


GAP = st.sampled_from(["", " ", "\n", "\t", "/* < */", "// >\n", "\\\n"])


@given(GAP, GAP, GAP)
def test_layout_between_the_tokens_does_not_matter(one: str, two: str, three: str) -> None:
    text = f"struct gemm {{ using T ={three} only{one}<{two}Kernel{three}<1>>; }};\n"
    assert replaced(text) == f"struct gemm {{ using T ={three} family<Kernel<1>>; }};\n"


def test_refuses_a_condition_that_says_more_than_what_is_replaced() -> None:
    edit = Replace(search=("a.h",), about="A", find="defined(A)", replace="defined(B)")
    for condition in ("defined(A) && C", "!defined(A)", "C || defined(A)"):
        outcome = replace_tokens(edit, f"#if {condition}\n#endif\n")
        assert isinstance(outcome, Drift), condition
        assert "as the whole condition" in outcome.expected
    assert isinstance(replace_tokens(edit, "#if (defined(A))\n#endif\n"), Rewritten)


def test_a_dead_copy_is_no_site_and_a_dead_sign_retires_nothing() -> None:
    retired = (Retired(tokens="done", state=State.UPSTREAMED),)
    edit = Replace(search=("a.h",), about="old", find="old", replace="new", retired=retired)
    outcome = replace_tokens(edit, "#if 0\nold; done;\n#endif\nold;\n")
    assert isinstance(outcome, Rewritten)
    assert outcome.text == "#if 0\nold; done;\n#endif\nnew;\n"
