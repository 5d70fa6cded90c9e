"""A patch: the contents of ``patches/<target>/<patch>/patch.toml``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fp4patch.catalog.probe import Layer, Needs, Probe
from fp4patch.catalog.rule import Rule
from fp4patch.catalog.target import Target
from fp4patch.core.document import HIDDEN
from fp4patch.core.table import (
    SOME,
    Manifest,
    SomeText,
    Specifier,
    must,
)
from fp4patch.edits import Edit
from fp4patch.edits.conversions import Conversions
from fp4patch.edits.exact_tests import ExactTests
from fp4patch.edits.macros import MacroPromise
from fp4patch.edits.operation import Condition
from fp4patch.edits.promise import Promise


@dataclass(frozen=True, kw_only=True)
class BuildCheck(Manifest):
    """Required results of the tree's own build for arch lists, evaluated without a compiler."""

    name: str
    title: str
    kernels: str = ""
    """Regular expression, searched in the paths of sources, that selects the kernels to check: each GPU must load code
    of theirs. Empty: the target's FP4 kernels, whose code must have the conversion instruction."""
    reaches: tuple[str, ...]
    """Arch lists that must give each GPU of SM12x that they name such code of all kernels that are checked."""
    same: tuple[str, ...]
    """Arch lists for which the patched build must have the same result as the pristine one."""
    keeps: tuple[str, ...] = ()
    """Arch lists, with and without SM12x, for which no source may get other code for other GPUs."""
    changes: tuple[str, ...] = ()
    """Other changes of what targets of the build are made of, as verify names them: ``definition none -> NAME=1``."""


@dataclass(frozen=True, kw_only=True)
class Patch(Manifest):
    """One change with one reason: its edits, the versions it was tried on, its probes, and why it exists."""

    name: str = ""
    """Name of its directory, which need not be written."""
    target: str = ""
    """Name of the directory above, which need not be written."""
    version: SomeText = "1"
    """Counted up when the patch makes something else of the same source."""
    title: SomeText
    reason: SomeText
    link: SomeText
    applies: Annotated[Specifier, must(str.strip, "some text")]
    """A version specifier (PEP 440) of upstream releases that this patch was tried on. Advice; anchors decide."""
    retire: SomeText
    """Condition under which this patch can be deleted."""
    edits: Annotated[tuple[Annotated[Edit, Field(discriminator="op")], ...], SOME]
    macros: tuple[MacroPromise, ...] = ()
    exact_tests: ExactTests | None = None
    conversions: Conversions | None = None
    probes: tuple[Probe, ...] = ()
    layers: tuple[Layer, ...] = ()
    """Programs that ``verify --layers`` executes with all of their kernels."""
    variants: tuple[str, ...] = ()
    """Variants that apply it, behind the patches that they name themselves: a new patch changes no other file."""
    rules: tuple[Rule, ...] = ()
    """Rules of these variants for its probes."""
    builds: tuple[BuildCheck, ...] = ()
    directory: str = field(default="", metadata=HIDDEN)
    """Directory of templates, probes and cases, set by the loader."""

    @property
    def conditions(self) -> tuple[tuple[tuple[str, ...], Condition], ...]:
        """The conditions of its edits, each with the globs of its files."""
        checked = ((edit.search, edit.checked_condition) for edit in self.edits)
        return tuple((search, condition) for search, condition in checked if condition)

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What it promises of the whole tree, beside its edits."""
        single = (self.exact_tests, self.conversions)
        return (*self.macros, *(promise for promise in single if promise))

    @property
    def id(self) -> str:
        """Identifier: ``cutlass/e2m1-guard``."""
        return f"{self.target}/{self.name}"

    def completed(self, target: Target) -> Patch:
        """Return the patch with its id in its probes and layers, the files of its target's layouts, and an edit for
        each file of its diffs."""

        def located(needs: Needs | None) -> Needs | None:
            return needs and replace(needs, search=target.in_layouts(needs.search))

        probes = tuple(replace(one, patch=self.id, needs=located(one.needs)) for one in self.probes)
        layers = tuple(replace(one, patch=self.id, needs=located(one.needs)) for one in self.layers)
        placed = (replace(edit, search=target.in_layouts(edit.search)) for edit in self.edits)
        edits = (part for edit in placed for part in edit.expanded(Path(self.directory)))
        return replace(self, probes=probes, layers=layers, edits=tuple(edits))
