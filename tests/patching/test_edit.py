"""Edits of C++ text: what they change, what they leave, and every way in which they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.model import Drift, DropOperand, Edit, Insert, NothingToDo, Retired, Rewritten, State
from fp4patch.patching.cxx import lex, words
from fp4patch.patching.edit import fold, rewrite

DROP = DropOperand(file="f.h", defines="ON", operands=("SM_A", "SM_F"), conditions=1)
BOTH = replace(DROP, conditions=2)
ANCHOR = "template <Style Round> struct Many<e2m1, float, 2, Round> {"
ADDED = "#if !defined(ON)\nstruct One<e2m1, float> {\n  int x;\n};\n#endif\n"
INSERT = Insert(file="f.h", before=ANCHOR, template="one.cuh", absent=("struct One<e2m1, float",))


def template(name: str) -> str:
    assert name == "one.cuh"
    return ADDED


def done(edit: Edit, text: str) -> str:
    outcome = rewrite(edit, text, template)
    assert isinstance(outcome, Rewritten), outcome
    return outcome.text


def refusal(edit: Edit, text: str) -> Drift:
    outcome = rewrite(edit, text, template)
    assert isinstance(outcome, Drift), outcome
    assert outcome.help
    return outcome


def block(condition: str, directive: str = "#if") -> str:
    return f"{directive} {condition}\n#  define ON 1\n#endif\n"


# --- drop-operand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(defined(A) || defined(SM_A))", "(defined(A))"),
        ("defined A || defined SM_A", "defined A"),
        ("defined(SM_A)||defined(A)", "defined(A)"),
        ("((defined(A) || defined(SM_A) || defined(B)))", "((defined(A) || defined(B)))"),
        ("(defined(A) ||\\\n     defined(SM_A))", "(defined(A))"),
        ("(defined(A) || defined(SM_A) ||\\\n     defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(A) ||\\\n     defined(SM_A) || defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(A) ||\\\n     defined(SM_A) ||\\\n     defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(SM_A) ||\\\n     defined(A))", "(defined(A))"),
        ("(\\\n    defined(SM_A) ||\\\n    defined(A))", "(\\\n    defined(A))"),
        ("(defined(A) || defined(SM_A)\\\n    )", "(defined(A)\\\n    )"),
        ("(defined(A) ||\\\n     defined(SM_A)\\\n    )", "(defined(A)\\\n    )"),
        ("defined(A) \\\n  || defined(SM_A) \\\n  || defined(B)", "defined(A) \\\n  || defined(B)"),
        ("defined(A) \\\n  || defined(SM_A)", "defined(A)"),
        ("defined(A) /* a */ || /* gone */ defined(SM_A) /* b */", "defined(A) /* b */"),
        ("defined(SM_A) || /* a */ defined(A) // why", "/* a */ defined(A) // why"),
    ],
)  # fmt: skip
def test_an_operand_leaves_as_if_it_had_never_been_written(before: str, after: str) -> None:
    assert done(DROP, block(before)) == block(after)
    crlf = block(before).replace("\n", "\r\n")
    assert done(DROP, crlf) == block(after).replace("\n", "\r\n")


def test_each_condition_loses_its_own_operand_and_elif_counts() -> None:
    text = "#if defined(SM_A) || defined(A)\n#define ON\n#elif defined(A) || defined(SM_F)\n# define ON 1\n#endif"
    assert done(BOTH, text) == "#if defined(A)\n#define ON\n#elif defined(A)\n# define ON 1\n#endif"


def test_says_which_lines_it_touched() -> None:
    text = "\n" + block("defined(A) || defined(SM_A)") + block("defined(A) || \\\n defined(SM_F)")
    outcome = rewrite(BOTH, text, template)
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (2, 5, 6)


def test_lists_that_define_something_else_are_left_alone() -> None:
    twin = "#if defined(A) || defined(SM_A)\n#define OTHER ON\n#if 1\n#define ON\n#endif\n#endif\n"
    edited = done(DROP, twin.replace("#if 1\n#define ON\n#endif\n", "") + block("defined(A) || defined(SM_A)"))
    assert edited.startswith("#if defined(A) || defined(SM_A)\n#define OTHER ON\n#endif\n")
    assert refusal(DROP, twin).line == 3, "a nested definition belongs to the inner condition"


@pytest.mark.parametrize("edit", [DROP, BOTH])
@pytest.mark.parametrize("count", [1, 2])
def test_a_release_that_never_had_the_operand_has_nothing_to_do(edit: DropOperand, count: int) -> None:
    outcome = rewrite(edit, block("(defined(A) || defined(B))") * count, template)
    assert isinstance(outcome, NothingToDo)
    assert outcome.state is State.NOT_NEEDED
    assert "never had SM_A or SM_F" in outcome.because


@pytest.mark.parametrize(
    ("text", "found", "line"),
    [
        ("int x = ON;\n", "none", 1),
        ("int x;\n", "none", None),
        (block("defined(A) || defined(SM_A)"), "1", 1),
        (block("defined(A) || defined(SM_A)") * 3, "3", 7),
        (block("defined(A) || defined(SM_A)") + block("defined(A)"), "none of them", 4),
        (block("defined(A) || defined(SM_A) || defined(SM_F)") * 2, "SM_A, SM_F", 1),
        (block("defined(A) || defined(SM_A) || defined(SM_A)") * 2, "SM_A, SM_A", 1),
        (block("defined(SM_A)") * 2, "SM_A alone", 1),
        (block("defined(A) || \\\n defined(SM_A) && B") * 2, "`&`", 2),
        (block("!defined(SM_A)") * 2, "`!`", 1),
        (block("defined(A) || SM_A > 1") * 2, "`SM_A`", 1),
        (block("defined(A) | defined(SM_A)") * 2, "`|`", 1),
        (block("(defined(A)) || (defined(SM_A))") * 2, "`)`", 1),
        (block("defined(A) || defined(SM_A") * 2, "its end", 1),
        (block("defined(A) ||") * 2, "its end", 1),
        (block("defined(3)") * 2, "`3`", 1),
        (block("SM_A", "#ifdef") * 2, "#ifdef", 1),
        ("#if A\n#else\n#define ON\n#endif\n", "#else", 2),
        (block("defined(A) || defined(SM_B)") * 2, "SM_B", 1),
        (block("defined(A) || defined(SM_A)") * 2 + "/*", "a /* comment that never ends", 7),
        (block("defined(A) || defined(SM_A)") + "#if X\n", "#if without an #endif", 4),
    ],
)
def test_refuses_a_shape_that_it_does_not_know(text: str, found: str, line: int | None) -> None:
    drift = refusal(BOTH, text)
    assert (drift.found, drift.line) == (found, line)


def test_a_name_that_only_looks_like_the_operand_is_named_as_the_nearest() -> None:
    assert refusal(DROP, block("defined(A) || defined(SM_B)")).nearest == "SM_B"


SIGN = Retired(tokens="struct Better<int>", state=State.UPSTREAMED, since="9.1", because="it has a better one")


@pytest.mark.parametrize("edit", [DROP, INSERT])
def test_a_sign_in_the_source_retires_an_edit_before_anything_else_is_asked(edit: DropOperand | Insert) -> None:
    outcome = rewrite(replace(edit, retired=(SIGN,)), "struct\n  Better< /* */ int> {};", template)
    assert outcome == NothingToDo(State.UPSTREAMED, "it has a better one", "9.1")
    assert refusal(replace(edit, retired=(SIGN,)), "// struct Better<int>\n")


NAMES = st.lists(st.from_regex(r"[A-R][A-Z0-9_]{0,6}", fullmatch=True), min_size=1, max_size=6, unique=True)
GAP = st.sampled_from(["", " ", "  ", "\\\n", " \\\n    ", "\\\r\n\t", " /* c */ ", "\t", "/* \\\n */"])


@st.composite
def disjunctions(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    """A random condition that holds SM_A among other names, those names, and whether it stands in parentheses."""
    others = draw(NAMES)
    names = list(others)
    names.insert(draw(st.integers(0, len(others))), "SM_A")
    parts = []
    for name in names:
        bracketed = f"defined{draw(GAP)}({draw(GAP)}{name}{draw(GAP)})"
        parts.append(draw(st.sampled_from([bracketed, f"defined {name}"])))
    text = parts[0]
    for part in parts[1:]:
        text += f"{draw(GAP)}||{draw(GAP)}{part}"
    wrapped = draw(st.booleans())
    return (f"({draw(GAP)}{text}{draw(GAP)})" if wrapped else text), others, wrapped


@given(disjunctions(), st.booleans())
def test_the_other_operands_stay_in_their_order_whatever_the_layout(
    case: tuple[str, list[str], bool], crlf: bool
) -> None:
    condition, others, wrapped = case
    text = "int a;\n" + block(condition) + "int b;"
    text = re.sub("\r?\n", "\r\n", text) if crlf else text
    result = lex(done(DROP, text))
    (conditional,) = result.conditionals
    left = [token.text for token in conditional.branches[0].condition]
    assert [name for name in left if name not in ("defined", "(", ")", "|")] == others
    assert left.count("defined") == len(others)
    assert left.count("|") == 2 * (len(others) - 1)
    assert (left[0] == "(") == wrapped
    assert result.text.startswith(text[: text.index("#")])
    assert result.text.endswith(text[text.index("#  define") :])
    if crlf:
        assert "\n" not in result.text.replace("\r\n", "")


# --- insert ----------------------------------------------------------------------------------------------------------

MANY = "template <\n  Style Round\n>\nstruct Many<e2m1, float, 2, Round> {\n};\n"


@pytest.mark.parametrize(
    ("above", "gap", "attached"),
    [
        ("", "", ""),
        ("int a;\n\n", "", ""),
        ("int a;\n", "\n", ""),
        ("int a;\n\n\n", "", "/// About many.\n/// And more.\n"),
        ("int a;\n", "\n", "/// About many.\n"),
        ("int a;\n\n", "", "/* About\n   many. */\n"),
        ("int a;\n\n", "", "  /// indented\n  "),
        ("// Of something else.\n\n", "", "/// About many.\n"),
        ("int a; // of a\n", "\n", ""),
        ("int a; /* of a */\n\n", "", "// About many.\n"),
        ("//////////\n", "\n", "/// Below a rule.\n"),
        ("int a; ", "\n\n", ""),
        ("\ufeff", "", "/// First thing in the file.\n"),
    ],
)
def test_stands_before_the_declaration_and_its_comment_set_off_by_blank_lines(
    above: str, gap: str, attached: str
) -> None:
    assert done(INSERT, above + attached + MANY) == above + gap + ADDED + "\n" + attached + MANY


def test_takes_the_newlines_of_the_file_and_leaves_the_rest_to_the_byte() -> None:
    before = ("int a;\n\n" + MANY).replace("\n", "\r\n").removesuffix("\r\n") + " // odd\nend"
    after = done(INSERT, before)
    assert after == before.replace("template", (ADDED + "\n").replace("\n", "\r\n") + "template", 1)


def test_says_at_which_line_it_went_in() -> None:
    outcome = rewrite(INSERT, "int a;\n\n/// About.\n" + MANY, template)
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (3,)


def test_an_include_guard_is_no_condition() -> None:
    guarded = "#ifndef F_H\n#define F_H\n\n" + MANY + "#endif"
    assert words(ADDED)[0] in words(done(INSERT, guarded))


def test_comments_and_strings_and_macros_are_no_anchor() -> None:
    twins = f'// {ANCHOR}\nauto s = R"({ANCHOR})";\n#define M {ANCHOR}\n\n'
    assert done(INSERT, twins + MANY) == twins + ADDED + "\n" + MANY


@pytest.mark.parametrize(
    ("text", "found", "line", "nearest"),
    [
        ("int a;\n", "0", None, ""),
        (MANY.replace("2,", "4,"), "0", 4, "`4` where `2` was expected"),
        (MANY + MANY, "2", 6, ""),
        ("#if X\n" + MANY + "#endif\n", "one inside the #if of line 1", 2, ""),
        ("#ifdef X\n#else\n" + MANY + "#endif\n", "one inside the #ifdef of line 1", 3, ""),
        (MANY.replace("struct", "#if X\nstruct") + "#endif\n", "0", 4, "`#` where `struct` was expected"),
        ("struct One < e2m1,\n  float, R> {};\n" + MANY, "a specialization of that shape, there already", 1, ""),
        ("\n\n/* " + MANY, "a /* comment that never ends", 3, ""),
        ("#define M \\\n" + MANY, "0", None, ""),
    ],
)
def test_refuses_where_the_place_is_not_as_it_must_be(text: str, found: str, line: int | None, nearest: str) -> None:
    drift = refusal(INSERT, text)
    assert (drift.found, drift.line or None, drift.nearest) == (found, line, nearest)


def test_a_continuation_on_the_line_before_does_not_swallow_what_it_adds() -> None:
    assert done(INSERT, "int a; \\\n" + MANY) == "int a; \\\n\n" + ADDED + "\n" + MANY


@pytest.mark.parametrize("broken", ["#if X\nint a;\n", "int a;\n#endif\n"])
def test_refuses_a_result_that_would_not_read_as_intended(broken: str) -> None:
    outcome = rewrite(INSERT, "\n" + MANY, lambda _: broken)
    assert isinstance(outcome, Drift)
    assert (outcome.found, outcome.line) == ("one that reads otherwise", 2)


def test_a_second_insert_is_refused() -> None:
    assert refusal(INSERT, done(INSERT, MANY)).line == 2


LAYOUT = st.sampled_from([" ", "\n", "\r\n", "\n\n", " /* x */ ", " // y\n", "\n/// z\n", "\t", " \\\n "])


@given(st.data())
def test_however_the_file_is_laid_out_the_same_tokens_come_of_it(data: st.DataObject) -> None:
    def laid_out(text: str) -> str:
        return "".join(token + data.draw(LAYOUT) for token in words(text))

    text = laid_out("namespace n { int a;") + laid_out(MANY) + laid_out("}")
    result = done(INSERT, text)
    assert words(result) == words("namespace n { int a;" + ADDED + MANY + "}")
    assert refusal(INSERT, result).found == "a specialization of that shape, there already"


# --- fold ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    edit: Edit
    template: Callable[[str], str] = field(default=template)
    options: Mapping[str, str] = field(default_factory=dict)


def test_later_edits_see_what_earlier_ones_made() -> None:
    added = replace(INSERT, template="guard.h", absent=())
    guard = block("defined(A) || defined(SM_A)")
    result = fold(MANY, [Step(added, lambda _: guard), Step(DROP)])
    assert result.text == block("defined(A)") + "\n" + MANY
    assert [type(outcome) for outcome in result.outcomes] == [Rewritten, Rewritten]
    assert result.drifts == ()


def test_every_edit_is_tried_so_that_every_refusal_is_known() -> None:
    text = block("defined(A) || defined(SM_A)")
    result = fold(text, [Step(INSERT), Step(DROP), Step(BOTH)])
    assert [type(outcome) for outcome in result.outcomes] == [Drift, Rewritten, NothingToDo]
    assert len(result.drifts) == 1
    assert result.text == block("defined(A)")


def test_the_fold_of_nothing_is_the_text() -> None:
    assert fold("any\r\ntext", []).text == "any\r\ntext"
