"""Draw the support matrix: a row for each patch, a square for each release in the colour of its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp4patch.commands.show.text import matrix_rows
from fp4patch.commands.templates import render

LEFT, STEP, ROW, HEAD = 160, 16, 18, 62  # pixels: where squares begin, their pitch, a row, the room for versions
LEGEND = (
    ("applied", "it applies"),
    ("upstreamed", "upstream has it"),
    ("not-needed", "never needed there"),
    ("drifted", "refused"),
)


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of ``records/matrix.json`` as SVG."""
    parts: list[dict[str, Any]] = []
    top = 20
    for target, patches, body in matrix_rows(rows):
        top += HEAD
        states = [(patch, [cells[number] for _, cells in body]) for number, patch in enumerate(patches)]
        parts.append({"target": target, "versions": [name for name, _ in body], "patches": states, "top": top})
        top += ROW * len(patches)
    releases = max((len(part["versions"]) for part in parts), default=0)
    width = LEFT + max(STEP * releases, 210 * len(LEGEND))
    return render(
        "matrix.svg.j2",
        folder=Path(__file__).parent,
        parts=parts,
        width=width,
        height=top + 8,
        left=LEFT,
        legend=LEGEND,
    )
