"""Fatbins and cubins in real files, against cuobjdump; damaged ones give one clear error."""

import re
import struct
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from cubins import CONVERTS, compile_cuda, targets

from fp4patch.binaries import cubin as reader
from fp4patch.binaries import fatbin
from fp4patch.binaries.stream_reader import Window
from fp4patch.core.errors import BinaryError
from fp4patch.proof.toolchain import Toolchain

MANY = ("90", "120f", "121a", "compute_90", "compute_121a")


class Read(NamedTuple):
    unit: fatbin.DriverModule
    entries: tuple[fatbin.FatbinEntry, ...]


def read(data: bytes) -> list[Read]:
    found = fatbin.driver_modules(Window(BytesIO(data), "file", len(data), lambda _: None))
    return [Read(unit, tuple(unit.entries)) for unit in found]


def labels(unit: Read) -> list[str]:
    return sorted(f"compute_{e.arch.number}" if e.kind == "ptx" else str(e.arch) for e in unit.entries)


@pytest.fixture(scope="module")
def objects(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """An object file with all of MANY, by the mode of compression."""
    folder = tmp_path_factory.mktemp("objects")

    def get(mode: str) -> bytes:
        path = folder / f"{mode}.o"
        if not path.exists():
            compile_cuda(toolchain, CONVERTS, path, "-c", "-Xfatbin", f"-compress-mode={mode}", *targets(*MANY))
        return path.read_bytes()

    return get


@pytest.mark.parametrize(("mode", "compressions"), [("none", {"none"}), ("size", {"zstd"}), ("speed", {"lz4"})])
def test_reads_every_entry_however_it_is_compressed(
    objects: Callable[[str], bytes], mode: str, compressions: set[str]
) -> None:
    (unit,) = read(objects(mode))
    assert labels(unit) == ["compute_121a", "compute_90", "sm_120f", "sm_121a", "sm_90"]
    assert compressions <= {entry.compression for entry in unit.entries}
    for entry in unit.entries:
        content = fatbin.unpack(entry, "file") if entry.payload else b""
        if entry.kind == "cubin" and content:
            assert reader.parse(content, "file").arch == entry.arch
        elif content:
            assert f".target sm_{entry.arch.number}".encode() in content


def test_agrees_with_cuobjdump(toolchain: Toolchain, objects: Callable[[str], bytes], tmp_path: Path) -> None:
    cuobjdump = toolchain.nvdisasm.with_name("cuobjdump")
    (tmp_path / "o.o").write_bytes(objects("size"))
    run = subprocess.run(
        [str(cuobjdump), "-lelf", "-lptx", str(tmp_path / "o.o")], check=True, capture_output=True, text=True
    )
    (unit,) = read(objects("size"))
    # It hides the f of sm_120f.
    hidden = [name.replace("sm_120f", "sm_120").replace("compute_", "sm_") for name in labels(unit)]
    assert sorted(re.findall(r"\.(sm_\d+[af]?)\.(?:cubin|ptx)", run.stdout)) == sorted(hidden)


@pytest.mark.parametrize("arch", ["90a", "120", "120a", "120f", "121", "121a", "121f", "100a"])
def test_reads_a_cubin_with_its_suffix(toolchain: Toolchain, arch: str, tmp_path: Path) -> None:
    cubin = compile_cuda(toolchain, CONVERTS, tmp_path / "k.cubin", "-cubin", "-arch", f"sm_{arch}")
    data = cubin.read_bytes()
    ((entry,),) = [unit.entries for unit in read(data)]
    parsed = reader.parse(entry.payload, "k")
    assert str(parsed.arch) == f"sm_{arch}"
    assert [f.name for f in parsed.functions if f.kernel] == ["nvfp4_quantize"]
    # Where a tool has taken the note away, it counts as the target that loads on the fewest GPUs.
    blind = data.replace(f"-arch sm_{arch}".encode(), b"-" * len(f"-arch sm_{arch}"))
    assert str(reader.parse(blind, "k").arch) == f"sm_{arch.rstrip('af')}a"


def error_of(read_it: Callable[[], object]) -> BinaryError | None:
    """The error of ours that reading gives, if it gives one; any other error is a failure."""
    try:
        read_it()
    except BinaryError as error:
        return error
    return None


def test_a_file_cut_off_anywhere_gives_one_error_or_less(objects: Callable[[str], bytes]) -> None:
    data = objects("size")
    begin = data.index(b"\x50\xed\x55\xba")
    whole = begin + 16 + struct.unpack_from("<Q", data, begin + 8)[0]
    for end in range(begin + 16, whole, 997):
        error = error_of(lambda cut=data[:end]: read(cut))  # type: ignore[misc]
        assert error is not None
        assert "damaged" in error.message
        assert error.help


def test_refuses_a_length_that_no_cubin_has(objects: Callable[[str], bytes]) -> None:
    data = bytearray(objects("size"))
    begin = data.index(b"\x50\xed\x55\xba")
    struct.pack_into("<Q", data, begin + 16 + 56, 1 << 40)
    with pytest.raises(BinaryError, match="claims 1099511627776 bytes"):
        read(bytes(data))


def test_the_magic_number_as_data_is_no_fatbin() -> None:
    assert read(b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(range(256)) * 8) == []
