"""A patch: what ``patches/<target>/<patch>/patch.toml`` says."""

from __future__ import annotations

from dataclasses import dataclass

from fp4patch.model.edit import Edit
from fp4patch.model.manifest import Manifest
from fp4patch.model.probe import Numerics, Probe


@dataclass(frozen=True, kw_only=True)
class Patch(Manifest):
    """One change with one reason: its edits, the versions it was tried on, its probes, and why it exists."""

    name: str
    target: str
    version: str
    title: str
    reason: str
    link: str
    applies: str
    """A version specifier (PEP 440) of upstream releases that this patch was tried on. Advice; anchors decide."""
    retire: str
    """When this patch may be deleted."""
    edits: tuple[Edit, ...]
    probes: tuple[Probe, ...] = ()
    numerics: tuple[Numerics, ...] = ()
    directory: str = ""
    """Set by the loader: where templates, probes and cases lie."""

    @property
    def id(self) -> str:
        """``cutlass/e2m1-guard``."""
        return f"{self.target}/{self.name}"
