"""The specification: every input once, exact boundaries, two witnesses that are not ours."""

import itertools

import ml_dtypes
import numpy as np

from fp4patch.proof.specification import specification


def test_the_intervals_hold_every_input_once_and_in_order() -> None:
    intervals = specification()
    assert intervals[0].first == 0
    assert intervals[-1].last == 0xFFFF_FFFF
    for before, after in itertools.pairwise(intervals):
        assert after.first == before.last + 1
    assert sum(i.last - i.first + 1 for i in intervals) == 1 << 32


def test_ml_dtypes_agrees_on_both_sides_of_every_border_and_at_random() -> None:
    generator = np.random.default_rng(4)
    ends = [pattern for i in specification() for end in (i.first, i.last) for pattern in range(end - 3, end + 4)]
    patterns = np.array([p for p in ends if 0 <= p <= 0xFFFF_FFFF], dtype=np.uint32)
    patterns = np.concatenate([patterns, generator.integers(0, 1 << 32, 1 << 20, dtype=np.uint32)])
    x = patterns.view(np.float32)
    patterns, x = patterns[~np.isnan(x)], x[~np.isnan(x)]
    firsts = np.array([i.first for i in specification()], dtype=np.uint32)
    codes = np.array([i.code for i in specification()], dtype=np.uint8)
    ours = codes[np.searchsorted(firsts, patterns, side="right") - 1]
    theirs = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    assert np.array_equal(ours, theirs)
    assert len(x) > 1_000_000
