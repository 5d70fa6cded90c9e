"""Write records/instructions.json: the result of the ptxas of every release for every feature.

    python -m tools.regenerate features

The site has it as tables, and `fp4patch explore` shows it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fp4patch.catalog.feature import FeatureReport, Outcome
from fp4patch.commands.explore.answers import packed
from fp4patch.commands.explore.run import INSTRUCTIONS
from fp4patch.commands.features import text as features
from fp4patch.commands.features.run import assemblers, probe
from fp4patch.core import progress
from fp4patch.core.schema import SCHEMA

ROOT = Path(__file__).parents[2]


def main(_arguments: list[str]) -> None:
    """Probe the toolkits, and write the record."""
    report = probe(assemblers(["all"], (), on_download=progress.silent))
    text = json.dumps({"schema": SCHEMA, "nodes": packed(record(report))}, ensure_ascii=False, separators=(",", ":"))
    (ROOT / INSTRUCTIONS).write_text(text + "\n", encoding="utf-8")


def record(report: FeatureReport) -> dict[str, Any]:
    """Return the outcome of each feature on each target by each toolkit, with the machine code or the refusal."""
    names = features.labels(report.toolkits)
    cells: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, toolkit in zip(names, report.toolkits, strict=True):
        for cell in toolkit.cells:
            text = cell.refusal or "" if cell.outcome is Outcome.REJECTED else cell.code
            cells.setdefault(cell.instruction, {}).setdefault(str(cell.target), {})[name] = [cell.outcome, text]
    groups = [
        {
            "title": group.title,
            "features": [
                {"instruction": f.instruction, "title": f.title, "note": f.note, "cells": cells[f.instruction]}
                for f in group.features
            ],
        }
        for group in report.groups
    ]
    return {"toolkits": names, "groups": groups}
