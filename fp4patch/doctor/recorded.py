"""The record of what doctor reads of every release's tree, ``records/answers.json``: facts, from which it judges.

A row is what a build makes of one arch list. A state is a tree as released, or after a variant: the numbers of its
rows, for each CUDA release and arch list, and the targets that its headers open. Releases share states, and states
share rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import TypeAdapter

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries.findings import Finding
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Gate, Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Fp4PatchError, UsageError
from fp4patch.core.results import State
from fp4patch.core.wording import suggested
from fp4patch.doctor.builds import not_evaluated, pairs_of
from fp4patch.doctor.result import Question, TreeReport
from fp4patch.doctor.tree import TreeFacts, cuda_of
from fp4patch.doctor.tree_answers import judge
from fp4patch.tree.receipt import PatchStatus

RECORD = "records/answers.json"
TREE = Path("/the-tree")
"""Stands for the directory of a recorded tree."""
CUDA = "{cuda}"
"""Stands for the CUDA release of the question in the message of a build that stops."""
_rows_type = cache(lambda: TypeAdapter(BuildRow))


@dataclass(frozen=True)
class RecordedTree:
    """A release's tree, as released or after a variant."""

    target: str
    version: str
    variant: str
    """Variant that was applied; empty: none."""
    state: int
    """Number of its state: trees of one number differ in their release alone."""
    facts: TreeFacts


@dataclass(frozen=True)
class Survey:
    """All recorded trees, and the CUDA releases that were asked about."""

    cudas: tuple[str, ...]
    lists: Mapping[str, Sequence[str]]
    """Arch lists of each target."""
    trees: tuple[RecordedTree, ...]


def record_of(root: Path, name: str) -> Any:
    """Return the content of a record below the catalog's root."""
    file = root / name
    if not file.is_file():
        raise Fp4PatchError(
            f"there is no {file}", help="fp4patch's own data has it; if FP4PATCH_DATA names other data, unset it"
        )
    return json.loads(file.read_text(encoding="utf-8"))


@cache
def read(root: Path) -> Survey:
    """Return what is recorded below the catalog's root."""
    record = record_of(root, RECORD)
    trees = []
    for release in record["releases"]:
        target = load().targets[release["target"]]
        tree = Identified(TREE, target, Version(release.get("claims", release["version"])))
        for variant, number in release["states"].items():
            state = record["states"][number]
            facts = TreeFacts(
                tree=tree,
                releases=tuple(release.get("content", [release["version"]])),
                variant=state["variant"],
                state=State(state["state"]),
                patches=tuple(PatchStatus(patch, State.PRISTINE, "") for patch in state["open"]),
                rows=partial(_rows, target, record, state["rows"]),
                opened=partial(_opened, record["cudas"], state["opened"]),
            )
            trees.append(RecordedTree(target.name, release["version"], variant, number, facts))
    return Survey(tuple(record["cudas"]), record["lists"], tuple(trees))


def examine_release(root: Path, release: str, question: Question) -> TreeReport:
    """Return the report on ``vllm==0.33.0`` as released, from the record alone.

    UsageError, with the commands that fetch and read the tree, for what is not recorded.
    """
    name, _, version = release.partition("==")
    target, survey = load().target(name), read(root)
    facts = {tree.version: tree.facts for tree in survey.trees if tree.target == name and not tree.variant}
    if version not in facts:
        every = f"recorded are {', '.join(facts)}; else name a source tree"
        raise UsageError(f"{release} is not recorded", help=suggested(version, facts, every))
    build, cuda = target.build, cuda_of(question)
    asked = question.asked.replace(";", build.separator) if build else ""
    if (cuda and str(cuda) not in survey.cudas) or (asked and asked not in survey.lists[name]):
        wanted = " with ".join(part for part in (question.asked, f"CUDA {cuda}" if cuda else "") if part)
        raise UsageError(
            f"{release} is not recorded for {wanted}",
            help=f"fetch it with `fp4patch fetch {release} {name}`, then ask about the directory {name}",
        )
    placed = replace(facts[version], tree=replace(facts[version].tree, root=Path(name)))
    report = judge(placed, question)
    command = f"fp4patch fetch {release} {name} && {report.recommended.next}" if report.recommended.next else ""
    return replace(report, root=release, recommended=replace(report.recommended, next=command))


def _rows(
    target: Target,
    record: Mapping[str, Any],
    numbers: Sequence[Sequence[int]],
    question: Question,
    cuda: Version | None,
) -> tuple[tuple[BuildRow, ...], list[Finding]]:
    if target.build is None:
        return (), []
    cudas, lists = record["cudas"], record["lists"][target.name]
    pairs = [pair for pair in pairs_of(target.build, question, cuda) if pair[0] in cudas and pair[1] in lists]
    number_of = {(c, asked): numbers[cudas.index(c)][lists.index(asked)] for c, asked in pairs}
    made = tuple(_row(*pair, record["rows"][number]) for pair, number in number_of.items())
    return made, not_evaluated(target.build, made)


def _row(cuda: str, asked: str, row: Mapping[str, Any]) -> BuildRow:
    return _rows_type().validate_json(json.dumps({"cuda": cuda, "asked": asked, **row}).replace(CUDA, cuda))


def _opened(
    cudas: Sequence[str], opened: Mapping[str, Sequence[Any]], gate: Gate, archs: Sequence[Arch], cuda: str
) -> list[Arch] | None:
    targets = opened[gate.gpu][cudas.index(cuda)]
    return None if targets is None else [arch for arch in archs if str(arch) in targets]
