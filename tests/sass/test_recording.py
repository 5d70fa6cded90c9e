"""A host program runs without the CUDA runtime: its kernels are executed in their order, over the same arrays."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cubins import compile_cuda

from fp4patch.sass import Array, HostProgram, SassError, link, read_cubin

if TYPE_CHECKING:
    from fp4patch.proof.toolchain import Toolchain

KERNELS = """
#include <cstdlib>
__global__ void add(const float *values, float *sums, float more) { sums[threadIdx.x] += values[threadIdx.x] + more; }
template <typename T> __global__ void scale(T *sums) {
  extern __shared__ T moved[];
  moved[threadIdx.x] = sums[threadIdx.x] * T(2);
  __syncthreads();
  sums[threadIdx.x] = moved[blockDim.x - 1 - threadIdx.x];
}
__global__ void mixed(float *sums) {
  __shared__ float one;
  one = 1.0f * threadIdx.x;
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = *(volatile float *)&one;
}
int main(int count, char **arguments) {
  if (count < 3) return count == 2 ? 7 : 0;
  if (count == 5) return mixed<<<1, 64>>>((float *)strtoull(arguments[2], 0, 0)), 0;
  auto values = (const float *)strtoull(arguments[1], 0, 0);
  auto sums = (float *)strtoull(arguments[2], 0, 0);
  if (count == 6) cudaMemsetAsync(sums + 8, atoi(arguments[4]), atoi(arguments[5]), 0);
  add<<<1, 32>>>(values, sums, 0.5f);
  if (count == 6) return 0;
  scale<float><<<1, 32, 128>>>(sums);
  add<<<1, count == 3 ? 32 : 64>>>(values, sums, 0);
}
"""


@pytest.fixture(scope="module")
def program(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> HostProgram:
    folder = tmp_path_factory.mktemp("recording")
    cubin = compile_cuda(toolchain, KERNELS, folder / "kernels.cubin", "-cubin", "-arch=sm_121")
    made = compile_cuda(toolchain, KERNELS, folder / "kernels.o", "-c", "-gencode=arch=compute_121,code=sm_121")
    link([made], folder / "program", compiler=toolchain.host_compiler)
    return HostProgram(folder / "program", (read_cubin(cubin, nvdisasm=toolchain.nvdisasm),))


VALUES = Array(1 << 32, struct.pack("<32f", *range(32)))
SUMS = Array(2 << 32, bytes(128), writable=True)


def test_each_launch_gets_what_those_before_it_left(program: HostProgram) -> None:
    (stored,) = program.run([VALUES.address, SUMS.address], [VALUES, SUMS])
    assert list(struct.unpack("<32f", stored)) == [2 * (31 - place + 0.5) + place for place in range(32)]


def test_memory_is_set_between_launches(program: HostProgram) -> None:
    ones = Array(SUMS.address, struct.pack("<32f", *[1] * 32), writable=True)
    (stored,) = program.run([VALUES.address, ones.address, 1, 0, 16], [VALUES, ones])
    assert list(struct.unpack("<32f", stored)) == [place + 0.5 + (not 8 <= place < 12) for place in range(32)]
    for size, arrays in ((97, [VALUES, ones]), (16, [VALUES])):
        with pytest.raises(SassError, match=f"sets {size} bytes at 0x200000020, which is no writable array"):
            program.run([VALUES.address, ones.address, 1, 0, size], arrays)


def test_races_are_found_in_each_launch(program: HostProgram) -> None:
    addresses = [VALUES.address, SUMS.address]
    assert program.run(addresses, [VALUES, SUMS], races=True) == program.run(addresses, [VALUES, SUMS])
    program.run([*addresses, 1, 2], [VALUES, SUMS])
    with pytest.raises(SassError, match="race of a store to shared memory of 4 bytes"):
        program.run([*addresses, 1, 2], [VALUES, SUMS], races=True)


def test_a_program_that_cannot_be_followed_is_an_error(program: HostProgram, tmp_path: Path) -> None:
    addresses = [VALUES.address, SUMS.address]
    with pytest.raises(SassError, match="stray"):
        program.run([*addresses, 1], [VALUES, SUMS])
    with pytest.raises(SassError, match="program launches no kernel"):
        program.run([], [VALUES, SUMS])
    with pytest.raises(SassError, match="program ended with status 7"):
        program.run([0], [VALUES, SUMS])
    with pytest.raises(SassError, match="program ended with status -6") as found:
        HostProgram(program.file, ()).run(addresses, [VALUES, SUMS])
    assert "no parameters of" in found.value.help
    broken = tmp_path / "broken.o"
    broken.write_text("no object")
    with pytest.raises(SassError, match="cannot be linked") as found:
        link([broken], tmp_path / "broken")
    assert "broken.o" in found.value.help
