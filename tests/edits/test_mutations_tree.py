"""Mutated trees come out right, refused, or with what remains by name: never silently wrong.

``FP4PATCH_MUTATIONS=10000`` asks for that many, here and for inline assembly.
"""

import os
import random
from pathlib import Path

import pytest
from mutations_tree import KINDS, MACRO, Came, Mutant, lists_of, macro_of, run, shut_out, unguarded
from share import first

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("FP4PATCH_MUTATIONS", "100"))
CHUNKS = 5 if COUNT >= 1000 else 1  # a fifth comes out right: of twenty, now and then, none
FIRST = first("trees")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_mutated_tree_is_silently_wrong(chunk: int, tmp_path: Path) -> None:
    outcomes = {"refused": 0, "right": 0, "named": 0}
    for seed in range(FIRST + chunk, FIRST + COUNT, CHUNKS):
        rng = random.Random(seed)
        patch = list(KINDS)[seed % len(KINDS)]
        mutant = KINDS[patch](rng)
        root, work = tmp_path / f"{seed}", tmp_path / f"{seed}-oracle"
        work.mkdir()
        came = run(patch, mutant, root)
        if came.refused:
            outcomes["refused"] += 1
            continue
        wrong = JUDGES[patch](mutant, came, work)
        assert not wrong, f"seed {seed}, {patch}: {wrong}"
        outcomes["named" if came.named else "right"] += 1
    assert outcomes["refused"], outcomes
    assert outcomes["right"], outcomes


def _asm(mutant: Mutant, came: Came, work: Path) -> str:
    behind = tuple(to for link, to in mutant.links.items() if link in came.named)  # a link is named in their place
    silent = {file for file in unguarded(came, work) - came.named if not behind or not file.startswith(behind)}
    return f"unguarded and not named: {sorted(silent)}" if silent else ""


def _guard(mutant: Mutant, came: Came, work: Path) -> str:
    for arch in ("sm_121a", "sm_121f"):
        if macro_of(came.files, arch, work):
            return f"{MACRO} is on for {arch}"
    for arch in ("sm_120a", "sm_120f", "sm_100a"):
        if macro_of(came.files, arch, work) != macro_of(mutant.files, arch, work):
            return f"{MACRO} changed for {arch}"
    return ""


def _cmake(_mutant: Mutant, came: Came, work: Path) -> str:
    for new in (False, True):
        for found in lists_of(came.files, new, work):
            for beside in ("12.0a", "12.0f"):
                if beside in found and not {"12.1a", "12.1f"} & set(found):
                    return f"{found} lacks 12.1a"
    return ""


def _family(_mutant: Mutant, came: Came, work: Path) -> str:
    silent = shut_out(came.files, work) - came.named
    return f"SM121 is shut out of {sorted(silent)}" if silent else ""


JUDGES = {
    "vllm/e2m1-asm": _asm,
    "cutlass/e2m1-guard": _guard,
    "vllm/cmake-sm121a": _cmake,
    "vllm/sm120-family": _family,
}


def test_the_oracles_see_what_is_wrong(tmp_path: Path) -> None:
    """An unpatched tree fails each judge."""
    for patch, make in KINDS.items():
        mutants = [make(random.Random(seed)) for seed in range(12)]
        work = tmp_path / patch.replace("/", "-")
        work.mkdir()
        wrong = [JUDGES[patch](mutant, Came((), frozenset(), mutant.files), work) for mutant in mutants]
        assert sum(map(bool, wrong)) > 6, (patch, wrong)
