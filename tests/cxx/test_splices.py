"""Parts of a C++ text are replaced so that the result reads as it was meant, or not at all."""

import os

import pytest
from cxx_pieces import PIECES
from hypothesis import given, settings
from hypothesis import strategies as st

from fp4patch.core.lex_error import LexError, NotAsMeant
from fp4patch.cxx.edit import Cut, spliced
from fp4patch.cxx.tokens import read

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
        result = spliced(source, cuts)
    except NotAsMeant:
        return
    again = read(expected)
    assert (result.text, list(again.words)) == (expected, tokens)
    assert (result.words, result.starts, result.directive_of) == (again.words, again.starts, again.directive_of)


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
    with pytest.raises(NotAsMeant):
        spliced(read(text), [cut])
