"""Capabilities for which the warmup of FlashAttention 4 knows an architecture; of SM12x it must be sm120."""

import sys
from pathlib import Path

code, *capabilities = sys.argv[1:]
there = {"FA4ArchitectureFamily": str}
exec(compile(Path(code).read_text(encoding="utf-8"), code, "exec"), there)
for capability in capabilities:
    major, minor = map(int, capability.split("."))
    try:
        family = there["_fa4_architecture_family_from_compute_capability"](major, minor)
    except ValueError:
        continue
    if family == "sm120" and major != 12:
        sys.exit(f"{capability} is no {family}")
    if (family == "sm120") == (major == 12):
        print(capability, end=" ")
