"""A quick look passes every file in which its search finds something, and the automaton knows what each look says."""

import re
from collections.abc import Iterator

import pytest
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations_vllm import OPTIONS

from fp4patch.catalog.manifest import load
from fp4patch.core.lex_error import LexError
from fp4patch.cxx.tokens import words
from fp4patch.edits.look import Look, QuickLooks, words_of
from fp4patch.edits.operation import PatchedTree, Search
from fp4patch.edits.sources import LANGUAGES

ALONE = PatchedTree(OPTIONS, lambda _file: False)
FILES = {"c++": "csrc/a.cu", "python": "vllm/a.py", "cmake": "cmake/a.cmake", "other": "a.sh"}


def searches(language: str) -> Iterator[Search]:
    """Yield every search of the catalog's edits and promises."""
    for patch in load().patches.values():
        for edit in patch.edits:
            yield from edit.searches(language)
        for promise in patch.promises:
            yield from promise.searches(language, None)


SEARCHES = {language: tuple(searches(language)) for language in LANGUAGES}
LOOKS = QuickLooks({language: [search.look for search in several] for language, several in SEARCHES.items()})
EXCERPTS = [
    (edit.language, text)
    for patch in load().patches.values()
    for case in cases(patch.id).values()
    for text in (case.before, case.after)
    for edit in patch.edits[:1]
    if text
]


def agree(language: str, text: str) -> int:
    """Assert of all searches that the looks pass a text in which they find something. Return how many do."""
    try:
        LANGUAGES[language].read(text)
    except (LexError, SyntaxError):
        return 0  # whatever is in it, the searches name it
    content = text.encode()
    passing = LOOKS.passing(language, content)
    found = 0
    for search in SEARCHES[language]:
        assert search.look.passes(content) == (search.look in passing)
        if any(search.places(ALONE, FILES[language], text)):
            found += 1
            assert search.look in passing, text
    return found


@pytest.mark.parametrize("language", ["c++", "python", "cmake"])
def test_looks_pass_the_excerpts_of_upstream_in_which_searches_find_something(language: str) -> None:
    assert sum(agree(language, text) for spoken, text in EXCERPTS if spoken == language) > 3


PIECES = {
    "c++": sorted(
        {
            word
            for patch in load().patches.values()
            for edit in patch.edits
            if edit.language == "c++"
            for word in words(getattr(edit, "find", ""))
        }
        | {"e2m1x2.f32", '"cvt.rn.satfinite.e2m1x2.f32 a, b;"', "__nv_cvt_float_to_fp4", "arch == 120", "12", "major"}
    ),
    "python": ["arch", " == ", "120", "(12, 0)", "'sm_120'", "capability", " in ", "\n", "x = ", "e2m1x2."],
    "cmake": ['set(A "9.0;12.0f")\n', "if(ARCH EQUAL 120)\n", "endif()\n", "list(APPEND A 12.0a)\n", "# 12.0f\n"],
}
GAPS = st.sampled_from([" ", "\n", "/* c */", "\\\n", "\\ \r\n", "// c\n", ""])


@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from(["c++", "python", "cmake"]))
def test_looks_pass_made_up_texts_in_which_searches_find_something(data: st.DataObject, language: str) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[language]), max_size=12))
    gaps = data.draw(st.lists(GAPS, min_size=len(pieces), max_size=len(pieces))) if language == "c++" else pieces
    text = "".join(piece + (gap if language == "c++" else "") for piece, gap in zip(pieces, gaps, strict=True))
    agree(language, text)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_what_an_edit_finds_passes_whatever_stands_between_its_tokens(data: st.DataObject) -> None:
    """Continuations go into the middle of words, too."""
    edits = [edit for patch in load().patches.values() for edit in patch.edits if edit.language == "c++"]
    finds = [find for edit in edits if (find := getattr(edit, "find", ""))]
    found = data.draw(st.sampled_from(finds))
    gap = data.draw(GAPS.filter(bool))
    text = gap.join(words(found))
    at = data.draw(st.integers(0, len(text)))
    agree("c++", f"{text[:at]}\\\n{text[at:]}" if not re.search(r"[\\/*]", text[max(0, at - 1) : at + 1]) else text)


def test_a_look_passes_what_has_all_words_of_a_set() -> None:
    look = Look(words_of(["alpha", "beta"], ["gamma"]))
    assert [look.passes(text) for text in (b"beta alpha", b"alpha", b"x gamma", b"al\\\npha beta", b"")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    closer = Look(words_of(["alpha"]), lambda content: content.startswith(b"alpha"))
    assert [closer.passes(text) for text in (b"alpha", b"x alpha")] == [True, False]
