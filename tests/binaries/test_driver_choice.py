"""Selection of a fatbin's entry by the driver, by the rules of the CUDA programming guide."""

from __future__ import annotations

import pytest

from fp4patch.binaries.driver_choice import nearest
from fp4patch.core.arch import Arch


@pytest.mark.parametrize(
    ("names", "gpu", "taken"),
    [
        (["sm_120"], "sm_120", "sm_120"),
        (["sm_120"], "sm_121", "sm_120"),  # plain: every later minor version
        (["sm_121"], "sm_120", None),
        (["sm_120a"], "sm_120", "sm_120a"),
        (["sm_120a"], "sm_121", None),  # a: this one alone
        (["sm_120f"], "sm_121", "sm_120f"),  # f: the family, from here on
        (["sm_121f"], "sm_120", None),
        (["sm_120f", "sm_121a"], "sm_121", "sm_121a"),
        (["sm_120f", "sm_121a"], "sm_120", "sm_120f"),
        (["sm_90", "sm_100a", "sm_100f"], "sm_120", None),  # another major version never
        (["sm_90", "compute_90"], "sm_121", "compute_90"),
        (["sm_120", "compute_121"], "sm_121", "sm_120"),  # a cubin before any PTX
        (["compute_80", "compute_90"], "sm_120", "compute_90"),
        (["compute_121"], "sm_120", None),
        (["compute_121a"], "sm_121", "compute_121a"),
        (["compute_120a"], "sm_121", None),
        (["compute_120f"], "sm_121", "compute_120f"),
        (["compute_90a"], "sm_121", None),
        ([], "sm_121", None),
    ],
)
def test_takes(names: list[str], gpu: str, taken: str | None) -> None:
    code, ptx = ([Arch.parse(name) for name in names if name.startswith(kind)] for kind in ("sm_", "compute_"))
    assert nearest(Arch.parse(gpu), code, ptx) == (Arch.parse(taken) if taken else None)
