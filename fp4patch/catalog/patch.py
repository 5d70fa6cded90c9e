"""A patch: the contents of ``patches/<target>/<patch>/patch.toml``."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from fp4patch.catalog.probe import Probe
from fp4patch.catalog.rule import Rule
from fp4patch.core.document import HIDDEN
from fp4patch.core.table import (
    ArchName,
    FileBeside,
    Globs,
    Identifier,
    Manifest,
    Regex,
    SomeText,
    Specifier,
    TreePath,
    VersionText,
    must,
    some,
)
from fp4patch.edits import Edit

SomeRegex = Annotated[Regex, must(str.strip, "some text")]


@dataclass(frozen=True, kw_only=True)
class Absence(Manifest):
    """Code that must not remain anywhere in the tree once the patch is applied.

    Code that the edits themselves search for counts as such code without an entry here.
    """

    code: Literal["c++", "python", "cmake"]
    files: Globs
    """Globs of the files to search."""
    versions: Specifier = ""
    """Version specifier of the releases in which it must be absent; empty: all."""
    mention: tuple[SomeRegex, ...]
    """Regular expressions on the bytes of a file: all are found in every file with such code. The quickest is first."""
    pattern: SomeRegex
    """Regular expression on the live code, token by token with one blank between: ``[=!] = 120``."""
    because: str = ""
    """Reason why it may remain, as a remainder that is named. Empty: it is refused."""


@dataclass(frozen=True, kw_only=True)
class Allowance(Manifest):
    """Files in which the code that the patch searches for may remain, and the reason. Each such place is a
    remainder."""

    files: Globs
    """Globs of the files."""
    holds: str = ""
    """Text that such a file contains."""
    because: SomeText


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


@dataclass(frozen=True, kw_only=True)
class ConditionCheck(Manifest):
    """Compute capabilities for which host code, or a gate of device code, goes on: before the patch and after it.

    The code of each changed file is cut out, and run with a stand-in for the query of the capability.
    """

    name: str
    search: Globs
    """Globs of the files."""
    begins: SomeText
    """C++ tokens with which the code begins; of Python the name of a function, or one that statements have."""
    through: str = ""
    """C++ tokens after these, whose block ends the code. Empty: the block of ``begins``."""
    shim: FileBeside
    """File beside ``patch.toml`` that runs the code: C++ that includes ``code.inc``, or Python that gets the path of
    the code. Its arguments are capabilities (``12.1``); it prints those for which the code goes on."""
    before: tuple[str, ...]
    """Capabilities for which the pristine code must go on, of all that NVIDIA has since 7.5."""
    after: tuple[str, ...]
    """The same of the patched code."""


@dataclass(frozen=True, kw_only=True)
class MacroPromise(Manifest):
    """Compile targets for which a header of the patched tree must not define a macro, or define it as before."""

    header: TreePath
    name: Identifier
    include: tuple[str, ...]
    """Directories of the tree that the compiler searches for includes."""
    cuda: VersionText
    """CUDA release whose compiler is assumed."""
    off: tuple[ArchName, ...]
    same: tuple[ArchName, ...]


@dataclass(frozen=True, kw_only=True)
class Patch(Manifest):
    """One change with one reason: its edits, the versions it was tried on, its probes, and why it exists."""

    name: str
    target: str
    version: SomeText
    title: SomeText
    reason: SomeText
    link: SomeText
    applies: Annotated[Specifier, must(str.strip, "some text")]
    """A version specifier (PEP 440) of upstream releases that this patch was tried on. Advice; anchors decide."""
    retire: SomeText
    """Condition under which this patch can be deleted."""
    edits: Annotated[tuple[Annotated[Edit, Field(discriminator="op")], ...], some("an edit")]
    absent: tuple[Absence, ...] = ()
    allowed: tuple[Allowance, ...] = ()
    macros: tuple[MacroPromise, ...] = ()
    probes: tuple[Probe, ...] = ()
    variants: tuple[str, ...] = ()
    """Variants that apply it, behind the patches that they name themselves: a new patch changes no other file."""
    rules: tuple[Rule, ...] = ()
    """Rules of these variants for its probes."""
    builds: tuple[BuildCheck, ...] = ()
    conditions: tuple[ConditionCheck, ...] = ()
    directory: str = field(default="", metadata=HIDDEN)
    """Directory of templates, probes and cases, set by the loader."""

    @property
    def evaluated(self) -> tuple[BuildCheck | ConditionCheck, ...]:
        """Checks that need no machine code."""
        return self.builds + self.conditions

    @property
    def id(self) -> str:
        """Identifier: ``cutlass/e2m1-guard``."""
        return f"{self.target}/{self.name}"

    @property
    def takes_options(self) -> bool:
        """True if a variant sets options of it: those of one of its edits."""
        return any(edit.takes_options for edit in self.edits)
