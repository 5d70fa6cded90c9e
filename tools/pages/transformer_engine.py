"""Write what TransformerEngine's kernels did on a GPU: tables of docs/evidence.md, and the training's curves.

``docs/gpu/transformer_engine/run.sh PRISTINE PATCHED DIR`` runs the kernels. ``python -m tools.regenerate
transformer-engine [DIR]`` takes its results into records/transformer-engine.json, and writes page and picture from it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tools.pages import _made_part
from tools.pages._plot import draw

HERE = Path(__file__).parents[2]
RECORD = HERE / "records/transformer-engine.json"
PAGE = HERE / "docs/evidence.md"
PICTURE = HERE / "docs/images/training.svg"
PARTS = {
    "kernels": "whole kernels",
    "transformed": "quantized after the random Hadamard transform",
    "functions": "functions of `ptx.cuh`, each by itself",
    "drawn": "random words (Philox4x32-10)",
}
COLORS = ("#999999", "#1f77b4", "#d62728", "#2ca02c")
UP = {"1/8": 0.125, "1/4": 0.25, "1/2": 0.5, "1": 1, "2": 2}


def record(results: Path) -> dict[str, Any]:
    """Return what is kept of a run: sums of what was compared, rates, and losses to four digits."""
    check, train = (json.loads((results / name).read_text(encoding="utf-8")) for name in ("check.json", "train.json"))
    failed = [part for part in check if check[part].get("failed")] + list(train.get("failed", ()))
    if failed:
        raise SystemExit(f"{results}: {', '.join(failed)} failed")
    kept = ("kernel", "input", "rounding", "transpose", "bytes", "seconds", "seconds_of_copy")
    return {
        "device": check["kernels"]["device"],
        "compared": {part: check[part]["compared"] for part in PARTS},
        "transform": check["transformed"]["result"],
        "pristine": check["zeros"]["result"],
        "rates": [{name: row[name] for name in kept} for row in check["bandwidth"]["result"]],
        "training": {name: train[name] for name in ("network", "batch", "steps", "rate")}
        | {"curves": {name: [round(loss, 4) for loss in losses] for name, losses in train["curves"].items()}},
    }


def tables(found: dict[str, Any]) -> str:
    """Return the page's tables."""
    lines = ["| compared byte for byte | cases | bytes | cases that differ |", "|---|---|---|---|"]
    for part, title in PARTS.items():
        of = found["compared"][part]
        lines.append(f"| {title} | {of['cases']} | {of['bytes']:,} | {of['wrong_cases']} |")
    lines += ["", "| rate, as part of a copy's | to nearest | stochastic |", "|---|---|---|"]
    for transpose, title in ((False, "quantization"), (True, "the same, with the transpose")):
        shares = {rounding: _shares(found["rates"], rounding, transpose) for rounding in ("nearest", "stochastic")}
        lines.append(f"| {title} | {' | '.join(f'{min(of):.0%} to {max(of):.0%}' for of in shares.values())} |")
    lines += ["", "| training | loss of the first ten steps | of the last ten |", "|---|---|---|"]
    for name, losses in found["training"]["curves"].items():
        lines.append(f"| {name} | {losses[0]:.3f} | {losses[-1]:.3f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Take a run's results into the record, where a directory is named; write the page's part and the picture."""
    if arguments:
        RECORD.write_text(json.dumps(record(Path(arguments[0])), indent=1) + "\n", encoding="utf-8")
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    _made_part.write(PAGE, "transformer-engine", tables(found))
    curves, steps = found["training"]["curves"], found["training"]["steps"]
    drawn = [
        (np.linspace(0, 1, len(losses)), _height(np.array(losses)), color, f"{name} (last ten steps: {losses[-1]:.3f})")
        for (name, losses), color in zip(curves.items(), COLORS, strict=True)
    ]
    across = {f"{steps * part // 3:,}": part / 3 for part in range(4)}
    draw(PICTURE, drawn, across, {label: float(_height(loss)) for label, loss in UP.items()})


def _shares(rates: list[dict[str, Any]], rounding: str, transpose: bool) -> list[float]:
    """Return the rate of each kernel as a part of that of a copy of as many bytes."""
    rows = (row for row in rates if (row["rounding"], row["transpose"]) == (rounding, transpose))
    return [row["seconds_of_copy"] / row["seconds"] for row in rows]


def _height(loss: Any) -> Any:
    """Return the place of a loss: logarithmic, from 1/8 to 8."""
    return (np.log2(loss) + 3) / 6
