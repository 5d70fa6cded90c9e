"""Replacement of code in C++, Python and CMake: what is a place, what is refused, and what stays as it was."""

import ast
import re
from dataclasses import replace

import pytest
from cxx_edits import rewritten
from hypothesis import example, given
from hypothesis import strategies as st

from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten, State
from fp4patch.edits import Replace, Retired
from fp4patch.edits.refusal import ADDED

CXX = Replace(
    search=("*.cu",),
    otherwise="no gemm here",
    within="struct gemm",
    find="only<Kernel<",
    replace="family<Kernel<",
    retired=(Retired(tokens="family<", since="9.9"),),
)
CXX_SOURCE = """struct other { using T = only<Kernel<1>>; };  // only<Kernel<
struct gemm {
  struct inner { int a; };
  using T = only <
      Kernel /* only */ < 2>>;
};
using U = only<Kernel<3>>;
"""
PYTHON = Replace(
    search=("*.py",),
    about="capable",
    otherwise="nothing here asks for a capability",
    within="check",
    find="capable(120)",
    replace="(capable(120) or capable(121))",
    retired=(Retired(tokens="family(120)", since="9.9"),),
)
PYTHON_SOURCE = """# capable(120)
def check(a):
    '''capable(120)'''
    if not  capable( 120 ) : # why
        return  f"{a!r}"   ;  pass
    return 1
"""
CMAKE = Replace(
    search=("*.cmake",),
    about="set(KIND",
    otherwise="no KIND here",
    find=r'elseif(ARCHS MATCHES "12\\.0a")',
    replace=r'elseif(ARCHS MATCHES "12\\.[01][af]")',
    retired=(Retired(tokens="elseif(SM12X)", since="9.9"),),
)
CMAKE_SOURCE = 'if(A)\nelseif( ARCHS  MATCHES # why\n  "12\\\\.0a" )\n  set(KIND 120)\nendif()\n'
ADDING = Replace(
    search=("*.cmake",),
    within="intersect",
    otherwise="no intersect() here",
    find="set(_FOUND)",
    replace="set(_FOUND)\n  added()\n",
    retired=(Retired(tokens="keep(SUFFIX)", since="9.9", beside=True),),
)
FUNCTION = "set(_FOUND)\nfunction(intersect A)\n  set(_FOUND) # none yet\n  more()\nendfunction()\nset(_FOUND)\n"

EDITS = {
    CXX: (CXX_SOURCE, CXX_SOURCE.replace("only <\n      Kernel /* only */ <", "family<Kernel<")),
    PYTHON: (PYTHON_SOURCE, PYTHON_SOURCE.replace("capable( 120 )", "(capable(120) or capable(121))")),
    CMAKE: (CMAKE_SOURCE, CMAKE_SOURCE.replace("12\\\\.0a", "12\\\\.[01][af]")),
    ADDING: (FUNCTION, FUNCTION.replace("none yet\n", "none yet\n  added()\n")),
}
WIDER = Replace(
    search=("*.cu",), about="arch", find="arch == 120", replace="arch == 120 || arch == 121", otherwise="no arch"
)
SPLIT = Replace(search=("*.cmake",), about="f", find='f(OUT 12.0f "${X}")', replace='f(OUT 12.1a;12.0f "${X}")')


def rewrite(edit: Replace, text: str) -> Outcome:
    return rewritten(edit, text, lambda _name: "")[1]


def replaced(text: str, edit: Replace) -> str:
    made, outcome = rewritten(edit, text, lambda _name: "")
    assert isinstance(outcome, Rewritten), outcome
    return made


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_nothing_but_the_code_changes(edit: Replace, mark: str, newline: str, end: str) -> None:
    before, after = (mark + (text.removesuffix("\n") + end).replace("\n", newline) for text in EDITS[edit])
    assert replaced(before, edit) == after


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_replaced_before_is_not_replaced_again(edit: Replace) -> None:
    """The change was copied from upstream by hand, or the receipt of a patched tree was lost."""
    outcome = rewrite(replace(edit, retired=()), EDITS[edit][1])
    assert isinstance(outcome, Drift)
    assert outcome.help == ADDED


@pytest.mark.parametrize(
    ("edit", "text", "beside"),
    [
        (CXX, CXX_SOURCE.replace("only <", "family <"), "using V = family<Kernel<4>>;\n"),
        (PYTHON, PYTHON_SOURCE.replace("capable( 120 )", "capable(89) or family(120)"), "x = family(120)\n"),
        (CMAKE, "if(A)\nelseif(SM12X)\nset(KIND 1)\nendif()\n", "# elseif(SM12X)\n"),
        (ADDING, FUNCTION.replace("more()", "KEEP(SUFFIX)"), "keep(SUFFIX)\n"),
    ],
)
def test_a_sign_retires_the_edit_and_one_elsewhere_does_not(edit: Replace, text: str, beside: str) -> None:
    assert rewrite(edit, text) == NothingToDo(State.UPSTREAMED, "upstream has made this change", "9.9")
    before, after = EDITS[edit]
    assert replaced(before + beside, edit) == after + beside


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        *((CXX, text) for text in ("", "struct gemm_other { };", "// struct gemm { only<Kernel<1>> };\n")),
        *(
            (PYTHON, text)
            for text in ("", "def other():\n    capable(120)\n", "def check():\n    '''capable(120)'''\n")
        ),
        (PYTHON, "def check():\n    return 'capable'\n"),
        (CMAKE, 'elseif(ARCHS MATCHES "12\\\\.0a")'),
        (ADDING, "set(_FOUND)\n"),
    ],
)
def test_a_file_about_something_else_is_none_of_this_edits(edit: Replace, text: str) -> None:
    assert rewrite(edit, text) == NothingToDo(State.NOT_NEEDED, edit.otherwise, elsewhere=True)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (CXX, CXX_SOURCE.replace("only <", "once <")),
        (CXX, CXX_SOURCE.replace("int a;", "using S = only<Kernel<9>>;")),
        (CXX, CXX_SOURCE.replace("int a;", "using S = family<Kernel<9>>;")),
        (CXX, CXX_SOURCE + "struct gemm { };"),
        (CXX, "struct gemm;"),
        (CXX, CXX_SOURCE + "/* never closed"),
        (CXX, CXX_SOURCE.replace("only <\n", "only <\n#define A\n")),
        (Replace(search=("*.h",), about="A", find="A B", replace="C"), "#define A\nB\n"),
        (PYTHON, PYTHON_SOURCE.replace("capable( 120 )", "capable(12)")),
        (PYTHON, PYTHON_SOURCE.replace("capable( 120 )", "capable(120, device=0)")),
        (PYTHON, PYTHON_SOURCE.replace("capable( 120 )", "p.capable(120)")),
        (PYTHON, PYTHON_SOURCE.replace("1\n", "capable(120)\n")),
        (PYTHON, PYTHON_SOURCE.replace("1\n", "family(120)\n")),
        (PYTHON, "def check(:\n    capable(120)\n"),
        (PYTHON, "def check():\n    from capable import x\n"),
        (CMAKE, CMAKE_SOURCE * 2),
        (CMAKE, "if(A)\nelseif(SM12X)\nset(KIND 1)\nendif()\n" + CMAKE_SOURCE),
        (ADDING, FUNCTION.replace("none yet", "none yet\n  set(_FOUND)")),
        (ADDING, FUNCTION.replace("  set(_FOUND)", "  set(_FOUND 1)")),
        (ADDING, FUNCTION.replace(" # none yet\n", " ")),
        (ADDING, FUNCTION * 2),
        (ADDING, FUNCTION.replace("endfunction()", "")),
    ],
)
def test_what_is_not_understood_is_refused(edit: Replace, text: str) -> None:
    assert isinstance(rewrite(edit, text), Drift)


def test_the_nearest_is_told() -> None:
    outcome = rewrite(CXX, CXX_SOURCE.replace("Kernel /* only */ <", "Universal<"))
    assert isinstance(outcome, Drift)
    assert (outcome.expected, outcome.found) == ("1 of `only<Kernel<` in `struct gemm`", "0")
    outcome = rewrite(CMAKE, CMAKE_SOURCE.replace("0a", "0b"))
    assert isinstance(outcome, Drift)
    assert (outcome.found, outcome.line) == ("0", 2)
    assert "12\\\\.0b" in outcome.nearest


# --- C++ -------------------------------------------------------------------------------------------------------------


def test_a_condition_of_the_preprocessor_is_code_too() -> None:
    edit = Replace(
        search=("*.h",), about="__CUDA_ARCH__", find="__CUDA_ARCH__ == 1200", replace="__CUDA_ARCH__ >= 1200"
    )
    text = "#if A && \\\n  __CUDA_ARCH__==1200 // == 1200\nint a;\n#endif\n"
    assert replaced(text, edit) == text.replace("__CUDA_ARCH__==1200", "__CUDA_ARCH__ >= 1200")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(defined(A) ||\\\n     defined(S))", "(defined(A))"),
        ("(defined(A) || defined(S)\\\n    )", "(defined(A)\\\n    )"),
        ("(defined(A) /* a */ || /* gone */ defined(S)  )", "(defined(A)  )"),
    ],
)
def test_tokens_that_are_left_out_or_added_leave_the_layout_of_the_others(before: str, after: str) -> None:
    find, new = "defined(A) || defined(S)) #define ON", "defined(A)) #define ON"
    out = Replace(search=("*.h",), about="ON", find=find, replace=new)
    back = replace(out, find=out.replace, replace=out.find, reversal="someone took S out")
    text = "#if {}  // why\n#  define ON 1\n#endif\n"
    assert replaced(text.format(before), out) == text.format(after)
    made, outcome = rewritten(back, text.format(after), lambda _name: "")
    assert isinstance(outcome, Rewritten)
    assert made == text.format(after.replace("defined(A)", "defined(A) || defined(S)"))
    assert outcome.reversal == "someone took S out"


def test_refuses_a_condition_that_says_more_than_what_is_replaced() -> None:
    edit = Replace(search=("a.h",), about="A", find="defined(A)", replace="defined(B)")
    for condition in ("defined(A) && C", "!defined(A)", "C || defined(A)"):
        outcome = rewrite(edit, f"#if {condition}\n#endif\n")
        assert isinstance(outcome, Drift), condition
        assert "as the whole condition" in outcome.expected
    assert isinstance(rewrite(edit, "#if (defined(A))\n#endif\n"), Rewritten)


def test_a_dead_copy_is_no_site_and_a_dead_sign_retires_nothing() -> None:
    edit = Replace(search=("a.h",), about="old", find="old", replace="new", retired=(Retired(tokens="done"),))
    assert replaced("#if 0\nold; done;\n#endif\nold;\n", edit) == "#if 0\nold; done;\n#endif\nnew;\n"


# --- Python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        "capable( 120, )",
        "capable(\n        120  # RTX\n    )",
        "(capable(120))",
        "(\n  capable(120)\n)",
        "capable(0x78)",
    ],
)
def test_layout_of_an_expression_does_not_matter(written: str) -> None:
    found = ast.parse(replaced(f"def check():\n    return not {written}\n", PYTHON)).body[0]
    expected = ast.parse("def check():\n    return not (capable(120) or capable(121))\n").body[0]
    assert ast.dump(found) == ast.dump(expected)


BLANK = st.text(" \t", max_size=3)
COMMENT = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8).map(lambda text: f"#{text}")


@example("", "", "#\\", 0)  # LibCST alone loses the last newline here
@given(BLANK, BLANK, COMMENT, st.integers(0, 4))
def test_whatever_stands_around_an_expression_stays(before: str, behind: str, comment: str, lines: int) -> None:
    text = (
        "\n" * lines
        + f"def check( a ,b ) :{behind}{comment}\n  x = [a,{before}capable(120){behind},b]{before}{comment}\n"
    )
    assert replaced(text, PYTHON) == text.replace("capable(120)", PYTHON.replace, 1 + comment.count("capable(120)"))


@pytest.mark.parametrize(
    "written", ["f'{capable(120)}'", "f'''\n{ capable( 120 ) !r:>{1}}'''", 'f"é{x}" f"{capable(120)}"']
)
def test_an_expression_in_an_f_string_is_one_too(written: str) -> None:
    text = f"def check():\n    return {written}, 'é', capable(120)\n"
    expected = re.sub(r"capable\( ?120 ?\)", PYTHON.replace, text)
    assert replaced(text, replace(PYTHON, count=2)) == expected


def test_a_place_behind_wide_characters_and_old_newlines_is_found() -> None:
    text = "def check():\r  x = 'äß\U0001f600'; return capable(120)\r\n"
    assert replaced(text, PYTHON) == text.replace("capable(120)", PYTHON.replace)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        *(
            (WIDER, f"bool f = {text};\n")
            for text in ("!arch == 120", "arch == 120 && x", "x ^ arch == 120", "(y) == arch == 120", "arch == 120 | 1")
        ),
        (WIDER, "#define F !arch == 120\n"),
        (SPLIT, 'f(OUT 12.0f "${X}")\n'),
    ],
)
def test_a_place_that_would_read_otherwise_is_refused(edit: Replace, text: str) -> None:
    outcome = rewrite(edit, text)
    assert isinstance(outcome, Drift)
    assert (outcome.line, bool(outcome.help)) == (1, True)


@pytest.mark.parametrize(
    "around", ["f({})", "x || {}", "{} || x", "x ? {} : y", "a[{}]", "({}) && y", "x, {}, y", "y = {}"]
)
def test_a_looser_operator_is_put_where_it_has_its_operands(around: str) -> None:
    text = "bool f = " + around.format("arch == 120") + ";\n"
    assert replaced(text, WIDER) == text.replace("arch == 120", WIDER.replace)
