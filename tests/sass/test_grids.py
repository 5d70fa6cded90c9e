"""Whole warps against silicon: lifted sm_90 kernels give what a GPU gave (``golden/make.py grids``)."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_grids import content, parameter
from listings import ARCH, document, kernel_of_reciprocal

from fp4patch.sass import grid
from fp4patch.sass.error import SassError
from fp4patch.sass.operands import LAYOUTS
from fp4patch.sass.program import Kernel
from fp4patch.sass.tensor_map import TensorMap
from fp4patch.sass.translate import translate

GOLDEN = Path(__file__).parent / "golden"
FOUND: dict[str, Any] = json.loads((GOLDEN / "grids.json").read_text())
GRIDS = {name: one for name, one in FOUND["grids"].items() if name != "grids.reciprocal"}


def kernel(name: str) -> Kernel:
    text = gzip.decompress((GOLDEN / "listings" / f"{name}.txt.gz").read_bytes()).decode()
    return translate(text, arch=(9, 0), grid=True)


def launch(job: dict[str, Any], poison: int) -> grid.Launch:
    addresses = [0x7F00_0000_0000 + (number << 32) for number in range(len(job["arrays"]))]
    arrays = tuple(
        grid.Array(address, content(array), not {"seed", "hex"} & array.keys())
        for address, array in zip(addresses, job["arrays"], strict=True)
    )
    parameters = b""
    for one in job["parameters"]:
        if isinstance(one[0], dict):  # a tensor map begins at a multiple of 64 bytes in the constant bank
            parameters += bytes(-(LAYOUTS[9].parameters + len(parameters)) % 64)
        parameters += parameter(one, addresses, tensor_map)
    size = tuple(job["block"])
    return grid.Launch(tuple(job["grid"]), size, parameters, arrays, poison=poison, shared=job.get("shared", 0))


def tensor_map(one: dict[str, Any], address: int, **more: int | tuple[int, ...]) -> bytes:
    sizes, strides, box = (tuple(one[name]) for name in ("sizes", "strides", "box"))
    fields: dict[str, Any] = {"type": one["type"], "swizzle": one["swizzle"], **more}
    return TensorMap(address=address, sizes=sizes, strides=strides, box=box, **fields).content


@pytest.mark.parametrize("name", GRIDS)
def test_lifted_warps_give_what_the_gpu_gave(name: str, tmp_path: Path) -> None:
    lifted = kernel(name)
    program = grid.build(tmp_path, lifted)
    for poison in (1, 0xDA3E39CB):
        stored, _ = grid.run(program, lifted, launch(GRIDS[name], poison))
        assert [hashlib.sha256(one).hexdigest() for one in stored] == GRIDS[name]["written"]


def test_no_reciprocal_of_the_gpu_is_beyond_what_is_executed() -> None:
    found = FOUND["reciprocal"]
    assert sum(found.values()) == 1 << 32
    assert found["further off"] == found["at an edge"] == 0
    assert found["one above"] > 0 < found["one below"]


def test_a_store_outside_of_the_arrays_is_reported(tmp_path: Path) -> None:
    lifted = kernel_of_reciprocal()
    program = grid.build(tmp_path, lifted)
    arrays = (grid.Array(1 << 32, bytes(128)), grid.Array(1 << 33, bytes(64), writable=True))
    with pytest.raises(SassError, match=r"stray store of 4 bytes at 0x200000040"):
        grid.run(program, lifted, grid.Launch((1, 1, 1), (32, 1, 1), grid.pointers(arrays), arrays))


def test_a_tensor_that_was_not_measured_is_an_error(tmp_path: Path) -> None:
    lifted, job = kernel("grids.tensors"), GRIDS["grids.tensors"]
    program = grid.build(tmp_path, lifted, quick=True)
    whole = launch(job, 1)
    ((described,),) = job["parameters"][2:3]
    before = tensor_map(described, whole.arrays[1].address)
    assert before in whole.parameters

    def run(content: bytes) -> None:
        grid.run(program, lifted, replace(whole, parameters=whole.parameters.replace(before, content)))

    kinds: list[dict[str, int | tuple[int, ...]]] = [
        {"fill": 1},
        {"interleave": 1},
        {"type": 12},
        {"type": 10},
        {"steps": (1, 2)},
    ]
    for more in kinds:
        with pytest.raises(SassError, match="tensor of a kind that is not executed"):
            run(tensor_map(described, whole.arrays[1].address, **more))
    with pytest.raises(SassError, match="tensor map that is none"):
        run(bytes(128))


def test_a_jump_table_leads_each_thread_to_its_place(tmp_path: Path) -> None:
    lines = (
        "S2R R0,SR_TID.X",
        "LDC.64 R4,c[0x0][0x380]",
        "IMAD.SHL.U32 R0,R0,0x4,RZ",
        "LDC R2,c[0x2][R0]",
        "IADD3 R4,P0,R4,R0,RZ",
        "IADD3.X R5,R5,RZ,RZ,P0,!PT",
        "BRX R2,-0x70",
        "MOV R6,0x7",
        "BRA 0xa0",
        "MOV R6,0x9",
        "STG.E desc[UR4][R4.64],R6",
        "EXIT",
    )
    out = grid.Array(0x7F00_0000_0000, bytes(16), writable=True)
    one = grid.Launch((1, 1, 1), (4, 1, 1), grid.pointers([out]), (out,))

    def run(*words: int) -> list[int]:
        lifted = translate(document(*lines), arch=ARCH, words=words, grid=True)
        ((stored,), _) = grid.run(grid.build(tmp_path, lifted, quick=True), lifted, one)
        return list(np.frombuffer(stored, dtype=np.uint32))

    assert run(0x90, 0x70, 0x90, 0x70) == [9, 7, 9, 7]
    for wrong in ((0x90, 0x74, 0x90, 0x70), (0x90, 0x70)):  # no instruction; and no more words
        with pytest.raises(SassError, match="stray"):
            run(*wrong)
