"""The edit `insert`: where the template goes, and every way in which it refuses."""

import pytest
from cxx_edits import ADDED, ANCHOR, INSERT, MANY, done, refusal, rewritten
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.results import Drift
from fp4patch.cxx.tokens import words


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
    _, outcome = rewritten(INSERT, "\n" + MANY, lambda _: broken)
    assert isinstance(outcome, Drift)
    assert (outcome.found, outcome.line) == ("one that reads otherwise: conditionals that do not pair", 2)


LAYOUT = st.sampled_from([" ", "\n", "\r\n", "\n\n", " /* x */ ", " // y\n", "\n/// z\n", "\t", " \\\n "])


@given(st.data())
def test_however_the_file_is_laid_out_the_same_tokens_come_of_it(data: st.DataObject) -> None:
    def laid_out(text: str) -> str:
        return "".join(token + data.draw(LAYOUT) for token in words(text))

    text = laid_out("namespace n { int a;") + laid_out(MANY) + laid_out("}")
    result = done(INSERT, text)
    assert words(result) == words("namespace n { int a;" + ADDED + MANY + "}")
    assert refusal(INSERT, result).found == "a specialization of that shape, there already"


@pytest.mark.parametrize("above", ["template <int N>\n", "[[deprecated]]\n", "int a\n", "int a = 1,\n"])
def test_a_declaration_that_another_one_goes_on_to_is_refused(above: str) -> None:
    assert refusal(INSERT, above + MANY).line == 1
