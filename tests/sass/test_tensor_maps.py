"""Tensor maps: those of an H200's driver (``golden/gpu_maps.py``), and what ptxas makes of ``tensormap.replace``."""

from __future__ import annotations

import ctypes
import json
import struct
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cubins import compile_cuda

from fp4patch.sass import Array, Launch, TensorMap, read_cubin

if TYPE_CHECKING:
    from fp4patch.proof.toolchain import Toolchain

MAPS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "golden/tensor_maps.json").read_text())["maps"]


def made(one: dict[str, Any]) -> TensorMap:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in one.items()}
    del fields["content"]
    return TensorMap(**fields)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The stand-in for the CUDA runtime, with a function that reads a map and writes it again."""
    folder = tmp_path_factory.mktemp("recorder")
    again = """
    int again(const uint8_t *bytes, uint8_t *result) {
      struct tensor_map map;
      return tensor_map_read(&map, bytes) && (tensor_map_write(&map, result), 1);
    }
    """
    here = resources.files("fp4patch.sass")
    (folder / "tensor_map.h").write_text((here / "tensor_map.h").read_text())
    (folder / "recorder.c").write_text((here / "recorder.c").read_text() + again)
    command = ["gcc", "-shared", "-fPIC", "-O1", "recorder.c", "-o", "recorder.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "recorder.so"))


@pytest.mark.parametrize("one", MAPS, ids=range(len(MAPS)))
def test_a_map_is_what_the_driver_makes(one: dict[str, Any], recorder: ctypes.CDLL) -> None:
    expected = bytes.fromhex(one["content"])
    assert made(one).content == expected
    rank, found, encode = len(one["sizes"]), ctypes.create_string_buffer(128), ctypes.c_void_p()
    assert recorder.cudaGetDriverEntryPoint(b"cuTensorMapEncodeTiled", ctypes.byref(encode), 0, None) == 0
    assert encode.value
    status = ctypes.CFUNCTYPE(ctypes.c_int)(encode.value)(
        *(found, one["type"], rank, ctypes.c_void_p(one["address"])),
        *((ctypes.c_uint64 * rank)(*one["sizes"]), (ctypes.c_uint64 * rank)(*one["strides"])),
        *((ctypes.c_uint32 * rank)(*one["box"]), (ctypes.c_uint32 * rank)(*one["steps"])),
        *(one["interleave"], one["swizzle"], one["promotion"], one["fill"]),
    )
    assert (status, found.raw) == (0, expected)
    assert recorder.again(expected, found) == 1
    assert found.raw == expected


@pytest.mark.parametrize(("place", "bits"), [(8, 1), (31, 1), (54, 0x80), (60, 1), (72, 0x11), (127, 1), (0, 8)])
def test_other_bytes_are_no_map(place: int, bits: int, recorder: ctypes.CDLL) -> None:
    content = bytearray(made(MAPS[0]).content)
    content[place] ^= bits
    assert recorder.again(bytes(content), ctypes.create_string_buffer(128)) == 0
    assert recorder.again(bytes(128), ctypes.create_string_buffer(128)) == 0


OLD = TensorMap(6, 0x5000, (100, 41, 42, 43, 44), (208, 9008, 1 << 36, 1 << 37), (8, 5, 3, 2, 1), (1, 2, 3, 4, 5))
NEW = TensorMap(
    *(9, 0x7F12_3456_7890, (7, 1 << 31, 9, 10, 1 << 32), (1 << 39, 32, (1 << 38) + 48, 64), (16, 256, 17, 18, 19)),
    *((5, 4, 8, 2, 1), 3, 1, 1),
)
FIELDS = (
    ("global_address", "b64", "0x7F1234567890"),
    ("rank", "b32", "4"),
    *((f"global_dim;{d}", "b32", f"{size & 0xFFFF_FFFF}") for d, size in enumerate(NEW.sizes)),
    *((f"global_stride;{d}", "b64", f"{stride}") for d, stride in enumerate(NEW.strides)),
    *((f"box_dim;{d}", "b32", f"{size}") for d, size in enumerate(NEW.box)),
    *((f"element_stride;{d}", "b32", f"{step}") for d, step in enumerate(NEW.steps)),
    ("elemtype", "b32", "10"),  # a bfloat16, of which the driver's number is 9
    ("interleave_layout", "b32", "1"),
    ("swizzle_mode", "b32", "3"),
    ("fill_mode", "b32", "1"),
)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_121a"])
def test_the_machine_code_of_each_field_changes_that_field(arch: str, toolchain: Toolchain, tmp_path: Path) -> None:
    replaced = "\n".join(
        f'asm volatile("tensormap.replace.tile.{name.partition(";")[0]}.shared::cta.b1024.{kind} [%0], '
        f'{name.partition(";")[2]}{", " if ";" in name else ""}{value};" :: "r"(at) : "memory");'
        for name, kind, value in FIELDS
    )
    source = f"""
    extern "C" __global__ void change(const unsigned *from, unsigned *to) {{
      __shared__ __align__(128) unsigned map[32];
      unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(map));
      for (int i = 0; i < 32; ++i) map[i] = from[i];
      {replaced}
      for (int i = 0; i < 32; ++i) to[i] = map[i];
    }}
    """
    cubin = read_cubin(
        compile_cuda(toolchain, source, tmp_path / "map.cubin", "-cubin", f"-arch={arch}"), nvdisasm=toolchain.nvdisasm
    )
    arrays = (Array(1 << 32, OLD.content), Array(2 << 32, bytes(128), writable=True))
    parameters = struct.pack("<2Q", *(one.address for one in arrays))
    (stored,) = cubin.execute("change", Launch((1, 1, 1), (1, 1, 1), parameters, arrays))
    about_shared = replace(NEW, box=OLD.box, steps=OLD.steps, type=OLD.type, swizzle=OLD.swizzle)
    assert stored == NEW.content[:64] + about_shared.content[64:]  # which no field reaches
