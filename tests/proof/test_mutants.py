"""Change one thing in a listing: the execution must notice, or the change must be shown to compute the same.

``FP4PATCH_SASS_MUTANTS`` sets the number for each encoder, and runs all 2^32 inputs through each that survives the
corners; by default there are a few, and each goes through every 61st group of inputs. ``--log-cli-level=INFO`` shows
the outcome of each.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from cubins import compile_cuda, disassembled
from listings import ARCH
from mutations_sass import mutants
from share import first

from fp4patch.catalog.probe import Executes
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.proof.execution import sweep
from fp4patch.proof.execution.sweep import Swept
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.error import SassError
from fp4patch.sass.translate import translate

NUMBER = int(os.environ.get("FP4PATCH_SASS_MUTANTS", "12"))
STRIDE = 1 if "FP4PATCH_SASS_MUTANTS" in os.environ else 61
EIGHT = Executes(input="float32", lanes=8)
ENCODERS = Path(__file__).parents[2] / "encoders"
PROBE = """
struct alignas(16) Load {{ float value[8]; }};
extern "C" __global__ void probe(Load const* source, unsigned int* packed) {{
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Load const v = source[i];
  packed[i] = fp4patch_{encoder}::e2m1_x8(v.value[0], v.value[1], v.value[2], v.value[3], v.value[4], v.value[5],
                                          v.value[6], v.value[7]);
}}
"""


def listing(encoder: str, toolchain: Toolchain, folder: Path) -> str:
    source = (ENCODERS / f"{encoder}.cuh").read_text() + PROBE.format(encoder=encoder)
    cubin = compile_cuda(toolchain, source, folder / "probe.cubin", "-O3", "-cubin", "-arch=sm_121a").read_bytes()
    return disassembled(toolchain, cubin)


def build(text: str, folder: Path, *, quick: bool) -> Path:
    folder.mkdir(exist_ok=True)
    return sweep.build(folder, translate(text, arch=ARCH), EIGHT, quick=quick)


def swept(binary: Path, stride: int) -> Swept:
    return sweep.run(Runner({}, limit=300), binary, threads=2, stride=stride)  # a mutant need not end


def outcome(text: str, original: Mapping[int, Swept], folder: Path) -> str:
    """Return the outcome of a mutant, compared with the original kernel's results by stride."""
    try:
        binary = build(text, folder, quick=True)
    except SassError:
        return "refused"
    for stride, results in original.items():
        if stride == 1:  # all inputs take longer than the compiler
            binary = build(text, folder, quick=False)
        try:
            found = swept(binary, stride)
        except ProofError as error:
            return "leaves its memory" if "stray" in error.message else "does not end"
        if found.corners != results.corners:
            return "wrong at a corner"
        if found.sweep != results.sweep:
            return "wrong in the sweep"
    return "computes the same"


@pytest.mark.parametrize("encoder", ["half_pair", "predicate_sum", "threshold"])
def test_a_change_of_one_instruction_is_noticed(encoder: str, toolchain: Toolchain, tmp_path: Path) -> None:
    text = listing(encoder, toolchain, tmp_path)
    binary = build(text, tmp_path / "original", quick=False)
    original = {stride: swept(binary, stride) for stride in (1 << 14, STRIDE)}
    found: Counter[str] = Counter()
    alive = []
    for number, mutant in zip(range(NUMBER), mutants(text, seed=first(f"machine code of {encoder}")), strict=False):
        became = outcome(mutant.text, original, tmp_path / str(number))
        found[became] += 1
        if became == "computes the same":
            alive.append(mutant.change)
    assert sum(found.values()) == NUMBER
    logging.getLogger(__name__).info("%s: %s; computes the same: %s", encoder, dict(found), alive)
    # Those alive gave the original's nibbles for these inputs and every corner in every lane: they are the same
    # function, as where a register that is changed holds the same, or nothing reads the result: about one in eight.
    assert len(alive) <= NUMBER / 2
