"""Capabilities for which FlashInfer's own class compiles with a suffix that the variable does not have.

Alone in the variable, behind others and before them, and as a GPU that PyTorch finds. A suffix that the variable has is
kept, and no target is without its number.
"""

import __future__

import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

code, *capabilities = sys.argv[1:]
text = compile(Path(code).read_text(encoding="utf-8"), code, "exec", __future__.annotations.compiler_flag)
for name in ("flashinfer", "flashinfer.jit", "flashinfer.jit.cpp_ext"):
    sys.modules[name] = ModuleType(name)
sys.modules["flashinfer.jit.cpp_ext"].is_cuda_version_at_least = lambda _: True


def targets(variable, *found):
    """Return the targets for a value of the variable, or for GPUs where it is not set."""
    devices = SimpleNamespace(device_count=lambda: len(found), get_device_capability=lambda at: found[at])
    there = {
        "os": SimpleNamespace(environ={"FLASHINFER_CUDA_ARCH_LIST": variable} if variable else {}),
        "torch": SimpleNamespace(cuda=devices),
        "logger": SimpleNamespace(warning=lambda *_: sys.exit("the GPUs were not asked for their capability")),
        "logging": logging,
    }
    exec(text, there)
    made = there["CompilationContext"]().TARGET_CUDA_ARCHS
    assert all(type(major) is int and type(minor) is str and minor[0].isdigit() for major, minor in made), made
    return made


for capability in capabilities:
    major, minor = map(int, capability.split("."))
    (alone,) = targets(capability)
    assert targets(f"7.5 {capability}") == targets(f"{capability} 7.5") == {(7, "5"), alone}
    assert targets(f"9.0a {capability}") - {(9, "0a")} <= {alone}
    for suffix in "af" if major >= 9 else "":
        assert targets(f"{capability}{suffix}") == {(major, f"{minor}{suffix}")}
        assert targets(f"{capability}{suffix} 8.9") == {(major, f"{minor}{suffix}"), (8, "9")}
    own = targets("", (major, minor))
    assert own == targets("", (major, minor), (major, minor)) == targets("", (8, 6), (major, minor)) - {(8, "6")} | own
    if major >= 9:
        assert all(number[-1] in "af" and number[:-1].isdigit() for _, number in own), own
    assert alone[0] == major, alone
    if alone[1][-1].isalpha():
        assert own == {alone}, own
        print(capability, end=" ")
    else:
        assert alone[1] == str(minor), alone
