"""``python -m fp4patch.sass FILE.cubin``: its kernels, and which can be executed; or run one; or print the table."""

import argparse
import ast
import re
import struct
import sys
from dataclasses import dataclass
from math import prod
from pathlib import Path

from fp4patch.sass import Array, Launch, SassError, read_cubin
from fp4patch.sass.cubin import Cubin
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.warps import TABLE as OF_WARPS

# Example: <f4
_TYPE = re.compile(r"([<>|=])([biufcV])(\d+)")
_NUMBERS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d", "u8": "B", "u16": "H"}
_ARGUMENTS = """\
With --run, the kernel's arguments in their order, one for each parameter:
  values.npy             an array that it reads
  zeros.npy:results.npy  an array that it writes: content before, and the file that gets the content after
  u32=7, f32=0.5, ...    a number: i32, u32, i64, u64, f32, f64, u8 or u16
"""


def main() -> int:
    """Exit status 0 if all kernels can be executed or the one ran, 1 if one cannot, or nothing could be read."""
    form = argparse.RawDescriptionHelpFormatter
    description = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(
        prog="python -m fp4patch.sass", description=description, epilog=_ARGUMENTS, formatter_class=form
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.cubin")
    parser.add_argument("--table", action="store_true", help="print the instructions that can be executed, and exit")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="CUDA's disassembler; by default the one on PATH")
    parser.add_argument("--run", metavar="KERNEL", help="execute this kernel")
    for name, meaning in (("grid", "blocks"), ("block", "threads of a block")):
        parser.add_argument(f"--{name}", default="1", metavar="X,Y,Z", help=f"{meaning}, in up to three dimensions")
    parser.add_argument("--shared", type=int, default=0, metavar="BYTES", help="shared memory besides the kernel's own")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="with --run, see below")
    asked = parser.parse_intermixed_args()
    if asked.table:
        known = {**TABLE, **OF_WARPS}
        sys.stdout.writelines(f"{opcode}\t{known[opcode].source}\n" for opcode in sorted(known))
        return 0
    if asked.file is None or bool(asked.arguments) > bool(asked.run):
        parser.error("name a cubin, or --table; arguments need --run")
    try:
        cubin = read_cubin(asked.file, nvdisasm=asked.nvdisasm)
        if asked.run:
            _run(cubin, asked.run, _size(asked.grid), _size(asked.block), asked.shared, asked.arguments)
            return 0
    except (SassError, OSError) as error:
        more = f"\n  help: {error.help}" if isinstance(error, SassError) and error.help else ""
        sys.stderr.write(f"error: {error}{more}\n")
        return 1
    reasons = {kernel: cubin.reason(kernel) for kernel in cubin.kernels}
    sys.stdout.writelines(f"{kernel}: {reason or 'can be executed'}\n" for kernel, reason in reasons.items())
    return int(any(reasons.values()) or not reasons)


@dataclass
class _File:
    """An array of a ``.npy`` file: its header, and where the result goes."""

    header: bytes
    array: Array
    result: str


def _run(
    cubin: Cubin,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    arguments: list[str],
) -> None:
    if kernel not in cubin.kernels:
        raise SassError(f"no kernel is named {kernel}", help=f"the cubin has {', '.join(cubin.kernels)}")
    places = cubin.parameters(kernel)
    if len(arguments) != len(places):
        raise SassError(f"{kernel} has {len(places)} parameters, and {len(arguments)} arguments were given")
    parameters, files = bytearray(), list[_File]()
    for number, (argument, (offset, size)) in enumerate(zip(arguments, places, strict=True)):
        kind, equals, value = argument.partition("=")
        if equals and kind in _NUMBERS:
            content = _number(kind, value)
        else:
            files.append(_file(argument, 0x1_0000_0000 * (number + 1)))
            content = struct.pack("<Q", files[-1].array.address)
        if len(content) != size:
            raise SassError(f"argument {argument} has {len(content)} bytes, where {kernel} has a parameter of {size}")
        parameters = parameters.ljust(offset, b"\0") + content
    arrays = tuple(file.array for file in files)
    stored = cubin.execute(kernel, Launch(grid, block, bytes(parameters), arrays, shared=shared))
    written = (file for file in files if file.array.writable)
    for file, after in zip(written, stored, strict=True):
        Path(file.result).write_bytes(file.header + after)


def _file(argument: str, address: int) -> _File:
    """Read a file of NumPy's format (``numpy.lib.format``): six bytes, a version, the length of a header, and that."""
    name, _, result = argument.partition(":")
    content = Path(name).read_bytes()
    if content[:6] != b"\x93NUMPY" or len(content) < 12:
        raise SassError(f"{name} is no .npy file", help="numpy.save writes one")
    begin = 12 if content[6] > 1 else 10
    end = begin + int.from_bytes(content[8:begin], "little")
    try:
        about = ast.literal_eval(content[begin:end].decode("latin-1").strip())
        order, _, size = _TYPE.fullmatch(about["descr"]).groups()  # type: ignore[union-attr]
        size = prod(about["shape"]) * int(size)
    except (ValueError, SyntaxError, LookupError, TypeError, AttributeError) as error:
        raise SassError(f"{name} is no array of numbers", help="numpy.save writes one") from error
    if about["fortran_order"]:
        raise SassError(f"{name} is in Fortran's order", help="save numpy.ascontiguousarray of it")
    if order == ">":
        raise SassError(
            f"{name} has the most significant byte first", help="save array.astype(array.dtype.newbyteorder())"
        )
    if len(content) - end != size:
        raise SassError(f"{name} has {len(content) - end} bytes of data, where its header says {size}")
    return _File(content[:end], Array(address, content[end:], writable=bool(result)), result)


def _number(kind: str, value: str) -> bytes:
    try:
        return struct.pack(f"<{_NUMBERS[kind]}", float(value) if kind.startswith("f") else int(value, 0))
    except (ValueError, struct.error) as error:
        raise SassError(f"{value} is not of type {kind}") from error


def _size(text: str) -> tuple[int, int, int]:
    try:
        x, y, z = (*map(int, text.split(",")), 1, 1)[:3]
    except ValueError as error:
        raise SassError(f"{text} is no size", help="up to three numbers, as 4,2,1") from error
    if min(x, y, z) < 1 or text.count(",") > 2:
        raise SassError(f"{text} is no size", help="up to three numbers, as 4,2,1")
    return x, y, z


if __name__ == "__main__":
    sys.exit(main())
