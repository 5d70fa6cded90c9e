"""Lists and counts in words."""

from __future__ import annotations

from fp4patch.core.wording import counted, joined, listed


def test_counts_have_a_plural_and_separators() -> None:
    assert [counted(n, "check") for n in (0, 1, 1200)] == ["0 checks", "1 check", "1,200 checks"]
    assert counted(2, "box", "boxes") == "2 boxes"


def test_lists_leave_out_what_is_empty() -> None:
    assert [listed(items) for items in ([], ["a"], ["a", "", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert listed(["a", "b", "c"], "or") == "a, b or c"
    assert joined("a", "", "b", by=": ") == "a: b"
