"""Capabilities for which Marlin's kernels with FP8 activations are generated, alone and beside each other one."""

import itertools
import sys
from pathlib import Path

code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec")


def generated(*wanted):
    """Return whether a build for these has them."""
    there = {}
    sys.argv = [code, ",".join(wanted)]
    exec(text, {"sys": sys, "ARCHS": [], "SUPPORT_SM75": False, "SUPPORT_SM80": False}, there)
    return there["SUPPORT_FP8"]


alone = {capability: generated(capability) for capability in capabilities}
for one, other in itertools.permutations(capabilities, 2):
    assert generated(one, other) == (alone[one] or alone[other]), (one, other)
print(*(capability for capability, has in alone.items() if has))
