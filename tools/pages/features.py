"""Write the tables of docs/features.md: the result of the ptxas of every release for every feature.

    python -m tools.regenerate features

The same as `fp4patch features --toolkit all --markdown`, put below the marker of the page.
"""

from __future__ import annotations

from pathlib import Path

from fp4patch.commands.features import text as features
from fp4patch.commands.features.run import assemblers, probe
from fp4patch.core import progress

PAGE = Path(__file__).parents[2] / "docs" / "features.md"
MARKER = "<!-- below: python -m tools.regenerate features -->\n"


def main(_arguments: list[str]) -> None:
    """Probe the toolkits, and write the page."""
    tables = features.markdown(probe(assemblers(["all"], (), on_download=progress.silent)))
    prose, marker, _ = PAGE.read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        raise SystemExit(f"{PAGE.name} has lost its marker {MARKER.strip()}")
    PAGE.write_text(f"{prose}{MARKER}\n{tables}", encoding="utf-8")
