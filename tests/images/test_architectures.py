"""The checks of --arch, and real nvcc as the witness of what it refuses."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Refused, UsageError
from fp4patch.images.architectures import check
from fp4patch.images.image import Architectures
from fp4patch.proof.toolchain import Toolchain
from variants import GUARDED, VARIANTS


def checked(variant: str, *archs: str, allow_bare: bool = False) -> Architectures:
    chosen, patches = the(variant)
    return check(archs, chosen, patches, allow_bare=allow_bare)


def the(name: str) -> tuple[Variant, list[Patch]]:
    catalog = load()
    variant = catalog.variant(name)
    return variant, [p for target in ("cutlass", "vllm") for p in catalog.patches_of(variant, target)]


def refusal(variant: str, *archs: str, allow_bare: bool = False) -> str:
    with pytest.raises(Refused) as refused:
        checked(variant, *archs, allow_bare=allow_bare)
    return "\n".join(f"{p.expected} | {p.found} | {p.help}" for p in refused.value.problems)


def test_both_gpus_in_one_image() -> None:
    found = checked("next3", "12.1a", "sm_120a", "12.1a")
    assert [arch.torch for arch in found.asked] == ["12.1a", "12.0a"]
    assert found.judged == found.asked
    assert [str(gpu) for gpu in found.gpus] == ["sm_121", "sm_120"]
    assert found.notes == ()


@pytest.mark.parametrize("bare", ["12.1", "12.0"])
def test_a_bare_target_is_refused_and_the_refusal_says_what_is_lost(bare: str) -> None:
    said = refusal("next3", bare)
    assert "cvt.rn.satfinite.e2m1x2" in said
    assert f"--arch {bare}a" in said
    assert "--allow-bare" in said


def test_allow_bare_lets_it_through_where_the_variant_has_rules_for_it() -> None:
    assert checked("next3", "12.1", allow_bare=True).judged == (Arch(12, 1),)
    assert "nothing could be proven" in refusal("next2", "12.1", allow_bare=True)


def test_sm_90_is_complete_without_a_suffix() -> None:
    assert checked("next3", "9.0", "12.1a").asked == (Arch(9, 0), Arch(12, 1, "a"))


@pytest.mark.parametrize("variant", GUARDED)
def test_a_family_target_beside_a_121_guard_says_that_the_guard_cannot_fire(variant: str) -> None:
    assert "cannot fire" in refusal(variant, "12.0f")
    assert "--arch 12.1a, where the guard fires" in refusal(variant, "12.0f")
    found = checked(variant, "12.0f", "12.1a")
    assert any("cannot fire" in note for note in found.notes)
    assert [str(arch) for arch in found.judged] == ["sm_121a"]


@pytest.mark.parametrize("variant", sorted({*VARIANTS} - {*GUARDED}))
def test_a_variant_without_such_a_guard_has_nothing_to_say_of_it(variant: str) -> None:
    assert not any("cannot fire" in note for note in checked(variant, "12.0f", "12.1a").notes)


@pytest.mark.parametrize(("variant", "missed"), [("turbo", True), ("turbo2", True), ("next3", False)])
def test_the_guard_of_inline_assembly_is_evaluated_for_the_target(variant: str, missed: bool) -> None:
    """Without CUTLASS's patches, whose macros name the architecture."""
    chosen = load().variant(variant)
    of_vllm = load().patches_of(chosen, "vllm")
    notes = check(["12.0f", "12.1a"], chosen, of_vllm, allow_bare=False).notes
    assert any("cannot fire" in note for note in notes) is missed


def test_the_family_target_of_sm120_must_run_on_both_gpus() -> None:
    assert [str(gpu) for gpu in checked("native", "12.0f").gpus] == ["sm_120", "sm_121"]


def test_what_is_no_architecture_is_a_mistake_of_the_command_line() -> None:
    with pytest.raises(UsageError, match=r"12\.1b"):
        checked("next3", "12.1b")
    with pytest.raises(UsageError, match="no architecture"):
        checked("next3")


def test_every_problem_is_said_at_once() -> None:
    said = refusal("native", "12.0", "12.0f", "12.1")
    assert "sm_120 " in said
    assert "sm_121 " in said
    assert "same GPU code" in said


def test_nvcc_refuses_exactly_the_pairs_that_we_refuse(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = 1; }\n")
    names = ["12.0", "12.0a", "12.0f", "12.1", "12.1a", "12.1f"]
    variant, patches = the("native")
    for pair in itertools.combinations(names, 2):
        codes = [f"-gencode=arch=compute_{Arch.parse(n).number},code=sm_{Arch.parse(n).number}" for n in pair]
        run = subprocess.run(
            [str(toolchain.nvcc), *toolchain.flags, "--dryrun", "-c", *codes, "k.cu", "-o", "k.o"],
            cwd=tmp_path,
            env=dict(toolchain.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            check((*pair, "12.1a"), variant, patches, allow_bare=True)
            ours = 0
        except Refused:
            ours = 1
        assert (run.returncode != 0) is bool(ours), (pair, run.stderr[-200:])
