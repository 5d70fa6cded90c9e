"""The reference against silicon: it gives what a GPU gave (``tests/sass/golden/make.py grids``), and the executor."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from golden_grids import content
from listings import kernel_of_reciprocal

from fp4patch.proof.execution.chosen_inputs import reciprocal, values_of
from fp4patch.reference.vllm import quantize_as_gemv, quantize_as_vllm, quantize_to_powers_as_vllm
from fp4patch.sass import grid

GRIDS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "sass/golden/grids.json").read_text())["grids"]


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
