"""The quick look at a file's bytes: a rewritten pattern finds the same, and no place of an absence is missed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.catalog.manifest import load
from fp4patch.tree.candidate_files import _faster

PATTERNS = [
    *sorted(
        {
            part
            for patch in load().patches.values()
            for one in patch.absent
            for part in one.mention
            if not part.isalnum()
        }
    ),
    r"\b1?2",
    r"\b1*\b|\\b1",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.lists(st.sampled_from([*"012 <=>(),!:a_#", "12", "120", "capability", "case"])).map("".join))
def test_a_faster_pattern_finds_the_same(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    faster = re.search(_faster(pattern), text)
    assert (found and found.span()) == (faster and faster.span())
