"""Let TransformerEngine's NVFP4 kernels run on an H100: change what upstream reserves for SM100 although SM90 has it.

Three changes, none of them part of a variant, none of them in what is computed. Usage: hopper.py TREE
"""

import re
import sys
from pathlib import Path

COMMON = "transformer_engine/common"
KERNELS = (
    "cast/nvfp4/quantize_transpose_nvfp4.cuh",
    "cast/nvfp4/specialized/quantize_transpose_nvfp4_tuned_1D.cuh",
)
"""Kernels whose bodies, and whose helpers in ptx.cuh, are behind SM100: they copy by TMA, which SM90 has."""

HELPERS = ("mbarrier_", "fence_", "cp_async_bulk", "initialize_barriers", "destroy_barriers", "copy_2d_to_shared")


def main(tree: Path) -> None:
    """Change the tree; SystemExit where a place is not found."""
    common = tree / COMMON
    for name in KERNELS:
        opened(common / name, r"__CUDA_ARCH__ (>=|<) 1000", r"__CUDA_ARCH__ \1 900", at_least=1)
        # A map of bytes has half as many of them as there are values.
        opened(common / name, r"(&tensor_map_output(?:_t)?\), global_offset_X(?:_t|_tr)?),", r"\1 / 2,", at_least=2)
    # TMA's type of four-bit values is SM100's alone; two values are a byte.
    opened(common / "common.cu", "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B", "CU_TENSOR_MAP_DATA_TYPE_UINT8", at_least=1)
    opened(
        common / "common.cu",
        r"(uint64_t size\[rank\] = \{)globalX(, globalY\};)",
        r"const uint32_t values = type_num_bits == 4 ? 2 : 1;\n  \1globalX / values\2",
        at_least=1,
    )
    opened(common / "common.cu", r"(boxSize\[rank\] = \{)shmemX,", r"\1shmemX / values,", at_least=1)
    helpers(common / "util/ptx.cuh")


def helpers(path: Path) -> None:
    """Open the guards of the functions that copy and wait; those that convert stay as they are."""
    text = path.read_text()
    function = re.compile(r"(__forceinline__ [^;{}]*?\b(\w+)\([^{}]*?\)\s*\{\n)(#if [^\n]*__CUDA_ARCH__ >= )1000\)")
    found = 0

    def lowered(match: re.Match[str]) -> str:
        nonlocal found
        if not match[2].startswith(HELPERS):
            return match[0]
        found += 1
        return f"{match[1]}{match[3]}900)"

    text = function.sub(lowered, text)
    if not found:
        raise SystemExit(f"{path}: no helper is behind SM100")
    path.write_text(text)


def opened(path: Path, pattern: str, replacement: str, *, at_least: int) -> None:
    """Replace a pattern in a file."""
    text, count = re.subn(pattern, replacement, path.read_text())
    if count < at_least:
        raise SystemExit(f"{path}: {pattern!r} was found {count} times, and {at_least} were expected")
    path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
