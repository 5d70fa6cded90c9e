"""The library as its README shows it: a kernel of one's own is compiled, listed and executed, with no GPU."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cubins import compile_cuda

import fp4patch.sass
from fp4patch.sass import Array, Cubin, Launch, SassError, read_cubin
from fp4patch.sass.semantics import TABLE as OF_THREADS
from fp4patch.sass.warps import TABLE as OF_WARPS

if TYPE_CHECKING:
    from fp4patch.proof.toolchain import Toolchain

README = Path(fp4patch.sass.__file__).with_name("README.md")
SOURCE, EXAMPLE = re.findall(r"```(?:cuda|python)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
TABLE = {**OF_THREADS, **OF_WARPS}
SOURCES = "PTX ISA|CUDA Binary Utilities|by experiment"
OTHER = 'extern "C" __global__ void ticks(long long *out) { *out = clock64(); }\n'


@pytest.fixture(scope="module", params=["sm_90", "sm_121"])
def cubin(request: pytest.FixtureRequest, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cubin") / "kernels.cubin"
    return compile_cuda(toolchain, SOURCE + OTHER, file, "-O3", "-cubin", f"-arch={request.param}")


def test_the_example_of_the_readme_runs(
    cubin: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cubin.parent)
    monkeypatch.setenv("PATH", f"{toolchain.nvdisasm.parent}:/usr/bin:/bin")
    exec(compile(EXAMPLE, README.name, "exec"), {})
    assert capsys.readouterr().out == "1008.0 3056.0\n"


def test_a_list_has_each_kernel_or_the_reason(cubin: Path, toolchain: Toolchain) -> None:
    command: list[str | Path] = [sys.executable, "-m", "fp4patch.sass", "--nvdisasm", toolchain.nvdisasm]
    done = subprocess.run([*command, cubin], capture_output=True, text=True, check=False)
    second, first = done.stdout.splitlines()
    assert re.match(r"ticks: the executor does not support CS2R.*0x", first), first
    assert second == "sums: can be executed"
    assert done.returncode == 1
    (cubin.parent / "text").write_text("no cubin")
    done = subprocess.run([*command, cubin.parent / "text"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (
        "",
        "error: the object file is not a cubin\n  help: compile it again\n",
        1,
    )


def test_a_kernel_runs_with_arrays_from_files(cubin: Path, toolchain: Toolchain) -> None:
    np.save(cubin.parent / "values.npy", np.arange(128, dtype=np.float32))
    np.save(cubin.parent / "zeros.npy", np.zeros(2, dtype=np.float32))
    (cubin.parent / "short.npy").write_bytes((cubin.parent / "values.npy").read_bytes()[:-4])
    np.save(cubin.parent / "turned.npy", np.arange(128, dtype=">f4"))
    np.save(cubin.parent / "columns.npy", np.ones((4, 2), order="F"))
    np.save(cubin.parent / "dates.npy", np.zeros(4, dtype="datetime64[s]"))
    (cubin.parent / "header.npy").write_bytes(b"\x93NUMPY\x01\x00\x04\x00{'a'")
    command: list[str | Path] = [sys.executable, "-m", "fp4patch.sass", "--nvdisasm", toolchain.nvdisasm, cubin]
    command += ["--run", "sums", "--grid", "2", "--block", "32"]
    environ = {**os.environ, "PYTHONPATH": str(README.parents[2])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        given = [*command, *arguments]
        return subprocess.run(given, cwd=cubin.parent, env=environ, capture_output=True, text=True, check=False)

    done = run("values.npy", "zeros.npy:results.npy")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert np.load(cubin.parent / "results.npy").tolist() == [1008.0, 3056.0]
    for arguments, said in (
        (["values.npy"], "sums has 2 parameters, and 1 arguments were given"),
        (["values.npy", "u32=7"], "argument u32=7 has 4 bytes, where sums has a parameter of 8"),
        (["values.npy", "f32=x"], "x is not of type f32"),
        (["values.npy", "kernels.cubin"], "kernels.cubin is no .npy file"),
        (["values.npy", "short.npy"], "short.npy has 508 bytes of data, where its header says 512"),
        (["values.npy", "turned.npy"], "help: save array.astype(array.dtype.newbyteorder())"),
        (["values.npy", "columns.npy"], "columns.npy is in Fortran's order"),
        (["values.npy", "dates.npy"], "dates.npy is no array of numbers"),
        (["values.npy", "header.npy"], "header.npy is no array of numbers"),
        (["values.npy", "absent.npy"], "absent.npy"),
        (["values.npy", "zeros.npy"], "stray store of 4 bytes"),
    ):
        done = run(*arguments)
        assert done.returncode == 1
        assert said in done.stderr


def test_a_store_beside_the_arrays_is_an_error(cubin: Path, toolchain: Toolchain) -> None:
    code: Cubin = read_cubin(cubin, nvdisasm=toolchain.nvdisasm)
    values, results = Array(1 << 32, bytes(4 * 64)), Array(1 << 33, b"", writable=True)
    with pytest.raises(SassError, match="stray store"):
        code.execute("sums", Launch((1, 1, 1), (32, 1, 1), struct.pack("<QQ", 1 << 32, 1 << 33), (values, results)))


def test_several_launches_take_one_compilation(cubin: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    code, said, compiler = read_cubin(cubin, nvdisasm=toolchain.nvdisasm), tmp_path / "said", tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {said}\nexec gcc "$@"\n')
    compiler.chmod(0o755)

    def sums(*values: float) -> list[float]:
        arrays = (Array(1 << 32, struct.pack("<64f", *values)), Array(1 << 33, bytes(4), writable=True))
        launch = Launch((1, 1, 1), (32, 1, 1), struct.pack("<QQ", 1 << 32, 1 << 33), arrays)
        (stored,) = code.execute("sums", launch, compiler=compiler)
        return list(struct.unpack("<f", stored))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda value: sums(*[value] * 64), range(8)))
    assert [sums(*range(64)), *found] == [[1008.0], *([32.0 * value] for value in range(8))]
    compiled = [line for line in said.read_text().splitlines() if "grid.c" in line]
    assert len(compiled) <= 4  # the threads that began together
    assert [sums(*[1.0] * 64), said.read_text().count("grid.c")] == [[32.0], len(compiled)]


def test_the_table_has_each_instruction_with_the_source_of_its_meaning() -> None:
    command = [sys.executable, "-m", "fp4patch.sass", "--table"]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [row.split("\t") for row in rows] == [[opcode, TABLE[opcode].source] for opcode in sorted(TABLE)]
    unsourced = {opcode for opcode, one in TABLE.items() if not re.search(SOURCES, one.source)}
    assert unsourced == set()
