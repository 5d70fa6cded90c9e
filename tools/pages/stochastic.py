"""Draw what stochastic rounding to E2M1 makes of a value: mean and standard deviation over all 256 random bytes.

``python -m tools.regenerate stochastic`` writes docs/images/stochastic.svg, from ``fp4patch.reference`` alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference import e2m1_decode, e2m1_encode, e2m1_encode_stochastic

PICTURE = Path(__file__).parents[2] / "docs/images/stochastic.svg"
WIDTH, HEIGHT, MARGIN = 640, 360, 40


def curve(x: NDArray[np.float64], y: NDArray[np.float64], color: str) -> str:
    """Return a line through points of [0, 7] x [0, 7]."""
    scale = np.array([(WIDTH - 2 * MARGIN) / 7, -(HEIGHT - 2 * MARGIN) / 7])
    points = np.stack([x, y], axis=1) * scale + np.array([MARGIN, HEIGHT - MARGIN])
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    return f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{path}"/>'


def main(_arguments: list[str]) -> None:
    """Write the picture."""
    x = np.arange(0, 7, 1 / 128)
    rounded = e2m1_decode(e2m1_encode_stochastic(x[:, None], np.arange(256, dtype=np.uint8))).astype(np.float64)
    nearest = e2m1_decode(e2m1_encode(x)).astype(np.float64)
    curves = (
        (nearest, "#999999", "to nearest"),
        (rounded.mean(axis=1), "#1f77b4", "stochastic: mean over all random bytes"),
        (rounded.std(axis=1), "#d62728", "stochastic: standard deviation"),
    )
    lines = [curve(x, y, color) for y, color, _ in curves]
    lines += [
        f'<text x="{MARGIN + 12}" y="{MARGIN + 18 * n}" fill="{color}">{name}</text>'
        for n, (_, color, name) in enumerate(curves)
    ]
    for value in range(8):
        across = MARGIN + value * (WIDTH - 2 * MARGIN) / 7
        up = HEIGHT - MARGIN - value * (HEIGHT - 2 * MARGIN) / 7
        lines.append(f'<text x="{across:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{value}</text>')
        lines.append(f'<text x="24" y="{up + 4:.0f}" text-anchor="end">{value}</text>')
    box = f"0 0 {WIDTH} {HEIGHT}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="13">'
    PICTURE.write_text("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *lines, "</svg>"]) + "\n")
