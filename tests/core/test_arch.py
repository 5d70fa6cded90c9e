"""Every way in which people write an architecture."""

from __future__ import annotations

import pytest

from fp4patch.core.arch import Arch


@pytest.mark.parametrize("text", ["sm_121a", "compute_121a", "121a", "12.1a", " 12.1a "])
def test_every_spelling_names_one_architecture(text: str) -> None:
    assert Arch.parse(text) == Arch(12, 1, "a")


@pytest.mark.parametrize("text", ["", "12", "sm_9", "12a", "121b", "12.10", "1210", "sm_121aa", "native"])
def test_what_is_no_architecture_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write for example sm_121a"):
        Arch.parse(text)
