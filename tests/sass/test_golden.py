"""The lifter against silicon: lifted sm_90 code gives what a GPU gave for the same bytes (``golden/make.py``).

By default every 61st group of inputs, 70 million values of a program; FP4PATCH_LIFT_ALL=1 takes all 2^32. A program
that ran on this machine is not run again: its output is known by everything that it is compiled from.
"""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from remembered import remembered

from fp4patch.sass.program import for_this_processor
from fp4patch.sass.translate import RUNTIME, runtime, translate

SM_90 = (9, 0)
GOLDEN = Path(__file__).parent / "golden"
PROGRAMS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "golden.json").read_text())["programs"]
STRIDE = 61
SAMPLES = 128


def listing(name: str) -> str:
    return gzip.decompress((GOLDEN / "listings" / f"{name}.txt.gz").read_bytes()).decode()


def outputs(name: str, folder: Path, text: str, *runs: tuple[object, ...], compiler: str = "gcc") -> list[str]:
    """Return the lines of a program that runs a listing over the inputs of the golden run, one for each run of it."""
    program, translation = PROGRAMS[name], translate(text, arch=SM_90)
    defines = {
        "LANES": program["lanes"],
        "VALUE": program["value"],
        "OUT": program["out"],
        "PARAMETERS": translation.layout.parameters,
        "BLOCK_SIZE": translation.layout.block_size,
        "SASS_KERNEL": "kernel",
    }
    command = [compiler, "-std=gnu11", "-O2", *for_this_processor(compiler), "-fno-strict-aliasing"]
    command += [
        "-ffp-contract=off",
        *(f"-D{key}={value}" for key, value in defines.items()),
        "host.c",
        "-o",
        "host",
        "-lm",
        "-pthread",
    ]
    files = {"kernel.inc": translation.c, RUNTIME: runtime(), "host.c": (GOLDEN / "host.c").read_text()}

    def written() -> str:
        for file, content in files.items():
            (folder / file).write_text(content)
        subprocess.run(command, cwd=folder, check=True)
        lines = (
            subprocess.run([folder / "host", *map(str, run)], check=True, capture_output=True, text=True)
            for run in runs
        )
        return "".join(line.stdout for line in lines)

    return remembered((json.dumps([files, command]), repr(runs)), written).splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_lifted_code_gives_what_the_gpu_gave(name: str, tmp_path: Path) -> None:
    threads = len(os.sched_getaffinity(0))
    runs: dict[str, tuple[object, ...]] = {"sample": ("sample", SAMPLES), "subset": (STRIDE, threads)}
    if os.environ.get("FP4PATCH_LIFT_ALL"):
        runs["all"] = (1, threads)
    expected = [PROGRAMS[name][kind] for kind in runs]
    assert outputs(name, tmp_path, listing(name), *runs.values()) == expected


def test_the_digest_notices_a_changed_instruction(tmp_path: Path) -> None:
    name = "encoder.half_pair"
    changed = listing(name).replace(" 0xf0f0f0f", " 0xf0f0f0e").replace("0x7531", "0x7530")
    assert changed != listing(name)
    assert outputs(name, tmp_path, changed, ("sample", SAMPLES)) != [PROGRAMS[name]["sample"]]
