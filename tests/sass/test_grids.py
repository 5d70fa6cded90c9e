"""Whole warps against silicon: lifted sm_90 kernels give what a GPU gave (``golden/make.py grids``)."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_grids import content, parameter
from listings import ARCH, document

from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.proof.execution.chosen_inputs import reciprocal, values_of
from fp4patch.reference.vllm import quantize_as_gemv, quantize_as_vllm, quantize_to_powers_as_vllm
from fp4patch.sass import grid
from fp4patch.sass.program import KERNEL_NAME, Kernel
from fp4patch.sass.translate import translate

GOLDEN = Path(__file__).parent / "golden"
FOUND: dict[str, Any] = json.loads((GOLDEN / "grids.json").read_text())
GRIDS = {name: one for name, one in FOUND["grids"].items() if name != "grids.reciprocal"}


def kernel(name: str) -> Kernel:
    text = gzip.decompress((GOLDEN / "listings" / f"{name}.txt.gz").read_bytes()).decode()
    found = translate(text, arch=Arch(9, 0), name=KERNEL_NAME, grid=True)
    return Kernel(found.c, found.parameters, found.block_size)


def launch(job: dict[str, Any], poison: int) -> grid.Launch:
    addresses = [0x7F00_0000_0000 + (number << 32) for number in range(len(job["arrays"]))]
    arrays = tuple(
        grid.Array(address, content(array), not {"seed", "hex"} & array.keys())
        for address, array in zip(addresses, job["arrays"], strict=True)
    )
    parameters = b"".join(parameter(one, addresses) for one in job["parameters"])
    return grid.Launch(tuple(job["grid"]), tuple(job["block"]), parameters, arrays, poison=poison)


@pytest.mark.parametrize("name", GRIDS)
def test_lifted_warps_give_what_the_gpu_gave(name: str, tmp_path: Path) -> None:
    lifted = kernel(name)
    program = grid.build(tmp_path, lifted)
    for poison in (1, 0xDA3E39CB):
        stored = grid.run(program, lifted, launch(GRIDS[name], poison))
        assert [hashlib.sha256(one).hexdigest() for one in stored] == GRIDS[name]["written"]


def test_the_reference_gives_what_the_gpu_gave() -> None:
    exact = reciprocal("exact")
    for form, scale in (("half", 32.0), ("bf16", 0.25)):
        job = GRIDS[f"vllm-0.33.0.next3.{form}-block-to-nvfp4"]
        values = values_of("float16" if form == "half" else "bfloat16", words(job))
        packed, scales = quantize_as_vllm(values, scale, exact)
        assert [hashlib.sha256(one.tobytes()).hexdigest() for one in (packed, scales)] == job["written"]
    job = GRIDS["vllm-0.33.0.next3.bf16-block-to-mxfp4"]
    made = quantize_to_powers_as_vllm(values_of("bfloat16", words(job)), 1.0, exact, rounding="rounded")
    assert [hashlib.sha256(one.tobytes()).hexdigest() for one in made] == job["written"]


def words(job: dict[str, Any]) -> Any:
    return np.frombuffer(content(job["arrays"][0]), dtype=np.uint16).reshape(-1, 16)


def test_the_reference_gives_the_gpus_codes_of_a_gemv() -> None:
    for name, st in (("pristine", 1.0), ("next3", 0.37)):
        job = GRIDS[f"cutlass-4.2.1.{name}.encode-gemv-epilogue"]
        values = np.frombuffer(content(job["arrays"][0]), dtype=np.float32).reshape(-1, 16)
        packed, scales = quantize_as_gemv(values, st)
        assert hashlib.sha256(packed.tobytes()).hexdigest() == job["written"][0]
        there = np.zeros(job["arrays"][2]["bytes"], dtype=np.uint8)
        batch, column = np.divmod(np.arange(len(values)), 64)
        there[column // 4 * 512 + column % 4 + batch * 64 * 128] = scales[:, 0]
        assert hashlib.sha256(there.tobytes()).hexdigest() == job["written"][1]


def test_no_reciprocal_of_the_gpu_is_beyond_what_is_executed() -> None:
    found = FOUND["reciprocal"]
    assert sum(found.values()) == 1 << 32
    assert found["further off"] == found["at an edge"] == 0
    assert found["one above"] > 0 < found["one below"]


def test_host_and_reference_have_the_same_reciprocals(tmp_path: Path) -> None:
    random = np.random.default_rng(3).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    edges = np.array(
        [0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000, 0x40C00000, 0x7E800000, 0x7E800001]
    )
    bits = np.concatenate([random, edges.astype(np.uint32), np.zeros(22, dtype=np.uint32)])
    lifted = kernel_of_reciprocal()
    program = grid.build(tmp_path, lifted)
    for kind in grid.RECIPROCALS:
        arrays = (grid.Array(1 << 32, bits.tobytes()), grid.Array(1 << 33, bytes(4 * len(bits)), writable=True))
        one = grid.Launch((len(bits) // 32, 1, 1), (32, 1, 1), grid.pointers(arrays), arrays, kind)
        got = np.frombuffer(grid.run(program, lifted, one)[0], dtype=np.uint32)
        assert np.array_equal(got, reciprocal(kind)(bits.view(np.float32)).view(np.uint32)), kind


def kernel_of_reciprocal() -> Kernel:
    text = document(
        "S2R R0,SR_TID.X", "S2UR UR4,SR_CTAID.X", "LDC R1,c[0x0][0x360]", "IMAD R0,R1,UR4,R0",
        "LDC.64 R2,c[0x0][0x380]", "LDC.64 R4,c[0x0][0x388]", "IMAD.WIDE R2,R0,0x4,R2", "IMAD.WIDE R4,R0,0x4,R4",
        "LDG.E R6,desc[UR4][R2.64]", "MUFU.RCP R6,R6", "STG.E desc[UR4][R4.64],R6", "EXIT",
    )  # fmt: skip
    found = translate(text, arch=ARCH, name=KERNEL_NAME, grid=True)
    return Kernel(found.c, found.parameters, found.block_size)


def test_a_store_outside_of_the_arrays_is_reported(tmp_path: Path) -> None:
    lifted = kernel_of_reciprocal()
    program = grid.build(tmp_path, lifted)
    arrays = (grid.Array(1 << 32, bytes(128)), grid.Array(1 << 33, bytes(64), writable=True))
    with pytest.raises(ProofError, match=r"stray store of 4 bytes at 0x200000040"):
        grid.run(program, lifted, grid.Launch((1, 1, 1), (32, 1, 1), grid.pointers(arrays), arrays))


def test_a_jump_table_leads_each_thread_to_its_place(tmp_path: Path) -> None:
    lines = (
        *("S2R R0,SR_TID.X", "LDC.64 R4,c[0x0][0x380]", "IMAD.SHL.U32 R0,R0,0x4,RZ", "LDC R2,c[0x2][R0]"),
        *("IADD3 R4,P0,R4,R0,RZ", "IADD3.X R5,R5,RZ,RZ,P0,!PT", "BRX R2,-0x70"),
        *("MOV R6,0x7", "BRA 0xa0", "MOV R6,0x9", "STG.E desc[UR4][R4.64],R6", "EXIT"),
    )
    out = grid.Array(0x7F00_0000_0000, bytes(16), writable=True)
    one = grid.Launch((1, 1, 1), (4, 1, 1), grid.pointers([out]), (out,))

    def run(*words: int) -> list[int]:
        made = translate(document(*lines), arch=ARCH, name=KERNEL_NAME, words=words, grid=True)
        lifted = Kernel(made.c, made.parameters, made.block_size)
        (stored,) = grid.run(grid.build(tmp_path, lifted, quick=True), lifted, one)
        return list(np.frombuffer(stored, dtype=np.uint32))

    assert run(0x90, 0x70, 0x90, 0x70) == [9, 7, 9, 7]
    for wrong in ((0x90, 0x74, 0x90, 0x70), (0x90, 0x70)):  # no instruction; and no more words
        with pytest.raises(ProofError, match="stray"):
            run(*wrong)
