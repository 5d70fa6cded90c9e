"""The page with the keys of edits: every operation, and a meaning for each key."""

import re
from typing import get_args

from fp4patch.edits import Edit
from tools.keys_of_edits import page


def test_the_page_has_the_keys_of_every_operation_and_their_meanings() -> None:
    text = page()
    for kind in get_args(Edit):
        assert f"**`{kind.op}`.**" in text
    assert "| `find` | a string, required | Code to replace. |" in text
    assert "| `block` | a number or a list, required | Number of threads in a block, or alternatives." in text
    assert re.search(r"\|\s*\|$", text, re.MULTILINE) is None, "a key without a meaning"
