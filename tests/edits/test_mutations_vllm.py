"""Mutated sources come out correct, damaged ones correct or refused: never wrong, never silent.

``FP4PATCH_MUTATIONS=10000`` requests that many.
"""

import os
import random
import re

import pytest
from cases import cases
from cxx_edits import rewritten
from mutations_vllm import ENCODER, GUARD, OPTIONS, Document, judge, mutate
from share import first

from fp4patch.core.results import Drift, Rewritten
from fp4patch.cxx.tokens import lex
from fp4patch.edits import WrapAsm
from fp4patch.edits.asm import scan

EDIT = WrapAsm(search=("csrc/**/*",), encoders="../../encoders")
COUNT = int(os.environ.get("FP4PATCH_MUTATIONS", "400"))
CHUNKS = 12
FIRST = first("sources")


SOURCES = [
    (case.name, case.before)
    for case in cases("vllm/e2m1-asm").values()
    if case.state == "edited" and Document.read(case.before).statements
]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_sources_come_out_correct(chunk: int) -> None:
    for seed in range(FIRST + chunk, FIRST + COUNT, CHUNKS):
        rng = random.Random(seed)
        name, text = SOURCES[seed % len(SOURCES)]
        doc, before, done = mutate(text, rng)
        made, outcome = rewritten(EDIT, before, lambda _name: ENCODER, OPTIONS)
        said = f"seed {seed}, {name}: {', '.join(done)}"
        assert isinstance(outcome, Rewritten), f"{said}: {outcome}"
        try:
            judge(doc, before, made, rng)
        except (AssertionError, KeyError, ValueError) as wrong:
            raise AssertionError(f"{said}: {wrong}") from wrong


def test_damaged_sources_never_raise_and_are_never_passed_over() -> None:
    """Parts are cut out, doubled or moved: only a result is expected, and no conversion unguarded."""
    for seed in range(FIRST, FIRST + COUNT):
        rng = random.Random(seed)
        name, text = SOURCES[seed % len(SOURCES)]
        for _ in range(rng.randint(1, 4)):
            a, b = sorted(rng.sample(range(len(text)), 2))
            b = min(b, a + rng.choice([1, 2, 10, 60]))
            text = (
                text[:a] + rng.choice(["", text[a:b] * 2, text[b : b + 9], '"', ")", "{", "//", "#if 1\n"]) + text[b:]
            )
        made, outcome = rewritten(EDIT, text, lambda _name: ENCODER, OPTIONS)
        if isinstance(outcome, Rewritten):
            assert made.count(f"#if !({GUARD})") == len(scan(lex(text)).encodes) > 0, f"seed {seed}, {name}"
        elif not isinstance(outcome, Drift):
            code = "".join(token.text for token in lex(text).tokens)
            if re.search(r'"[^"]*//', code):  # the rest of the PTX may have become a comment
                continue
            assert "e2m1x2.f32" not in code, f"seed {seed}, {name}"


def test_a_word_that_begins_as_a_conditional_s_is_none() -> None:
    """In a group that is skipped, any word may stand behind ``#``; without a group it is an error of the compiler's."""
    for before in ("#if 0\n#elsewhere\n#iffy\n#endif\n", "#elsewhere\n"):
        for name, text in SOURCES:
            found = [type(rewritten(EDIT, code, lambda _name: ENCODER, OPTIONS)[1]) for code in (text, before + text)]
            assert found[0] == found[1], name
