"""Ask doctor every question of the explorer about every release, and record the answers.

    python -m tools.regenerate answers [--missing] [--target NAME] [--jobs N] [TREE...]

It writes records/answers.json, from which `fp4patch explore` makes its page: for each release that the catalog can
fetch, in its pristine state and after each variant of PATCHED, the answer for each CUDA release, arch list and GPU.
Needs cmake. Releases that no archive holds are asked about if a checkout of their commit is named, and keep their
answers if none is. vLLM's and FlashInfer's own build code runs, as in doctor.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.catalog.features import load_toolkits
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.commands.apply.run import apply, revert
from fp4patch.commands.explore.answers import RECORD, answers, packed, read
from fp4patch.core import progress
from fp4patch.core.schema import SCHEMA
from fp4patch.doctor.run import question
from fp4patch.doctor.tree import examine_each
from fp4patch.sources.fetch import fetch
from fp4patch.tree.status import status
from tools.watch import checked_out

ROOT = Path(__file__).parents[2]
GPUS = ("sm_121", "sm_120", "sm_120,sm_121", "sm_90", "sm_100")
"""Each value of --for: GB10, the RTX cards, one build for both, and H200 and B200 for comparison."""
PATCHED = ("native", "next3")
"""Variants that doctor recommends."""
LISTS = ("12.0", "12.1", "12.0;12.1", "12.0f;12.1f", "10.0a;12.0a", "9.0a;10.0a;12.0a;12.1a", "8.0;9.0;10.0;12.0")
"""Arch lists to ask about, beside those of the target: without a suffix, and for several generations at once."""


def cudas() -> tuple[str, ...]:
    """Return every CUDA release with a surveyed compiler: ``13.0``."""
    releases = {".".join(wheel.release.split(".")[:2]) for wheel in load_toolkits(load().root).wheels}
    return tuple(sorted(releases, key=Version))


def lists_of(target: Target) -> tuple[str, ...]:
    """Return the arch lists to ask about; the empty one asks for those in common use."""
    if target.build is None:
        return ("",)
    usual = [asked.replace(target.build.separator, ";") for asked in target.build.lists]
    return tuple(dict.fromkeys(["", *usual, *LISTS]))


def questions(target: Target) -> list[tuple[str, str, str]]:
    """Return each CUDA release, arch list and value of --for."""
    return [(cuda, asked, gpus) for cuda in cudas() for asked in lists_of(target) for gpus in GPUS]


def ask(tree: Identified) -> dict[str, dict[str, dict[str, Any]]]:
    """Return doctor's answers about a tree as it is: CUDA release, arch list, GPU."""
    asked = questions(tree.target)
    found = next(one for one in status([tree.root], on_wait=lambda _: None) if one.root == tree.root)
    options = [question(gpus, archs or None, cuda) for cuda, archs, gpus in asked]
    reports = list(examine_each(tree, found, options, on_wait=lambda _: None))
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for (cuda, archs, gpus), one in zip(asked, answers(reports, [cuda for cuda, _, _ in asked]), strict=True):
        result.setdefault(cuda, {}).setdefault(archs, {})[gpus] = one
    return result


def look(path: Path, version: str | None) -> dict[str, Any]:
    """Return the row of one release: the answers about its pristine tree, and about the tree after each variant."""
    tree = identify_all([path], load())[0]
    states = {"": ask(tree)}
    for variant in PATCHED:
        if tree.target.name not in load().variant(variant).targets:
            continue
        applied = apply([path], variant, write=True, said_version=None, on_wait=lambda _: None)
        if not applied.refused:
            states[variant] = ask(tree)
        revert([path], on_wait=lambda _: None)
    release = version or checked_out(tree) or str(tree.version)
    print(tree.target.name, release, *states, flush=True)  # noqa: T201 - a script
    return {"target": tree.target.name, "version": release, "states": states}


def main(arguments: list[str]) -> None:
    """Fetch trees, ask and write; write after each target, since packing takes as long as a release."""
    options = argparse.ArgumentParser(description="Ask doctor every question of the explorer.")
    options.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    options.add_argument("--missing", action="store_true", help="only releases that have no answers yet")
    options.add_argument("--target", help="only releases of this target")
    options.add_argument("--jobs", type=int, metavar="N", help="releases at a time; default: one per core")
    asked = options.parse_args(arguments)
    record = read(ROOT)
    rows = {(row["target"], row["version"]): row for row in record["releases"]} if record else {}
    rows |= {(row["target"], row["version"]): row for row in (look(tree, None) for tree in asked.trees)}
    with ProcessPoolExecutor(asked.jobs) as workers:
        for name, target in load().targets.items():
            if asked.target in (None, name):
                missing = [a.version for a in target.pinned if not (asked.missing and (name, a.version) in rows)]
                found = workers.map(fetched, [name] * len(missing), missing)
                rows |= {(name, row["version"]): row for row in found}
                write(rows)


def fetched(target: str, version: str) -> dict[str, Any]:
    """Return the row of a release that the catalog can fetch."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        fetch(load().target(target), version, tree, git_url=None, progress=progress.silent, show_progress=False)
        return look(tree, version)


def write(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write the record, in order of target and version, one node to a line."""
    ordered = sorted(rows.values(), key=lambda row: (row["target"], Version(row["version"])))
    nodes = packed({"cudas": cudas(), "gpus": GPUS, "releases": ordered})
    lines = ",\n".join(json.dumps(node, ensure_ascii=False) for node in nodes)
    (ROOT / RECORD).write_text(f'{{"schema": {SCHEMA}, "nodes": [\n{lines}\n]}}\n', encoding="utf-8")
