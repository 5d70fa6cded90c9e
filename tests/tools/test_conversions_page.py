"""The numbers of variants.md and evidence.md are those of the record, and the record's are those of ``verify``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command import apply_and_verify

from tools.pages import _made_part as made_part
from tools.pages import conversions

GetTree = Callable[[str, str], Path]


def test_both_pages_have_what_the_record_says() -> None:
    for page, part in conversions.parts(*conversions.recorded()).items():
        text = page.read_text(encoding="utf-8")
        assert made_part.placed(text, "conversions", part) == text, "python -m tools.regenerate conversions"


def test_the_record_is_written_as_it_is_read() -> None:
    assert conversions.text(*conversions.recorded()) == conversions.RECORD.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("variant", "arch", "names"),
    [
        ("next3", "sm_121", ["decode-float-x8", "decode-half-x8", "construct-e2m3-x4"]),
        ("next3", "sm_80", ["construct-e2m3-x4", "construct-e3m2-double-x4"]),
        ("next2", "sm_121a", ["float-to-e2m1-x8", "e2m1-to-float-x8", "e2m1-to-half-x8", "float-to-e2m3-x4"]),
    ],
)
def test_the_record_has_what_verify_counts(
    variant: str, arch: str, names: list[str], whole_tree: GetTree, probes: Callable[..., Path]
) -> None:
    probes("cutlass", *names)
    _, document = apply_and_verify(whole_tree("cutlass", "4.2.1"), variant, "--arch", arch, "--no-execute")
    nvcc, releases = conversions.recorded()
    assert document["toolchain"]["nvcc"] == nvcc
    rows = {row["probe"].partition("/")[2]: row for row in document["results"]}
    assert rows.keys() == {*names}
    for name, row in rows.items():
        recorded = releases["4.2.1"][name][arch]
        for side, column in (("before", "pristine"), ("after", variant)):
            assert (row[side]["instructions"], row[side]["branches"]) == tuple(recorded[column])


def test_of_one_conversion_each_variant_is_counted_in_its_own_tree() -> None:
    """Upstream's count stands for no variant that it was not compiled of: next3 decodes bare targets by itself."""
    _, releases = conversions.recorded()
    bare = {name: releases["4.2.1"][name]["sm_121"] for name in conversions.OF_VARIANTS}
    assert bare["e2m1-to-float-x8"]["next3"] == releases["4.2.1"]["decode-float-x8"]["sm_121"]["next3"]
    assert bare["e2m1-to-half-x8"]["next3"] == releases["4.2.1"]["decode-half-x8"]["sm_121"]["next3"]
    assert all(each["next3"][0] < each["pristine"][0] and each["next3"][1] == 0 for each in bare.values())


def test_what_the_pages_say_of_all_counts_holds() -> None:
    """No patched kernel of evidence.md has a branch, and none is as long as before, but for upstream's own bytes."""
    _, releases = conversions.recorded()
    for counts in releases.values():
        for probe in conversions.OF_EVIDENCE:
            for arch, each in counts[probe].items():
                assert each["next3"][1] == 0, (probe, arch)
                assert each["next3"] == each["pristine"] or each["next3"][0] < each["pristine"][0], (probe, arch)
