"""The program that runs translated machine code: what it finds, on kernels that are written by hand."""

from pathlib import Path

import numpy as np
import pytest

from fp4patch.catalog.probe import Executes
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.proof.execution import sweep
from fp4patch.proof.execution.sweep import Swept
from fp4patch.sass.error import SassError
from fp4patch.sass.listing import Listing
from fp4patch.sass.operands import LAYOUTS
from fp4patch.sass.program import Kernel

EIGHT = Executes(input="float32", lanes=8)

# A kernel that stores CODE of each value, as translations look: addresses in 64 bits, one thread.
BODY = """
#define pointer(launch, at) sass_pair(sass_constant(launch, at), sass_constant(launch, at + 4))
static void SASS_KERNEL(const struct launch *launch) {{
  const uint32_t thread = launch->ctaid_x * sass_constant(launch, 0x360) + launch->tid_x;
  const uint64_t from = pointer(launch, 0x380) + (uint64_t)thread * {record};
  const uint64_t to = pointer(launch, 0x388) + (uint64_t)thread * {stored};
  uint32_t packed = 0;
  for (int lane = 0; lane < {lanes}; ++lane) {{
    const uint32_t x = {load}(launch, from + {bytes} * lane);
    packed |= ({code}) << 4 * lane;
  }}
  {store}(launch, to, packed);
}}
"""


def kernel(code: str, *, executes: Executes = EIGHT, store: str = "", extra: str = "") -> Kernel:
    wide = executes.input == "float32"
    text = BODY.format(
        record=executes.lanes * (4 if wide else 2),
        stored=max(1, executes.lanes // 2),
        lanes=executes.lanes,
        bytes=4 if wide else 2,
        load="sass_load_32" if wide else "sass_load_16",
        store=store or ("sass_store_32" if executes.lanes == 8 else "sass_store_8"),
        code=code,
    )
    return Kernel(text, LAYOUTS[12], Listing("by hand", (12, 1), ()))


def swept(folder: Path, one: Kernel, executes: Executes = EIGHT, **how: object) -> Swept:
    return sweep.run(Runner({}), sweep.build(folder, one, executes), threads=2, **how)  # type: ignore[arg-type]


def total(found: Swept) -> tuple[int, int, int]:
    """Inputs, wrong results among them, wrong results among the corners."""
    return found.sweep.inputs, found.sweep.wrong, found.corners.wrong


def test_every_float_goes_through_and_one_that_is_wrong_is_found(tmp_path: Path) -> None:
    found = swept(tmp_path, kernel("sass_to_e2m1(x) ^ (x == 0xc1234567u)"))
    assert total(found)[:2] == (1 << 32, 1)
    assert (found.sweep.signs, found.sweep.first) == (0, "0xc1234567 gives 0xe, not 0xf")


def test_a_tie_that_one_lane_rounds_wrongly_is_a_corner(tmp_path: Path) -> None:
    """In the sweep each input goes through one lane; the boundaries go through all of them."""
    found = swept(tmp_path, kernel("sass_to_e2m1(x) + (lane == 5 && x == 0x3e800000u)"), stride=1 << 20)
    assert total(found)[2] > 0
    assert found.corners.first.startswith("0x3e800000 gives")


def test_every_half_goes_through_every_lane(tmp_path: Path) -> None:
    eight = Executes(input="float16", lanes=8)
    widened = "sass_bits(sass_of_half(x))"
    found = swept(tmp_path, kernel(f"sass_to_e2m1({widened})", executes=eight), eight, turns=range(8))
    assert total(found) == (8 << 16, 0, 0)
    wrong = f"sass_to_e2m1({widened}) ^ (lane == 7 && x == 0x3555)"
    found = swept(tmp_path, kernel(wrong, executes=eight), eight, turns=range(8))
    assert total(found) == (8 << 16, 1, 0)
    bits = int(np.float32(np.array(0x3555, np.uint16).view(np.float16)).view(np.uint32))
    assert found.sweep.first.startswith(f"{bits:#x} gives")


@pytest.mark.parametrize(
    ("code", "store", "stray"),
    [
        ("sass_to_e2m1(x)", "sass_store_32(launch, to + 4096, packed); (void)", "stray store of 4 bytes"),
        ("sass_to_e2m1(x)", "sass_store_16(launch, to, packed); (void)", "stored 2 bytes of its 4"),
        ("sass_to_e2m1(x)", "if (thread != 77) sass_store_32", "stray store: thread 77 stored 0 bytes of its 4"),
        ("sass_to_e2m1(sass_load_32(launch, from - 0x10000000))", "", "stray load of 4 bytes"),
        ("sass_to_e2m1(sass_load_32(launch, from + 2))", "", "stray load of 4 bytes"),
    ],
)
def test_a_kernel_that_leaves_its_memory_is_stopped(tmp_path: Path, code: str, store: str, stray: str) -> None:
    with pytest.raises(ProofError, match=stray):
        swept(tmp_path, kernel(code, store=store))


def test_a_kernel_that_crashes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="did not run to its end: status -"):
        swept(tmp_path, kernel("({ __builtin_trap(); sass_to_e2m1(x); })"))


def test_what_does_not_compile_is_an_error_with_the_compilers_words(tmp_path: Path) -> None:
    with pytest.raises(SassError, match="does not compile") as error:
        sweep.build(tmp_path, kernel("no_such_function(x)"), EIGHT)
    assert "no_such_function" in error.value.help
