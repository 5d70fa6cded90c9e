"""The order of vLLM's operations, on inputs where every reciprocal is exact; the GPU run has the rest."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from golden_grids import content

from fp4patch.reference.blocks import quantize_nvfp4
from fp4patch.reference.vllm import quantize_as_vllm


def exact(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return (np.float32(1) / x).astype(np.float32)


def test_where_reciprocals_are_exact_it_is_the_formats_own_quantization() -> None:
    random = np.random.default_rng(4)
    x = random.uniform(-6, 6, (64, 256)).astype(np.float16)
    x[:, ::16] = 6 * 2.0 ** random.integers(0, 4, (64, 16))  # the block's maximum makes its scale a power of two
    packed, scales = quantize_as_vllm(x, 32.0, exact)
    expected = quantize_nvfp4(x.astype(np.float32), 1 / 32)
    assert np.array_equal(scales, expected.scales)
    assert np.array_equal(packed, expected.packed)


def test_a_block_of_zeros_is_zeros_and_one_of_nan_is_nan() -> None:
    x = np.zeros((1, 48), dtype=np.float16)
    x[0, 16:32] = np.nan
    x[0, 32:] = np.inf
    packed, scales = quantize_as_vllm(x, 1.0, exact)
    assert scales.tolist() == [[0, 0x7F, 0x7E]]
    assert packed.tolist() == [[0] * 8 + [0x77] * 16]


def test_a_global_scale_for_each_row() -> None:
    x = np.ones((2, 16), dtype=np.float16)
    both = quantize_as_vllm(x, [1.0, 4.0], exact)
    for row, scale in enumerate((1.0, 4.0)):
        packed, scales = quantize_as_vllm(x[row : row + 1], scale, exact)
        assert np.array_equal(both[0][row : row + 1], packed)
        assert np.array_equal(both[1][row : row + 1], scales)


@pytest.mark.parametrize(("form", "scale"), [("half", 32.0), ("bf16", 0.25)])
def test_it_gives_what_the_gpu_gave(form: str, scale: float) -> None:
    golden = json.loads((Path(__file__).parents[1] / "sass/golden/grids.json").read_text())["grids"]
    job = golden[f"vllm-0.33.0.next3.{form}-block-to-nvfp4"]
    bits = np.frombuffer(content(job["arrays"][0]), dtype=np.uint16).reshape(-1, 16)
    values = bits.view(np.float16) if form == "half" else (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    made = quantize_as_vllm(values, scale, exact)
    assert [hashlib.sha256(one.tobytes()).hexdigest() for one in made] == job["written"]
