"""Mutated sources come out correct or refused: never wrong, never silent.

``FP4PATCH_MUTATIONS=10000`` requests that many; ``FP4PATCH_MUTATIONS_TREES`` (a directory of vLLM source trees) adds
every file of theirs that has such a statement to the excerpts beside the patch.
"""

from __future__ import annotations

import os
import random
import re
from functools import cache
from pathlib import Path

import pytest
from cases import cases
from cxx_edits import outcome_of
from mutations_vllm import BENIGN, ENCODER, GUARD, OPTIONS, REFUSED, Document, judge, mutate

from fp4patch.core.results import Drift, Rewritten
from fp4patch.edits import WrapAsm
from fp4patch.edits.asm import scan
from fp4patch.edits.cxx import lex

EDIT = WrapAsm(search=("csrc/**/*",), encoders="../../encoders")
COUNT = int(os.environ.get("FP4PATCH_MUTATIONS", "400"))
CHUNKS = 12


@cache
def sources() -> list[tuple[str, str]]:
    """Name and text of everything that is mutated."""
    texts = [(case.name, case.before) for case in cases("vllm/e2m1-asm").values() if case.state == "edited"]
    if trees := os.environ.get("FP4PATCH_MUTATIONS_TREES"):
        paths = sorted(path for ending in ("cu", "cuh") for path in Path(trees).glob(f"*/csrc/**/*.{ending}"))
        texts += [(str(path), path.read_bytes().decode("utf-8", "surrogateescape")) for path in paths]
    return [(name, text) for name, text in texts if Document.read(text).statements]


def rewritten(text: str) -> Rewritten | Drift:
    outcome = outcome_of(EDIT, text, lambda _name: ENCODER, OPTIONS)
    assert isinstance(outcome, (Rewritten, Drift)), "a source with a conversion always needs something"
    return outcome


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_sources_come_out_correct_or_refused(chunk: int) -> None:
    every = sources()
    for seed in range(chunk, COUNT, CHUNKS):
        rng = random.Random(seed)
        name, text = every[seed % len(every)]
        doc, before, done = mutate(text, rng)
        outcome = rewritten(before)
        said = f"seed {seed}, {name}: {', '.join(done)}"
        if doc.refused:
            assert isinstance(outcome, Drift), said
            assert outcome.found, said
            continue
        assert isinstance(outcome, Rewritten), f"{said}: {outcome}"
        try:
            judge(doc, before, outcome.text, rng)
        except (AssertionError, KeyError, ValueError) as wrong:
            raise AssertionError(f"{said}: {wrong}") from wrong


@pytest.mark.parametrize("mutation", [*BENIGN, *REFUSED])
def test_each_mutation_alone_on_each_shape(mutation: str) -> None:
    for n, (name, text) in enumerate(sources()):
        rng = random.Random(n)
        doc = Document.read(text)
        (BENIGN | REFUSED)[mutation](doc, rng)
        before = doc.render(rng)
        outcome = rewritten(before)
        if mutation in REFUSED:
            assert isinstance(outcome, Drift), name
        else:
            assert isinstance(outcome, Rewritten), f"{name}: {outcome}"
            judge(doc, before, outcome.text, rng)


def test_damaged_sources_never_raise_and_are_never_passed_over() -> None:
    """Parts are cut out, doubled or moved: only a result is expected, and no conversion unguarded."""
    every = sources()
    for seed in range(COUNT):
        rng = random.Random(seed)
        name, text = every[seed % len(every)]
        for _ in range(rng.randint(1, 4)):
            a, b = sorted(rng.sample(range(len(text)), 2))
            b = min(b, a + rng.choice([1, 2, 10, 60]))
            text = (
                text[:a] + rng.choice(["", text[a:b] * 2, text[b : b + 9], '"', ")", "{", "//", "#if 1\n"]) + text[b:]
            )
        outcome = outcome_of(EDIT, text, lambda _name: ENCODER, OPTIONS)
        if isinstance(outcome, Rewritten):
            assert outcome.text.count(f"#if !({GUARD})") == len(scan(lex(text)).encodes) > 0, f"seed {seed}, {name}"
        elif not isinstance(outcome, Drift):
            code = "".join(token.text for token in lex(text).tokens)
            if re.search(r'"[^"]*//', code):  # the rest of the PTX may have become a comment
                continue
            assert "e2m1x2.f32" not in code, f"seed {seed}, {name}"
