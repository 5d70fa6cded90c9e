"""Tokens, directives and conditionals of C++ text, weird text included."""

import re

import pytest
from cxx_pieces import PIECES
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.lex_error import LexError
from fp4patch.cxx.text import COMMENT
from fp4patch.cxx.tokens import lex


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a[::b<:1:>]", ("a", "[", ":", ":", "b", "[", "1", "]", "]")),
        ("x<::y>", ("x", "<", ":", ":", "y", ">")),
        ("enable_if_t<b::>>", ("enable_if_t", "<", "b", ":", ":", ">", ">")),  # `::` and `>>`, not `:` and `:>`
    ],
)
def test_two_colons_are_one_mark_before_a_digraph(text: str, words: tuple[str, ...]) -> None:
    assert lex(text).words == words


@given(st.text())
def test_no_text_raises_anything_but_a_lex_error(text: str) -> None:
    line = 1
    try:
        _ = lex(text).conditionals
    except LexError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1
