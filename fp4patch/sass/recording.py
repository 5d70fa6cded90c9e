"""Run a host program of CUDA without a GPU: what it launches is written down, and then executed.

``recorder.c`` is linked to its objects in place of the CUDA runtime.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from fp4patch.sass.cubin import Cubin
from fp4patch.sass.error import SassError
from fp4patch.sass.grid import Array, Launch
from fp4patch.sass.program import compile_host, run_program


class _Filled(NamedTuple):
    """Memory of which each byte gets a value, as by ``cudaMemsetAsync``."""

    address: int
    value: int
    size: int

    def filled(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the arrays with it. SassError if it is in none that can be written."""
        begins = [self.address - one.address for one in arrays]
        inside = [
            one.writable and 0 <= begin <= len(one.content) - self.size
            for begin, one in zip(begins, arrays, strict=True)
        ]
        if not any(inside):
            raise SassError(f"cudaMemsetAsync sets {self.size} bytes at {self.address:#x}, which is no writable array")
        filled = bytes([self.value]) * self.size
        return [
            replace(one, content=one.content[:begin] + filled + one.content[begin + self.size :]) if holds else one
            for one, begin, holds in zip(arrays, begins, inside, strict=True)
        ]


@dataclass(frozen=True)
class HostProgram:
    """A linked program, and the cubins of its objects."""

    file: Path
    cubins: tuple[Cubin, ...]

    def run(
        self,
        arguments: Sequence[int],
        arrays: Sequence[Array],
        *,
        races: bool = False,
        unwritten: bool = False,
        poison: int = Launch.poison,
    ) -> list[bytes]:
        """Return the writable arrays after all launches, which run one after the other.

        The program gets numbers as its arguments, addresses of the arrays among them. ``races``, ``unwritten`` and
        ``poison`` are those of each launch.
        SassError if it launches nothing, or a launch is no kernel of these cubins or cannot be executed.
        """
        launched = False
        for step in self._steps(arguments):
            if isinstance(step, _Filled):
                arrays = step.filled(arrays)
                continue
            cubin, kernel, launch = step
            given = replace(launch, arrays=tuple(arrays), races=races, unwritten=unwritten, poison=poison)
            stored = iter(cubin.execute(kernel, given))
            arrays = [replace(one, content=next(stored)) if one.writable else one for one in arrays]
            launched = True
        if not launched:
            raise SassError(f"{self.file.name} launches no kernel")
        return [one.content for one in arrays if one.writable]

    def _steps(self, arguments: Sequence[int]) -> Iterator[tuple[Cubin, str, Launch] | _Filled]:
        of = {kernel: cubin for cubin in self.cubins for kernel in cubin.kernels}
        with tempfile.TemporaryDirectory(prefix="sass-") as folder:
            written, sizes = Path(folder, "launches"), Path(folder, "parameters")
            written.touch()
            places = {kernel: cubin.parameters(kernel) for kernel, cubin in of.items()}
            rows = (f"{kernel} {' '.join(str(size) for _, size in one)}\n" for kernel, one in places.items())
            sizes.write_text("".join(rows))
            environ = {"SASS_LAUNCHES": str(written), "SASS_PARAMETERS": str(sizes)}
            status, _, said = run_program([self.file.resolve(), *map(str, arguments)], environ=environ)
            if status:
                raise SassError(f"{self.file.name} ended with status {status}", help=said.strip()[-1000:])
            lines = written.read_text().splitlines()
        for head, content in zip(lines[::2], lines[1::2], strict=True):
            kernel, *numbers = head.split()
            if kernel == "=":
                yield _Filled(*map(int, numbers))
                continue
            x, y, z, bx, by, bz, shared = map(int, numbers)
            parameters = bytearray()
            for (offset, _), one in zip(places[kernel], content.split(), strict=True):
                parameters = parameters.ljust(offset, b"\0") + bytes.fromhex(one)
            yield of[kernel], kernel, Launch((x, y, z), (bx, by, bz), bytes(parameters), (), shared=shared)


def link(objects: Sequence[Path], to: Path, *, compiler: Path | str = "g++") -> None:
    """Link a host program's objects with ``recorder.c``; SassError with the compiler's or the linker's words."""
    here = resources.files("fp4patch.sass")
    texts = {name: (here / name).read_text(encoding="utf-8") for name in ("recorder.c", "tensor_map.h")}
    compile_host(to.parent, texts, [str(compiler), "-O1", "-c", "recorder.c", "-o", "recorder.o"], None)
    status, _, said = run_program([compiler, *objects, to.parent / "recorder.o", "-o", to])
    if status:
        raise SassError(f"{to.name} cannot be linked without the CUDA runtime", help=said.strip()[-1000:])
