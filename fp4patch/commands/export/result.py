"""Patches of a variant as changes that the upstream project can take."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.core.document import Report


class Format(StrEnum):
    """Forms in which a series of patches is handed over."""

    DIFF = "diff"
    """Unified diffs, one file for each patch."""
    GIT_AM = "git-am"
    """Mails for ``git am``, as ``git format-patch`` writes them."""
    QUILT = "quilt"
    """Diffs with a header, and the file ``series``."""
    CONAN = "conan"
    """Diffs, and the entry ``patches`` of a ``conandata.yml``."""
    NIX = "nix"
    """Diffs, and a list of paths for ``patches = import ./patches.nix;``."""


@dataclass(frozen=True)
class Change:
    """One patch on top of those before it: the bytes of each file that it changes, before and after."""

    patch: Patch
    files: dict[str, tuple[bytes, bytes]]


@dataclass(frozen=True)
class Series(Report):
    """A variant's patches for one release, as files."""

    target: str
    version: str
    variant: str
    patches: tuple[str, ...]
    """Ids of the patches with a change, in their order."""
    unchanged: tuple[str, ...]
    """Ids of patches that have nothing to do in this release."""
    files: dict[str, str]
    """Text of each file by its path."""


@dataclass(frozen=True)
class Exported:
    """A variant's patches for one release, in the order in which they apply."""

    root: Path
    target: str
    version: str
    variant: str
    changes: tuple[Change, ...]
    unchanged: tuple[str, ...]
    """Ids of patches that have nothing to do in this release."""
    evidence: tuple[str, ...] = ()
    """Lines about the compiled and executed code; empty without a report of ``fp4patch verify``."""

    def series(self, files: dict[str, str]) -> Series:
        """Return the document over the files that were made of the patches."""
        patches = tuple(change.patch.id for change in self.changes)
        return Series(self.target, self.version, self.variant, patches, self.unchanged, files)
