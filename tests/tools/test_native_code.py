"""The measurement of code for one GPU against PTX."""

from __future__ import annotations

from tools import native_code

PRINTED = """\
ptxas info    : Compiling entry function '_Z1ki' for 'sm_121a'
ptxas info    : Function properties for _Z1ki
    8 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 380 bytes cmem[0]
ptxas info    : Compiling entry function '_Z1li' for 'sm_121a'
ptxas info    : Function properties for _Z1li
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 19 registers, used 0 barriers
"""


def test_registers_and_spills_of_each_kernel_are_read() -> None:
    assert native_code.usage(PRINTED) == {"_Z1ki": [40, 12, 4], "_Z1li": [19, 0, 0]}


def test_a_command_keeps_its_options_and_loses_launcher_architectures_and_files() -> None:
    command = (
        "/opt/ccache /cuda/bin/nvcc -DX='a b' -std=c++17 -gencode arch=compute_80,code=sm_80 "
        "--generate-code=arch=compute_80,code=compute_80 -MD -MT k.o -MF k.d -x cu -c k.cu -o k.o"
    )
    assert native_code.compiler(command) == ["/cuda/bin/nvcc", "-DX=a b", "-std=c++17", "-x", "cu"]
    assert native_code.gencode(command) == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
    ]


def test_sums_compare_only_kernels_that_both_have() -> None:
    one = {
        "built": {"seconds": 2.4, "bytes": 17},
        "ptx": {"seconds": 1.4, "bytes": 10},
        "just_in_time": {"seconds": 2.6, "kernels": {"k": [40, 12, 4], "gone": [9, 9, 9]}},
        "native": {"seconds": 3.0, "bytes": 5, "kernels": {"k": [38, 0, 2], "new": [1, 1, 1]}},
    }
    sums = native_code.total({"k.cu": one})
    assert sums == {
        "files": 1,
        "built_seconds": 2,
        "ptx_seconds": 1,
        "native_seconds": 3,
        "just_in_time_seconds": 3,
        "built_bytes": 17,
        "ptx_bytes": 10,
        "native_bytes": 5,
        "kernels": 1,
        "just_in_time_spilled": 16,
        "native_spilled": 2,
        "fewer_registers": 1,
        "more_registers": 0,
    }
