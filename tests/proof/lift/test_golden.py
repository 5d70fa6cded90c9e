"""The lifter against silicon: lifted sm_90 code gives what a GPU gave for the same bytes (``golden/make.py``).

By default every 61st group of inputs, 70 million values of a program; FP4PATCH_LIFT_ALL=1 takes all 2^32.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fp4patch.core.arch import Arch
from fp4patch.proof.lift.translate import RUNTIME, runtime, translate

SM_90 = Arch(9, 0)
GOLDEN = Path(__file__).parent / "golden"
PROGRAMS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "golden.json").read_text())["programs"]
STRIDE = 61
SAMPLES = 128
NO_PROGRAM = {"operands", "stochastic"}
"""Headers that are no function of a float alone: the first converts nothing, the second takes random bits."""


def listing(name: str) -> str:
    return gzip.decompress((GOLDEN / "listings" / f"{name}.txt.gz").read_bytes()).decode()


def host(name: str, folder: Path, text: str, *flags: str) -> Path:
    """A program that runs a listing over the inputs of the golden run."""
    program, translation = PROGRAMS[name], translate(text, arch=SM_90)
    (folder / "kernel.inc").write_text(translation.c)
    (folder / RUNTIME).write_text(runtime())
    defines = {
        "LANES": program["lanes"],
        "VALUE": program["value"],
        "OUT": program["out"],
        "PARAMETERS": translation.parameters,
        "BLOCK_SIZE": translation.block_size,
    }
    command = ["gcc", "-std=gnu11", "-O2", "-march=native", "-fno-strict-aliasing", "-ffp-contract=off", *flags]
    command += [f"-I{folder}", *(f"-D{key}={value}" for key, value in defines.items())]
    subprocess.run([*command, GOLDEN / "host.c", "-o", folder / "host", "-lm", "-pthread"], check=True)
    return folder / "host"


def run(program: Path, *arguments: object) -> str:
    return subprocess.run(
        [program, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout.strip()  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_lifted_code_gives_what_the_gpu_gave(name: str, tmp_path: Path) -> None:
    program, threads = host(name, tmp_path, listing(name)), len(os.sched_getaffinity(0))
    assert run(program, "sample", SAMPLES) == PROGRAMS[name]["sample"]
    assert run(program, STRIDE, threads) == PROGRAMS[name]["subset"]
    if os.environ.get("FP4PATCH_LIFT_ALL"):
        assert run(program, 1, threads) == PROGRAMS[name]["all"]


@pytest.mark.parametrize("name", ["opcodes.half", "opcodes.single"])
def test_a_processor_without_half_precision_gives_the_same(name: str, tmp_path: Path) -> None:
    assert run(host(name, tmp_path, listing(name), "-DLIFT_PORTABLE"), "sample", SAMPLES) == PROGRAMS[name]["sample"]


def test_the_digest_notices_a_changed_instruction(tmp_path: Path) -> None:
    name = "encoder.half_pair"
    changed = listing(name).replace(" 0xf0f0f0f", " 0xf0f0f0e").replace("0x7531", "0x7530")
    assert changed != listing(name)
    assert run(host(name, tmp_path, changed), "sample", SAMPLES) != PROGRAMS[name]["sample"]


def test_encoders_and_paths_with_branches_are_among_them() -> None:
    branches = {name for name in PROGRAMS if "BSSY" in listing(name)}
    assert "cutlass-4.2.1.pristine.encode-float-x8" in branches
    encoders = {path.stem for path in (Path(__file__).parents[3] / "encoders").glob("*.cuh")}
    assert encoders > NO_PROGRAM
    assert {f"encoder.{name}" for name in encoders - NO_PROGRAM} <= set(PROGRAMS)
