"""A sweep of one encoder on the host, with the defaults that tests need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fp4patch.catalog.rule import Promise
from fp4patch.proof.inputs import NumericsReport
from fp4patch.proof.numerics import Subject, host_sweeps


def host_sweep(
    encoder: Path | str,
    function: str = "",
    *,
    promise: Promise = Promise.EXACT,
    compiler: Path | str = "g++",
    include: Sequence[Path] = (),
) -> NumericsReport:
    """All 2^32 inputs through one value's encoder as the host's compiler builds it, on all cores.

    ``encoder`` is the path of a header of ours, or the text of any header; ``function`` is what to call,
    ``fp4patch_<name>::e2m1`` by default. ProofError if it does not compile or run.
    """
    name = encoder.stem if isinstance(encoder, Path) else function
    text = encoder.read_text(encoding="utf-8") if isinstance(encoder, Path) else encoder
    called = Subject(name, 1, f"{function or f'fp4patch_{name}::e2m1'}(v[0])")
    (report,) = host_sweeps(text, (called,), promise=promise, compiler=compiler, include=include, what=name)
    return report
