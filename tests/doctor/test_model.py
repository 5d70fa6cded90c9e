"""Directories of models: the format that a configuration states, and the backends of the record for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fp4patch import cli
from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GPUS, Arch
from fp4patch.doctor import model

FLOAT4 = {"num_bits": 4, "type": "float", "group_size": 16}


def compressed(activations: dict[str, Any] | None, **weights: Any) -> dict[str, Any]:
    group = {"weights": {**FLOAT4, **weights}, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (compressed(FLOAT4), ("NVFP4", 4)),
        (compressed(None), ("NVFP4", 16)),
        (compressed({"num_bits": 8, "type": "float"}), ("NVFP4", 0)),
        (compressed(None, group_size=32), ("MXFP4", 0)),
        (compressed(None, type="int"), ("another format", 0)),
        ({"quant_method": "compressed-tensors", "config_groups": "a"}, ("", 0)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, ("NVFP4", 4)),
        ({"quant_method": "modelopt_mixed", "quant_algo": "MIXED_PRECISION"}, ("MIXED_PRECISION", 0)),
        ({"quant_method": "mxfp4"}, ("MXFP4", 0)),
        ({"quant_method": "fp8"}, ("fp8", 0)),
        ({}, ("an unnamed method", 0)),
    ],
)
def test_each_program_states_format_and_activations(
    tmp_path: Path, config: dict[str, Any], expected: tuple[str, int]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "a", "quantization_config": config}))
    found = model.read(tmp_path)
    assert found
    assert (found.format, found.activations, found.has_experts) == (*expected, False)
    levels = {one.level for one in model.findings(found, GPUS)}
    wanted = {4: {Level.GREEN}, 16: {Level.GREEN, Level.YELLOW}, 0: {Level.NONE}}
    assert levels == wanted[expected[1]]


def test_the_file_of_modelopt_and_a_model_of_experts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["A"], "text_config": {"num_experts": 8}}))
    quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": quantization}))
    assert cli.run(["doctor", "--for", "gb10", str(tmp_path)]) == 0
    assert cli.run(["doctor", "--for", "gb10", str(tmp_path / "hf_quant_config.json")]) == 0
    out = capsys.readouterr().out
    assert out.count("✓ format: hf_quant_config.json: NVFP4, W4A4 by ModelOpt, KV cache FP8") == 2
    assert out.count("✓ dense layers: sm_121: vLLM 0.33.0 takes FlashInferCutlass, which multiplies in FP4") == 2
    assert out.count("✓ experts: sm_121: vLLM 0.33.0 takes flashinfer_cutlass, which multiplies in FP4") == 2
    assert cli.run(["doctor", "--for", "h100", str(tmp_path)]) == 0
    assert "? sm_90: the backends are recorded for sm_120 and sm_121 alone" in capsys.readouterr().out


def test_16_bits_are_a_reservation() -> None:
    one = model.Model("NVFP4", 16, "ModelOpt", "config.json", has_experts=True)
    _, dense, experts = model.findings(one, [Arch(12, 1)])
    assert (dense.level, experts.level) == (Level.YELLOW, Level.YELLOW)
    assert "takes Marlin, which multiplies in 16 bits" in dense.found
    assert "takes marlin, which multiplies in 16 bits" in experts.found


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"[1]", b"{", b"[" * 100_000, b"null", '{"a": "é"}'.encode("utf-16")]
)
def test_no_content_of_a_configuration_is_a_model(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes(content)
    assert model.read(tmp_path) is None
    assert cli.run(["doctor", str(tmp_path / "config.json")]) in (1, 2)
    assert capsys.readouterr().err.count("error: ") == 1
