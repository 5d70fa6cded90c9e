"""What pages say of other projects' releases: pages, patches and releases are compared."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

import fp4patch
from fp4patch.catalog.manifest import load
from fp4patch.commands.explore_page import MATRIX
from tools import claims

ROOT = Path(fp4patch.__file__).parents[1]
# Example: | `gdc-flag` | lets FlashInfer's fused MoE wait for the kernel in front, in 0.5.0 to 0.6.7.post3 |
EFFECT = re.compile(r"^\| `([\w-]+)` \| (.*) \|$", re.MULTILINE)
# Example: 0.5.0 to 0.6.7.post3
RANGE = re.compile(r"(\d+(?:\.\d+)+(?:\.post\d+)?) to (\d+(?:\.\d+)+(?:\.post\d+)?)")


@pytest.mark.parametrize("claim", claims.read(ROOT), ids=lambda claim: claim.says)
def test_a_page_says_what_is_looked_up(claim: claims.Claim) -> None:
    words = " ".join((ROOT / claim.page).read_text(encoding="utf-8").split())
    assert " ".join(claim.says.split()) in words


def test_a_claim_is_looked_up_in_its_releases() -> None:
    """A true one, and one of each way to be false."""
    true = next(claim for claim in claims.read(ROOT) if claim.having == ("0.7.1", "newest"))
    true = replace(true, having=("0.7.1",), lacking=("0.7.0.post1",))
    assert not [*claims.look(load(), [true])]
    swapped = replace(true, having=true.lacking, lacking=true.having)
    gone = replace(true, file="compilation_contexts.py")
    found = [*claims.look(load(), [swapped, gone])]
    assert [(release, problem.partition(": ")[2][:34]) for release, _, problem in found] == [
        ("flashinfer 0.7.0.post1", "compilation_context.py has no 'SM "),
        ("flashinfer 0.7.1", "compilation_context.py has a 'SM 1"),
        ("flashinfer 0.7.1", "there is no compilation_contexts.p"),
    ]
    unknown = replace(true, having=("0.7.99",), lacking=())
    assert [release for release, _, _ in claims.look(load(), [unknown])] == ["flashinfer 0.7.99"]


def test_the_releases_of_a_patch_are_those_that_it_changes() -> None:
    """Each range of the page of variants begins and ends with a release that the patch changes, and has no other."""
    rows = json.loads((ROOT / MATRIX).read_text(encoding="utf-8"))["rows"]
    ranges = 0
    for name, effect in EFFECT.findall((ROOT / "docs/variants.md").read_text(encoding="utf-8")):
        wholes = RANGE.findall(effect)
        named = [patch for patch in load().patches.values() if patch.id.endswith(f"/{name}")]
        if not (wholes and named):
            continue
        patch = next((patch for patch in named if load().target(patch.target).title in effect), named[0])
        own = {Version(row["version"]): row["states"].get(patch.id) for row in rows if row["target"] == patch.target}
        changed = {version for version, state in own.items() if state == "applied"}
        said = {version for low, high in wholes for version in own if within(version, low, high)}
        assert said == changed, patch.id
        ranges += len(wholes)
    assert ranges >= 5


def within(version: Version, low: str, high: str) -> bool:
    """Return whether a release is in a range, of which `0.29` is all of its patch releases."""
    return Version(low) <= version <= Version(high) or f"{version}.".startswith(f"{high}.")
