"""``python -m fp4patch.sass FILE.cubin``: the kernels of a cubin, and which of them can be executed; or the table."""

import argparse
import sys
from pathlib import Path

from fp4patch.sass import SassError, read_cubin
from fp4patch.sass.semantics import TABLE


def main() -> int:
    """Print a line for each kernel; exit status 0 if all can be executed, 1 if one cannot, or nothing could be read."""
    parser = argparse.ArgumentParser(prog="python -m fp4patch.sass", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("file", type=Path, nargs="?", metavar="FILE.cubin")
    what.add_argument("--table", action="store_true", help="print the instructions that can be executed, and exit")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="CUDA's disassembler; by default the one on PATH")
    asked = parser.parse_args()
    if asked.table:
        sys.stdout.writelines(f"{opcode}\t{TABLE[opcode].source}\n" for opcode in sorted(TABLE))
        return 0
    try:
        cubin = read_cubin(asked.file, nvdisasm=asked.nvdisasm)
    except (SassError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    reasons = {kernel: cubin.reason(kernel) for kernel in cubin.kernels}
    sys.stdout.writelines(f"{kernel}: {reason or 'can be executed'}\n" for kernel, reason in reasons.items())
    return int(any(reasons.values()) or not reasons)


if __name__ == "__main__":
    sys.exit(main())
