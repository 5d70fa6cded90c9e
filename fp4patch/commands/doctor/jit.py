"""Targets for which FlashInfer's just-in-time build compiles its FP4 modules, read from its own Python.

FlashInfer compiles a module when it is first used, on the GPU's own machine: for the targets that
FLASHINFER_CUDA_ARCH_LIST names, or, if that is not set, for the GPUs that PyTorch finds; some modules for a target of
their own. Its functions are evaluated from their text (:mod:`.python_text`) up to the call of ``gen_jit_spec``, whose
``-gencode`` flags are the result: the build prefers a module's own flags to the common ones (build_cuda_cflags in
jit/cpp_ext.py).

The modelled machine has one GPU, a PyTorch that is built for the CUDA release whose nvcc compiles, and no other
environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from packaging.version import Version

from fp4patch.catalog.target import JitModule
from fp4patch.commands.doctor.python_text import Package
from fp4patch.commands.doctor.python_values import UNKNOWN, NotKnown, Raised, World
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import refused
from fp4patch.inspect.findings import Compiled

_GENCODE = re.compile(r"-gencode=arch=compute_\w+,code=(?:sm_(\d+)(\d[af]?)|compute_\d+[af]?)")
"""As FlashInfer writes it; machine code is what counts, and PTX is left out."""
_OTHERWISE = ("-gencode", "--generate-code", "-arch", "--gpu-", "-code")
"""Other notations of the same name."""


class Spec(BaseException):
    """``gen_jit_spec`` was called: no handler of the tree's may catch it, and what comes after does not matter."""

    def __init__(self, flags: Any) -> None:
        self.flags = flags


def package(root: Path) -> Package:
    """Return the Python of an installed FlashInfer, or of a checkout."""
    inside = root / "flashinfer"
    return Package(inside if inside.is_dir() else root)


def compiled(tree: Package, modules: Iterable[JitModule], cuda: str, archs: str, gpu: Arch) -> Compiled:
    """Return the targets of each module where it runs on ``gpu``, with ``archs`` as the variable (empty: not set).

    NotKnown is raised if the text does not determine them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for module in modules:
        try:
            made = _targets(tree, module, world(cuda, archs, gpu), gpu)
        except Raised as raised:
            return Compiled({}, stops=str(raised).rstrip("."))
        if stops := refused(Version(cuda), map(Arch.parse, made)):
            return Compiled({}, stops=stops)
        found[module.name] = made
    return Compiled(found)


def _targets(tree: Package, module: JitModule, there: World, gpu: Arch) -> tuple[str, ...]:
    file = next((path for path in module.search if (tree.root / path).is_file()), module.search[-1])
    arguments = [argument.format(gpu=gpu.number) for argument in module.arguments]
    made = set[str]()
    for flag in _flags(lambda: tree.call(file, module.function, arguments, there)):
        if target := _GENCODE.fullmatch(flag):
            made |= {f"{target[1]}.{target[2]}"} if target[1] else set()
        elif flag.startswith("-gencode=arch="):
            raise Raised("nvcc", f"takes no {flag}")
        elif flag.startswith(_OTHERWISE):
            raise NotKnown(f"{file}: {module.function} says {flag}")
    if not made:
        raise NotKnown(f"{file}: {module.function} names no architectures")
    return tuple(sorted(made))


def _flags(evaluate: Callable[[], object]) -> Sequence[str]:
    try:
        evaluate()
    except Spec as spec:
        if isinstance(spec.flags, list) and all(isinstance(flag, str) for flag in spec.flags):
            return spec.flags
        raise NotKnown("the flags that gen_jit_spec is given are not known") from None
    raise NotKnown("gen_jit_spec is not called")


def world(cuda: str, archs: str, gpu: Arch) -> World:
    """Return the model of a machine with one such GPU, this CUDA release, and ``archs`` as the variable."""

    def gen_jit_spec(*_: Any, extra_cuda_cflags: Any = None, **__: Any) -> None:
        raise Spec(extra_cuda_cflags)

    environ: Mapping[str, str] = {"FLASHINFER_CUDA_ARCH_LIST": archs} if archs else {}
    devices = SimpleNamespace(
        device_count=lambda: 1,
        is_available=lambda: True,
        get_device_capability=lambda *_: (gpu.major, gpu.minor),
    )
    return World(
        {
            "os": SimpleNamespace(environ=environ),
            "torch": SimpleNamespace(cuda=devices, version=SimpleNamespace(cuda=cuda)),
        },
        {
            "gen_jit_spec": gen_jit_spec,
            "is_cuda_version_at_least": lambda wanted: _at_least(cuda, wanted),
            "version_at_least": _at_least,
        },
    )


def _at_least(version: Any, wanted: Any) -> Any:
    known = isinstance(version, str) and isinstance(wanted, str)
    return Version(version) >= Version(wanted) if known else UNKNOWN
