"""Draw what stochastic rounding to E2M1 makes of a value: mean and standard deviation over all 256 random bytes.

``python -m tools.regenerate stochastic`` writes docs/images/stochastic.svg, from ``fp4patch.reference`` alone.
"""

from pathlib import Path

import numpy as np

from fp4patch.reference.formats import e2m1_decode, e2m1_encode, e2m1_encode_stochastic
from tools.pages._plot import draw

PICTURE = Path(__file__).parents[2] / "docs/images/stochastic.svg"


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
    labels = {str(value): value / 7 for value in range(8)}
    draw(PICTURE, [(x / 7, y / 7, color, name) for y, color, name in curves], labels, labels)
