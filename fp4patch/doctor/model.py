"""Directories of models: whether a checkpoint is of NVFP4, and which backend vLLM takes for it on SM12x.

The order of the backends is recorded from each release's source (``records/backends.json``, of which
docs/moe-backends.md is made, too).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fp4patch.binaries.findings import Finding, Level
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.errors import UsageError
from fp4patch.core.wording import listed
from fp4patch.doctor.recorded import record_of

RECORD = "records/backends.json"
CONFIG, OF_MODELOPT = "config.json", "hf_quant_config.json"
_LARGEST = 1 << 24
"""Bytes of a configuration that is read."""
_DENSE, _EXPERTS = "moe-backends, dense", "moe-backends"
_NUMBERS_OF_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
# Example: _`marlin`_
_BACKEND = re.compile(r"(_?)`([\w-]+)`_?")
_IN_16_BITS = re.compile(r"marlin|humming|emulation", re.IGNORECASE)


@dataclass(frozen=True)
class Model:
    """What the configuration of a checkpoint says of its format."""

    format: str
    """``NVFP4``, ``MXFP4``, ``fp8``; empty: it is not quantized."""
    activations: int
    """Bits of the activations, if the format is NVFP4: 4 or 16; 0: not known."""
    by: str
    """Program that made it: ``ModelOpt``, ``compressed-tensors``."""
    file: str
    """File that says so."""
    has_experts: bool
    cache: str = ""
    """Format of the KV cache, if the checkpoint names one."""


def read(path: Path) -> Model | None:
    """Return what the configuration in a directory says, or that file; None: it is no model.

    UsageError: a file that was named is no JSON document.
    """
    if path.is_dir():
        config, quantized = _document(path / CONFIG), _document(path / OF_MODELOPT)
    elif path.name in (CONFIG, OF_MODELOPT):
        named = _document(path)
        if named is None:
            raise UsageError(f"{path} is no JSON document of a model", help="name the model's directory")
        config, quantized = (named, None) if path.name == CONFIG else (_document(path.with_name(CONFIG)), named)
    else:
        return None
    config = config or {}
    if not (quantized or config.get("model_type") or config.get("architectures")):
        return None
    inner = config.get("text_config")
    places = [config, inner] if isinstance(inner, dict) else [config]
    experts = any(isinstance(number := one.get(name), int) and number for one in places for name in _NUMBERS_OF_EXPERTS)
    own = next((found for one in places if isinstance(found := one.get("quantization_config"), dict)), None)
    if quantized and own is None:
        stated = quantized.get("quantization")
        return _of_modelopt(stated if isinstance(stated, dict) else {}, OF_MODELOPT, has_experts=experts)
    return _of_config(own, has_experts=experts) if own is not None else Model("", 0, "", CONFIG, experts)


def _of_config(own: Mapping[str, Any], *, has_experts: bool) -> Model:
    method = str(own.get("quant_method") or "an unnamed method")
    if method.startswith("modelopt"):
        return _of_modelopt(own, CONFIG, has_experts=has_experts)
    if method == "compressed-tensors":
        return _of_compressed_tensors(own, has_experts=has_experts)
    return Model(method.upper() if "fp4" in method.lower() else method, 0, method, CONFIG, has_experts)


def _document(path: Path) -> dict[str, Any] | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _of_modelopt(quantization: Mapping[str, Any], file: str, *, has_experts: bool) -> Model:
    algorithm = str(quantization.get("quant_algo") or "")
    bits = {"NVFP4": 4, "W4A16_NVFP4": 16}.get(algorithm, 0)
    cache = str(quantization.get("kv_cache_quant_algo") or "")
    return Model("NVFP4" if bits else algorithm, bits, "ModelOpt", file, has_experts, cache)


def _of_compressed_tensors(quantization: Mapping[str, Any], *, has_experts: bool) -> Model:
    groups = quantization.get("config_groups")
    schemes = set[tuple[str, int]]()
    for group in groups.values() if isinstance(groups, dict) else ():
        weights, given = (_part(group, name) for name in ("weights", "input_activations"))
        is_fp4 = weights.get("num_bits") == 4 and weights.get("type") == "float"
        name = {16: "NVFP4", 32: "MXFP4"}.get(weights.get("group_size", 0), "") if is_fp4 else ""
        name = name or str(quantization.get("format") or "another format")
        bits = 16 if not given else 4 if (given.get("num_bits"), given.get("type")) == (4, "float") else 0
        schemes.add((name, bits))
    if len(schemes) != 1:
        every = listed(sorted({name for name, _ in schemes})) if schemes else str(quantization.get("format") or "")
        return Model(f"{every}, in several schemes" if schemes else every, 0, "compressed-tensors", CONFIG, has_experts)
    ((name, bits),) = schemes
    return Model(name, bits if name == "NVFP4" else 0, "compressed-tensors", CONFIG, has_experts)


def _part(group: object, name: str) -> Mapping[str, Any]:
    found = group.get(name) if isinstance(group, dict) else None
    return found if isinstance(found, dict) else {}


def findings(model: Model, gpus: Sequence[Arch]) -> Iterator[Finding]:
    """Yield the format, then for each GPU the backends that the newest recorded release takes."""
    bits = f", W4A{model.activations}" if model.activations else ""
    by = f" by {model.by}" if model.by else ""
    if model.format != "NVFP4" or not model.activations:
        what = f"{model.file}: {model.format or 'it is not quantized'}{bits}{by}, and not NVFP4 of W4A4 or W4A16"
        yield Finding(Level.NONE, "format", what, "of other formats nothing is recorded")
        return
    cache = f", KV cache {model.cache}" if model.cache else ""
    yield Finding(Level.GREEN, "format", f"{model.file}: {model.format}{bits}{by}{cache}")
    for gpu in gpus:
        if gpu not in GPUS:
            yield Finding(Level.NONE, str(gpu), f"the backends are recorded for {listed(GPUS)} alone", "see vLLM's log")
            continue
        yield from (_of_layers(model, gpu, layers, table) for layers, table in _layers(model))


def _layers(model: Model) -> Iterator[tuple[str, str]]:
    yield "dense layers", _DENSE
    if model.has_experts:
        yield "experts", _EXPERTS


def _of_layers(model: Model, gpu: Arch, layers: str, table: str) -> Finding:
    """Return the finding on the layers of one kind, by the last row of their table: the newest release."""
    row = record_of(load().root, RECORD)["tables"][table][-1]
    cell = row["cells"][0 if model.activations == 4 else 1]
    parts = dict(part.split(": ", 1) for part in cell.split("; ") if ": " in part)
    names = [
        (name, bool(mark or _IN_16_BITS.search(name))) for mark, name in _BACKEND.findall(parts.get(model.by, cell))
    ]
    (first, in_16_bits), *others = names
    what = "multiplies in 16 bits" if in_16_bits else "multiplies in FP4"
    rest = f"; else {listed((name for name, _ in others[:2]), 'or')}" if others else ""
    told = f"{gpu}: vLLM {row['last']} takes {first}, which {what}, if its library is there{rest}"
    remedy = "a checkpoint of W4A4 is multiplied in FP4" if in_16_bits else ""
    return Finding(Level.YELLOW if in_16_bits else Level.GREEN, layers, told, remedy)
