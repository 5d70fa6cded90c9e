"""docs/proof.md has what the commands print that it names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command import apply_and_verify

from tools.pages import checks


@pytest.mark.slow
@pytest.mark.parametrize("options", checks.OPTIONS, ids=" ".join)
def test_the_page_has_what_verify_prints(whole_tree: Callable[[str, str], Path], options: tuple[str, ...]) -> None:
    status, document = apply_and_verify(whole_tree("cutlass", "4.2.1"), "next3", "--execute", *options)
    assert status == 0
    row = checks.row(document, options)
    assert row in checks.PAGE.read_text(encoding="utf-8").splitlines(), f"python -m tools.regenerate checks\n{row}"
