"""Kernels without FP4 instructions on SM12x by design: by_design.toml, a list of reasons."""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

from fp4patch.binaries.known_programs import read_table
from fp4patch.binaries.report import LostKernel, readable


@dataclass(frozen=True)
class ByDesign:
    """A kind of kernel, and the reason why it is as it should be."""

    name: str
    lost: tuple[str, ...]
    reason: str
    tensor_memory: bool = False
    keeps: tuple[str, ...] = ()
    says: str = "*"


@cache
def _kinds() -> tuple[ByDesign, ...]:
    file = resources.files(__package__).joinpath("by_design.toml")
    return read_table(file, dict[str, tuple[ByDesign, ...]])["kernel"]


def reason(kernel: LostKernel, *, keeps: Collection[str] = (), tensor_memory: bool = False) -> str:
    """Return why a kernel is as it should be; empty where no reason is known.

    ``keeps`` are the classes of instructions that the copy for SM12x has; ``tensor_memory`` is of the other copy.
    """
    name = readable(kernel.name)
    for entry in _kinds():
        fits = fnmatchcase(name, entry.name) and set(kernel.lost) <= set(entry.lost)
        fits = fits and any(fnmatchcase(message, entry.says) for message in kernel.messages or ("",))
        if fits and set(entry.keeps) <= set(keeps) and (tensor_memory or not entry.tensor_memory):
            return entry.reason
    return ""
