"""A sweep as a program for arm64, GB10's host: it counts what it counts on x86-64."""

import gzip
import os
from pathlib import Path

import pytest
from arm64 import COMPILER

from fp4patch.catalog.probe import Executes
from fp4patch.core.process import Runner
from fp4patch.proof.execution import sweep
from fp4patch.sass.translate import translate

LISTINGS = Path(__file__).parents[1] / "sass/golden/listings"
# Inputs, and NaNs that keep their sign, at the corners and in the sweep.
SWEPT = {
    "encoder.threshold": (Executes(input="float32", lanes=8), (90112, 2439), (1 << 22, 8191)),
    "cutlass-4.7.0.next3.encode-half-x8": (Executes(input="float16", lanes=8), (73728, 0), (1 << 13, 0)),
}


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_counts_on_arm64_what_it_counts_on_x86_64(
    name: str, emulated: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executes, corners, swept = SWEPT[name]
    listing = gzip.decompress((LISTINGS / f"{name}.txt.gz").read_bytes()).decode()
    monkeypatch.setattr(sweep, "_WIDE", ())  # it is this machine's, which the cross compiler does not compile for
    program = sweep.build(tmp_path, translate(listing, arch=(9, 0)), executes, compiler=COMPILER)
    found = sweep.run(Runner(dict(os.environ)), program, threads=2, stride=1 << 10)
    assert [(one.inputs, one.signs, one.wrong) for one in found] == [(*corners, 0), (*swept, 0)]
