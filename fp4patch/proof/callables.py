"""Functions of a variant and its tree that our programs can call: encoders, and functions that patches name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import Needs, Numerics
from fp4patch.catalog.variant import Variant
from fp4patch.proof.numerics import Subject

FORCE_SOFTWARE = "-DFP4PATCH_FORCE_SOFTWARE"
"""Macro that every guard of ours honours: without it, vLLM's statements use no software on a foreign GPU."""


@dataclass(frozen=True)
class Header:
    """Functions that one header of a patch makes callable, and what it takes to compile them."""

    source: Path
    include: tuple[Path, ...]
    functions: tuple[Numerics, ...]

    @property
    def preamble(self) -> str:
        """C++ that makes the functions known. By its full path: the header finds its neighbours."""
        return f'#include "{self.source.resolve()}"'


def encoders_of(variant: Variant, target: str, patches: Sequence[Patch]) -> Iterator[Path]:
    """Yield the encoder headers that the variant's options name for its patches, each once."""
    options = variant.targets[target].options
    found = {
        Path(patch.directory) / edit.encoders / f"{options[patch.name]['encoder']}.cuh": None
        for patch in patches
        for edit in patch.edits
        if edit.op == "wrap-asm" and "encoder" in options.get(patch.name, {})
    }
    yield from found


def callables(patches: Sequence[Patch], has: Callable[[Needs], bool]) -> list[Header]:
    """Return the functions that the patches describe and the tree has, those of one header together, each once."""
    known = {
        (one.name, one.lanes): (Path(patch.directory), one)
        for patch in patches
        for one in patch.numerics
        if one.needs is None or has(one.needs)
    }
    return [
        Header(directory / source, tuple(directory / path for path in include), tuple(one for _, one in group))
        for (directory, source, include), group in groupby(
            known.values(), key=lambda item: (item[0], item[1].source, item[1].include)
        )
    ]


def include_folders(root: Path, tree: Identified) -> list[Path]:
    """Return the tree's own include directories, below ``root``: the tree itself or a copy of it."""
    return [root / path for path in tree.target.include if (root / path).is_dir()]


def subjects(functions: Sequence[Numerics]) -> tuple[Subject, ...]:
    """Return the functions of the data in the form that the sweeps expect."""
    return tuple(Subject(one.name, one.lanes, one.expression) for one in functions)
