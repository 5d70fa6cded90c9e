"""Read every release's tree as doctor does, for the explorer's answers.

    python -m tools.regenerate answers [--missing] [--target NAME] [--jobs N] [TREE...]

It writes records/answers.json: for each release that the catalog can fetch, in its pristine state and after each
variant of PATCHED, what its build makes of each arch list with each CUDA release. Needs cmake. Releases that no archive
holds are read if a checkout of their commit is named, and keep what is recorded if none is. vLLM's and FlashInfer's own
build code runs, as in doctor.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Gate, Target
from fp4patch.commands.explore_page import LISTS
from fp4patch.core import progress
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import has
from fp4patch.core.document import SCHEMA
from fp4patch.core.results import State
from fp4patch.doctor.recorded import CUDA, RECORD, record_of
from fp4patch.doctor.result import Question
from fp4patch.doctor.tree import TreeFacts, read_facts
from fp4patch.sources.fetch import fetch
from fp4patch.tree.apply import apply, revert
from fp4patch.tree.status import status
from tools.checkouts import checked_out
from tools.pages.features import cuda_releases

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
    found = next(report for report in status([tree.root]) if report.root == tree.root)
    return read_facts(tree, found, questions)


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
    row: dict[str, Any] = {"target": tree.target.name, "version": release}
    if str(tree.version) != release:
        row["claims"] = str(tree.version)
    if facts.releases != (release,):
        row["content"] = facts.releases
    return {**row, "states": states}


def state_of(facts: TreeFacts, cudas: Sequence[str], lists: Sequence[str]) -> dict[str, Any]:
    """Return the state of a tree for the record, with its rows in full."""
    return {
        "variant": facts.variant,  # empty also after a variant that has nothing to do
        "state": facts.state.value,
        "open": _open(facts),
        "opened": {gate.gpu: [_targets(facts, gate, cuda) for cuda in cudas] for gate in facts.tree.target.gates},
        "rows": [_made(facts, cuda, lists) for cuda in cudas] if facts.tree.target.build else [],
    }


def _open(facts: TreeFacts) -> list[str]:
    """Return the patches that repair a known defect and are not applied."""
    repairs = {f"{facts.tree.target.name}/{defect.patch}" for defect in facts.tree.target.defects if defect.patch}
    return [patch.patch for patch in facts.patches if patch.state is State.PRISTINE and patch.patch in repairs]


def _targets(facts: TreeFacts, gate: Gate, cuda: str) -> list[str] | None:
    """Return the targets of a GPU for which the headers define the macro with a CUDA release that has them."""
    gpu = Arch.parse(gate.gpu)
    usable = [arch for suffix in ("a", "f") if has(Version(cuda), arch := replace(gpu, suffix=suffix))]
    opened = facts.opened(gate, usable, cuda)
    return None if opened is None else [str(arch) for arch in opened]


def _made(facts: TreeFacts, cuda: str, lists: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the build makes of each list, those in common use and others."""
    build = facts.tree.target.build
    made = {row.asked: row for row in facts.rows(Question(cuda=cuda), Version(cuda))[0]}
    for asked in lists:
        if build and asked not in made:
            question = Question(asked=asked.replace(build.separator, ";"), cuda=cuda)
            (made[asked],) = facts.rows(question, Version(cuda))[0]
    return [_recorded(made[asked]) for asked in lists]


def _recorded(row: BuildRow) -> dict[str, Any]:
    """Return the facts of a row; keys without a value are left out."""
    on = {
        str(gpu): {"modules": {} if made.stops else made.modules, "stops": made.stops.replace(row.cuda, CUDA)}
        for gpu, made in row.on.items()
    }
    facts = {"on": on, "stops": row.stops.replace(row.cuda, CUDA), "error": row.error}
    given = {key: value for key, value in facts.items() if value}
    return {"kernels": row.kernels, "reaches": {str(gpu): reach.value for gpu, reach in row.reaches.items()}} | given


def text_of(
    cudas: Sequence[str],
    lists: Mapping[str, Sequence[str]],
    releases: Sequence[Mapping[str, Any]],
) -> str:
    """Return the record: one line for each row, state and release. The releases have their states in full."""
    rows: dict[str, int] = {}
    states: dict[str, int] = {}
    lines = []
    for release in releases:
        numbers = {}
        for variant, state in release["states"].items():
            numbered = [[rows.setdefault(json.dumps(row), len(rows)) for row in made] for made in state["rows"]]
            text = json.dumps(state | {"rows": numbered})
            numbers[variant] = states.setdefault(text, len(states))
        lines.append(json.dumps({**release, "states": numbers}))
    head = f'{{"schema": {SCHEMA}, "cudas": {json.dumps(cudas)}, "lists": {json.dumps(lists)},\n'
    parts = {"rows": rows, "states": states, "releases": lines}
    joined = {name: ",\n".join(part) for name, part in parts.items()}
    return head + ",\n".join(f'"{name}": [\n{text}\n]' for name, text in joined.items()) + "}\n"


def full(root: Path) -> list[dict[str, Any]]:
    """Return the releases of the record with their states in full, as ``text_of`` takes them."""
    if not (root / RECORD).is_file():
        return []
    record = record_of(root, RECORD)
    states = [
        state | {"rows": [[record["rows"][at] for at in made] for made in state["rows"]]} for state in record["states"]
    ]
    return [
        release | {"states": {variant: states[at] for variant, at in release["states"].items()}}
        for release in record["releases"]
    ]


def main(arguments: list[str]) -> None:
    """Fetch trees, read them and write the record after each target."""
    options = argparse.ArgumentParser(description="Read every release's tree as doctor does.")
    options.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    options.add_argument("--missing", action="store_true", help="only releases that are not recorded yet")
    options.add_argument("--target", help="only releases of this target")
    options.add_argument("--jobs", type=int, metavar="N", help="releases at a time; default: one per core")
    asked = options.parse_args(arguments)
    rows = {(row["target"], row["version"]): row for row in full(load().root)}
    rows |= {(row["target"], row["version"]): row for row in (look(tree, None) for tree in asked.trees)}
    with ProcessPoolExecutor(asked.jobs) as workers:
        for name, target in load().targets.items():
            if asked.target in (None, name):
                missing = [a.version for a in target.archives if not (asked.missing and (name, a.version) in rows)]
                for row in workers.map(fetched, [name] * len(missing), missing):
                    rows[name, row["version"]] = row
                    print(name, row["version"], *row["states"], flush=True)  # noqa: T201 - a script
                write(rows)


def fetched(target: str, version: str) -> dict[str, Any]:
    """Return the row of a release that the catalog can fetch."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        fetch(load().target(target), version, tree, progress=progress.silent)
        return look(tree, version)


def add(row: dict[str, Any]) -> None:
    """Put the row of one release into the record."""
    write({(one["target"], one["version"]): one for one in (*full(load().root), row)})


def write(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write the record, in order of target and version."""
    ordered = sorted(rows.values(), key=lambda row: (row["target"], Version(row["version"])))
    lists = {name: evaluated_lists(target) for name, target in sorted(load().targets.items())}
    (load().root / RECORD).write_text(text_of(cuda_releases(), lists, ordered), encoding="utf-8")
