"""The checks of --arch."""

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused, UsageError
from fp4patch.images.image import Architectures
from fp4patch.images.plan import check
from variants import GUARDED


def checked(variant: str, *archs: str) -> Architectures:
    return check(archs, load().variant(variant))


def refusal(variant: str, *archs: str) -> str:
    with pytest.raises(Refused) as refused:
        checked(variant, *archs)
    return "\n".join(f"{p.expected} | {p.found} | {p.help}" for p in refused.value.problems)


def test_both_gpus_in_one_image() -> None:
    found = checked("next3", "12.1a", "sm_120a", "12.1a")
    assert [arch.torch for arch in found.asked] == ["12.1a", "12.0a"]
    assert found.judged == found.asked
    assert [str(gpu) for gpu in found.gpus] == ["sm_121", "sm_120"]
    assert found.notes == ()


def test_a_bare_target_is_refused_and_the_refusal_says_what_is_lost() -> None:
    said = refusal("next3", "12.1", "12.0", "9.0")
    assert "cvt.rn.satfinite.e2m1x2" in said
    assert [f"--arch {bare}a" in said for bare in ("12.1", "12.0", "9.0")] == [True, True, False]


@pytest.mark.parametrize("variant", GUARDED)
def test_a_family_target_whose_code_no_guard_for_sm121_reaches_is_not_proven(variant: str) -> None:
    assert "12.0f, so nothing could be proven" in refusal(variant, "12.0f")
    found = checked(variant, "12.0f", "12.1a")
    assert found.notes == (f"{variant} has no rules for 12.0f: its code is built, and not proven",)
    assert [str(arch) for arch in found.judged] == ["sm_121a"]


def test_the_family_target_of_sm120_must_run_on_both_gpus() -> None:
    assert [str(gpu) for gpu in checked("native", "12.0f").gpus] == ["sm_120", "sm_121"]


def test_what_is_no_architecture_is_a_mistake_of_the_command_line() -> None:
    with pytest.raises(UsageError, match=r"12\.1b"):
        checked("next3", "12.1b")
    with pytest.raises(UsageError, match="no architecture"):
        checked("next3")
