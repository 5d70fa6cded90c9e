"""Load every library of a wheel of vLLM into PyTorch, and write the operators that each registers.

python load.py WHEEL DIRECTORY OPERATORS.json
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import torch


def main(wheel: str, directory: str, operators: str) -> int:
    """Unpack, load, write; return 1 if a library could not be loaded."""
    zipfile.ZipFile(wheel).extractall(directory)
    found = {}
    for path in sorted(Path(directory, "vllm").rglob("*.so")):
        before = set(torch._C._dispatch_get_all_op_names())
        state = "loaded"
        try:
            torch.ops.load_library(str(path))
        except OSError as error:
            state = f"failed: {error}"
        registered = sorted(set(torch._C._dispatch_get_all_op_names()) - before)
        found[path.name] = {"state": state, "bytes": path.stat().st_size, "operators": registered}
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes, {state}, {len(registered)} operators\n")
    Path(operators).write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if any(one["state"] != "loaded" for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
