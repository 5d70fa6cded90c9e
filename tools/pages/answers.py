"""Read every release's tree as doctor does, for the explorer's answers.

    python -m tools.regenerate answers [--missing] [--target NAME] [--jobs N] [TREE...]

It writes records/answers.json: for each release that the catalog can fetch, in its pristine state and after each
variant of PATCHED, what its build makes of each arch list with each CUDA release. Needs cmake. Releases that no archive
holds are read if a checkout of their commit is named, and keep what is recorded if none is. vLLM's and FlashInfer's own
build code runs, as in doctor.
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.commands.explore_page import LISTS
from fp4patch.core import progress
from fp4patch.doctor.recorded import RECORD, full, state_of, text_of
from fp4patch.doctor.result import Question
from fp4patch.doctor.tree import TreeFacts, read_facts
from fp4patch.sources.fetch import fetch
from fp4patch.tree.apply import apply, revert
from fp4patch.tree.status import status
from tools.pages.features import cuda_releases
from tools.watch import checked_out

ROOT = Path(__file__).parents[2]
PATCHED = ("native", "next3")
"""Variants that doctor recommends."""


def evaluated_lists(target: Target) -> list[str]:
    """Return the arch lists to evaluate: those in common use, then others, as the build takes them."""
    if target.build is None:
        return []
    others = [asked.replace(";", target.build.separator) for asked in LISTS]
    return list(dict.fromkeys([*target.build.lists, *others]))


def facts_of(tree: Identified) -> TreeFacts:
    """Read a tree as it is, and evaluate its build for every CUDA release and list in one run."""
    questions = [Question(asked=asked, cuda=cuda) for cuda in cuda_releases() for asked in evaluated_lists(tree.target)]
    found = next(report for report in status([tree.root], on_wait=lambda _: None) if report.root == tree.root)
    return read_facts(tree, found, questions, on_wait=lambda _: None)


def look(path: Path, version: str | None) -> dict[str, Any]:
    """Return the row of one release: what is read of its pristine tree, and of the tree after each variant."""
    tree = identify_all([path], load())[0]
    lists = evaluated_lists(tree.target)
    facts = facts_of(tree)
    states = {"": state_of(facts, cuda_releases(), lists)}
    for variant in PATCHED:
        if tree.target.name not in load().variant(variant).targets:
            continue
        applied = apply([path], variant)
        if not applied.refused:
            states[variant] = state_of(facts_of(tree), cuda_releases(), lists)
        revert([path])
    release = version or checked_out(tree) or str(tree.version)
    print(tree.target.name, release, *states, flush=True)  # noqa: T201 - a script
    row: dict[str, Any] = {"target": tree.target.name, "version": release}
    if facts.claims != release:
        row["claims"] = facts.claims
    if facts.content.releases != (release,):
        row["content"] = facts.content.releases
    return {**row, "states": states}


def main(arguments: list[str]) -> None:
    """Fetch trees, read them and write the record after each target."""
    options = argparse.ArgumentParser(description="Read every release's tree as doctor does.")
    options.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    options.add_argument("--missing", action="store_true", help="only releases that are not recorded yet")
    options.add_argument("--target", help="only releases of this target")
    options.add_argument("--jobs", type=int, metavar="N", help="releases at a time; default: one per core")
    asked = options.parse_args(arguments)
    rows = {(row["target"], row["version"]): row for row in full(ROOT)}
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
    """Write the record, in order of target and version."""
    ordered = sorted(rows.values(), key=lambda row: (row["target"], Version(row["version"])))
    lists = {name: evaluated_lists(target) for name, target in sorted(load().targets.items())}
    (ROOT / RECORD).write_text(text_of(cuda_releases(), lists, ordered), encoding="utf-8")
