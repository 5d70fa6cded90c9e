"""Capabilities for which Marlin's kernels with FP8 activations are generated, one at a time."""

import sys
from pathlib import Path

code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec")
for capability in capabilities:
    there = {}
    sys.argv = [code, capability]
    exec(text, {"sys": sys, "ARCHS": [], "SUPPORT_SM75": False, "SUPPORT_SM80": False}, there)
    if there["SUPPORT_FP8"]:
        print(capability, end=" ")
