"""Result of ``fp4patch doctor``: this machine, or source trees, build recipes and compiled code."""

from __future__ import annotations

from dataclasses import dataclass

from fp4patch.core.document import Report, shown
from fp4patch.inspect.code import BinaryReport
from fp4patch.inspect.findings import Level, MachineReport, RecipeReport, TreeReport, worst


@dataclass(frozen=True)
class DoctorReport(Report):
    """Findings about everything that was examined."""

    machine: MachineReport | None
    """This machine; null if the user named a tree or a file."""
    trees: tuple[TreeReport, ...]
    """Source trees."""
    recipes: tuple[RecipeReport, ...]
    """Files and directories with Dockerfiles, scripts or patches."""
    binaries: tuple[BinaryReport, ...]
    """Wheels, libraries, cubins, directories and images."""

    @property
    def levels(self) -> list[Level]:
        """Levels of all findings."""
        levels = list(self.machine.levels) if self.machine else []
        parts: tuple[RecipeReport | TreeReport | BinaryReport, ...] = (*self.recipes, *self.trees, *self.binaries)
        return levels + [level for part in parts for level in part.levels]

    @property
    @shown()
    def verdict(self) -> Level:
        """Worst of these levels."""
        return worst(self.levels)
