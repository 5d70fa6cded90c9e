"""Curves as an SVG picture: axes by their labels alone, a legend in the upper left."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WIDTH = 640
HEIGHT = 360
MARGIN = 40

Curve = tuple[NDArray[np.float64], NDArray[np.float64], str, str]
"""Points across and up, each from 0 to 1; colour; name."""


def draw(path: Path, curves: Sequence[Curve], across: Mapping[str, float], up: Mapping[str, float]) -> None:
    """Write the picture. ``across`` and ``up``: labels and where they are, from 0 to 1."""
    wide, high = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    lines = []
    for x, y, color, _ in curves:
        places = zip(MARGIN + x * wide, HEIGHT - MARGIN - y * high, strict=True)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        lines.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>')
    lines += [
        f'<text x="{MARGIN + 12}" y="{MARGIN + 18 * n}" fill="{color}">{name}</text>'
        for n, (_, _, color, name) in enumerate(curves)
    ]
    lines += [
        f'<text x="{MARGIN + at * wide:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{label}</text>'
        for label, at in across.items()
    ]
    lines += [
        f'<text x="24" y="{HEIGHT - MARGIN - at * high + 4:.0f}" text-anchor="end">{label}</text>'
        for label, at in up.items()
    ]
    box = f"0 0 {WIDTH} {HEIGHT}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="13">'
    path.write_text("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *lines, "</svg>"]) + "\n")
