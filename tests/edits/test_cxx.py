"""Tokens, directives and conditionals of C++ text, weird text included."""

import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fp4patch.edits.cxx import COMMENT, Cut, lex, read
from fp4patch.edits.cxx_edit import edited
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.refusal import Refusal

WHOLE = [
    "a",
    "_b1",
    "0x1'000",
    "1e+5",
    ".5f",
    '"s\\"t"',
    "u8'c'",
    'R"(x)y)"',
    'LR"d(\n\\\n)" )d"',
    "/* c */",
    "::",
    ">>",
]
BETWEEN = ["\\\n", "\\\r\n", "\n", "\r\n", " ", "\t", "\f", "#", "##", "//", "#if", "#endif"]
STRAY = ["'", '"', "\\", "é", "\u2028", "@", "\ufeff", "$"]
PIECES = st.sampled_from([*WHOLE, *BETWEEN, *STRAY])


def tokens(text: str) -> list[str]:
    return list(lex(text).words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a>>b", ["a", ">", ">", "b"]),
        ("x = 1'000'000u + 0x1p-3f;", ["x", "=", "1'000'000u", "+", "0x1p-3f", ";"]),
        (r'"a \" // b" L"c"', [r'"a \" // b"', 'L"c"']),
        ("'\\'' '\"' u'x'", ["'\\''", "'\"'", "u'x'"]),
        ('R"x(a)" /* )x" b', ['R"x(a)" /* )x"', "b"]),
        ("a/*x*/b//c\nd", ["a", "b", "d"]),
        ("/**/a/*/b*/", ["a"]),
        ("// comment \\\n goes on\nx", ["x"]),
        ("/\\\n/ comment\nx", ["x"]),
        ("ide\\\nnti\\\r\nfier", ["identifier"]),
        ("int $x; double naïve;", ["int", "$x", ";", "double", "naïve", ";"]),
        ("don't", ["don", "'", "t"]),
        ('"open', ['"', "open"]),
        ("\ufeffint", ["int"]),
        ("", []),
    ],
)
def test_splits_text_into_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_offsets_and_lines_are_those_of_the_text_as_it_is() -> None:
    text = "\ufeffa\r\nlo\\\r\nng /* x\ny */ b"
    a, long, b = lex(text).tokens
    assert (text[a.start : a.end], a.line) == ("a", 1)
    assert (long.text, text[long.start : long.end], long.line) == ("long", "lo\\\r\nng", 2)
    assert (text[b.start : b.end], b.line) == ("b", 4)


def test_a_raw_string_keeps_its_continuations() -> None:
    text = 'x\\\ny = R"(a\\\nb)";\nz'
    assert tokens(text) == ["xy", "=", 'R"(a\\\nb)"', ";", "z"]
    assert lex(text).tokens[-1].line == 4


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a\n/* b\n", 2, "comment"),
        ("/*/", 1, "comment"),
        ('\n\nR"x(abc)"', 3, "raw string"),
        ('R"(a)\\\n"', 1, "no end"),
    ],
)
def test_what_swallows_the_rest_of_the_file_is_an_error_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(LexError, match=message) as caught:
        lex(text)
    assert caught.value.line == line


def test_directives_are_logical_lines_that_begin_with_a_number_sign() -> None:
    source = lex("a # b\n  /* c */ # /**/ define X \\\n  1 // d\n%\n#\n#error don't\n")
    assert [(d.name, [t.text for t in d.tokens], d.line) for d in source.directives] == [
        ("define", ["X", "1"], 2),
        ("", [], 5),
        ("error", ["don", "'", "t"], 6),
    ]
    assert [t.text for t in source.tokens if t.directive < 0] == ["a", "#", "b", "%"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("\n#endif", 2), ("#else", 1), ("\n#if A\n#if B\n#endif\n", 2), ("#if A\n#else\n#else\n#endif", 3)],
)
def test_conditionals_that_do_not_pair_are_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(LexError) as caught:
        _ = lex(text).conditionals
    assert caught.value.line == line


@given(st.lists(PIECES).map("".join))
def test_tokens_comments_and_blanks_make_up_the_text(text: str) -> None:
    try:
        source = lex(text)
    except LexError:
        return
    at = 0
    for piece in source.tokens:
        assert piece.start >= at
        between = COMMENT.sub("", re.sub(r"\\[ \t]*\r?\n", "", text[at : piece.start]))
        assert not between.replace("\\", "").strip(" \t\r\n\f\u2028\ufeff"), "only blanks and continuations between"
        assert piece.line == text.count("\n", 0, piece.start) + 1
        at = piece.end
    for token in source.tokens:
        as_it_is = text[token.start : token.end]
        assert token.text in (as_it_is, as_it_is.replace("\\\r\n", "").replace("\\\n", ""))


@given(st.text())
def test_no_text_raises_anything_but_a_lex_error(text: str) -> None:
    line = 1
    try:
        _ = lex(text).conditionals
    except LexError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1


PUT = st.lists(PIECES, max_size=4).map("".join)


@settings(deadline=None, max_examples=int(os.environ.get("FP4PATCH_SPLICES", "300")))
@given(st.lists(PIECES, max_size=40).map("".join), st.data())
def test_a_result_has_the_old_tokens_and_those_of_the_cuts(text: str, data: st.DataObject) -> None:
    try:
        source = read(text)
    except LexError:
        return
    edges = sorted({0, len(text), *(t.start for t in source.tokens), *(t.end for t in source.tokens)})
    picked = sorted(data.draw(st.lists(st.sampled_from(edges), min_size=2, max_size=6)))
    cuts = [Cut(start, end, data.draw(PUT)) for start, end in zip(picked[::2], picked[1::2], strict=False)]
    expected, tokens = text, list(source.words)
    for cut in reversed(cuts):
        first, last = (sum(token.start < edge for token in source.tokens) for edge in (cut.start, cut.end))
        try:
            tokens[first:last] = read(cut.text).words
        except LexError:
            return
        expected = expected[: cut.start] + cut.text + expected[cut.end :]
    try:
        result = edited(source, cuts, 1)
    except Refusal:
        return
    assert (result.text, list(result.words)) == (expected, tokens)
    assert result == read(result.text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x+A;\n", Cut(1, 3, "b")),
        ("#define A 1\nb\n", Cut(10, 11, "2 \\")),
        ("#define A 1\n", Cut(0, 8, "")),
        ("#define A 1\n", Cut(10, 11, "2\n3")),
        ("a /b;\n/* c */\n", Cut(0, 2, "a /")),
        ("a *b;\n", Cut(0, 2, "a /")),
        ("a\n", Cut(0, 1, "(b")),
        ("a\n", Cut(0, 1, "}")),
        ("a\n", Cut(0, 1, "#if b\n")),
    ],
)
def test_a_change_that_runs_into_its_neighbours_or_pairs_no_more_is_refused(text: str, cut: Cut) -> None:
    with pytest.raises(Refusal):
        edited(read(text), [cut], 1)
