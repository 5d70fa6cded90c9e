"""The table of axes in docs/doctor.md."""

from fp4patch.binaries.findings import Axis
from tools.pages import axes


def test_the_table_of_axes_is_that_of_the_code() -> None:
    text = axes.table()
    assert text in axes.PAGE.read_text(encoding="utf-8"), "python -m tools.regenerate axes"
    assert all(f"| {axis} | " in text for axis in Axis)
    assert "| loads | no | a library does not load" in text
