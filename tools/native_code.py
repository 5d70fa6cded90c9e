"""Measure what code for one GPU costs and saves where a build compiles PTX alone.

For each compilation of a build that has no code for the GPU's major version: the time of its PTX, the time that
``ptxas`` takes for that PTX (as the driver does at the first start on the GPU), and the time, size, registers and
spills of the code compiled for the GPU directly. Beside them the time and size of what the build compiles instead:
PTX, and code for the GPU that the PTX is named after.

    python tools/native_code.py BUILD/compile_commands.json native.json --arch 121a --match 'quantization/marlin/'
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_ENTRY = re.compile(
    r"Compiling entry function '([^']+)' for|(\d+) bytes spill stores, (\d+) bytes spill loads|Used (\d+) registers"
)
WAYS = ("built", "ptx", "native")
_WITH_VALUE = ("-gencode", "-o", "-c", "-MF", "-MT", "-MQ")


def usage(printed: str) -> dict[str, list[int]]:
    """Return registers and bytes of spill stores and loads of each kernel, from what ``ptxas -v`` printed."""
    kernels: dict[str, list[int]] = {}
    name, spills = "", [0, 0]
    for entry, stores, loads, registers in _ENTRY.findall(printed):
        if entry:
            name = entry
        elif registers:
            kernels[name] = [int(registers), *spills]
        else:
            spills = [int(stores), int(loads)]
    return kernels


def compiler(command: str) -> list[str]:
    """Return nvcc and its options, without a launcher, its architectures, its source and its outputs."""
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word in _WITH_VALUE:
            next(words)
        elif not word.startswith(("-gencode", "--generate-code", "-MD", "-MMD")):
            kept.append(word)
    return kept[next(at for at, word in enumerate(kept) if word.endswith("nvcc")) :]


def gencode(command: str) -> list[str]:
    """Return the architectures of a compilation as nvcc's options."""
    return [f"-gencode={one}" for one in re.findall(r"arch=compute_\w+,code=\w+", command)]


def _run(arguments: Sequence[str], directory: str) -> tuple[float, str]:
    start = time.monotonic()
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(arguments)}\n{done.stderr[-2000:]}")
    return time.monotonic() - start, done.stdout + done.stderr


def measure(command: dict[str, str], arch: str, work: Path) -> dict[str, Any]:
    """Return seconds, bytes and kernels of one compilation, as PTX and as code for the GPU."""
    source, directory = command["file"], command["directory"]
    nvcc = compiler(command["command"])
    oldest = max(re.findall(r"compute_(\d+)", command["command"]), key=int)
    ptx, jit, cubin, packed = (
        work / f"{os.getpid()}-{abs(hash(source))}.{end}" for end in ("ptx", "jit", "cubin", "fat")
    )

    def size(image: str, file: Path) -> int:
        _run(["fatbinary", "-64", "--compress-all", f"--create={packed}", f"--image3={image},file={file}"], directory)
        return packed.stat().st_size

    ptx_seconds, _ = _run([*nvcc, "-ptx", f"-arch=compute_{oldest}", source, "-o", str(ptx)], directory)
    jit_seconds, jit_said = _run(["ptxas", "-v", "-O3", f"-arch=sm_{arch}", str(ptx), "-o", str(jit)], directory)
    built_seconds, _ = _run([*nvcc, "-fatbin", *gencode(command["command"]), source, "-o", str(packed)], directory)
    built_bytes = packed.stat().st_size
    target = f"arch=compute_{arch},code=sm_{arch}"
    seconds, said = _run([*nvcc, "-cubin", "-gencode", target, "-Xptxas", "-v", source, "-o", str(cubin)], directory)
    return {
        "built": {"seconds": built_seconds, "bytes": built_bytes},
        "ptx": {"seconds": ptx_seconds, "bytes": size(f"kind=ptx,sm={oldest}", ptx)},
        "just_in_time": {"seconds": jit_seconds, "kernels": usage(jit_said)},
        "native": {"seconds": seconds, "bytes": size(f"kind=elf,sm={arch}", cubin), "kernels": usage(said)},
    }


def total(files: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return sums over all files, and over the kernels that both ways have."""
    pairs = [
        (old, new)
        for one in files.values()
        for name, old in one["just_in_time"]["kernels"].items()
        if (new := one["native"]["kernels"].get(name))
    ]
    return {
        "files": len(files),
        **{f"{way}_seconds": round(sum(one[way]["seconds"] for one in files.values())) for way in WAYS},
        "just_in_time_seconds": round(sum(one["just_in_time"]["seconds"] for one in files.values())),
        **{f"{way}_bytes": sum(one[way]["bytes"] for one in files.values()) for way in WAYS},
        "kernels": len(pairs),
        "just_in_time_spilled": sum(old[1] + old[2] for old, _ in pairs),
        "native_spilled": sum(new[1] + new[2] for _, new in pairs),
        "fewer_registers": sum(new[0] < old[0] for old, new in pairs),
        "more_registers": sum(new[0] > old[0] for old, new in pairs),
    }


def main() -> None:
    """Measure the compilations that match, several at a time, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commands", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--arch", default="121a")
    parser.add_argument("--match", default="", help="regular expression in the source's path")
    options = parser.parse_args()
    major = re.sub(r"\d[af]?$", "", options.arch)
    commands = [
        command
        for command in json.loads(options.commands.read_text(encoding="utf-8"))
        if "compute_" in command["command"]
        and not re.search(rf"compute_{major}\d", command["command"])
        and re.search(options.match, command["file"])
    ]
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda command: measure(command, options.arch, Path(work)), commands)
        files = dict(zip((command["file"] for command in commands), results, strict=True))
    options.output.write_text(json.dumps({"total": total(files), "files": files}, indent=1), encoding="utf-8")
    sys.stdout.write(json.dumps(total(files), indent=1) + "\n")


if __name__ == "__main__":
    main()
