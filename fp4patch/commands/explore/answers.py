"""Doctor's answers about every recorded release, and a form of values that holds each distinct one once.

An answer is the part of ``fp4patch doctor --json`` about one source tree that depends on the question. They are judged
when the page is made, from what doctor read of the trees (:mod:`fp4patch.doctor.recorded`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fp4patch.catalog.target import Target
from fp4patch.console import document
from fp4patch.core.release import covers
from fp4patch.doctor import recorded
from fp4patch.doctor.recommend import recommend
from fp4patch.doctor.result import DoctorReport, TreeReport
from fp4patch.doctor.run import question
from fp4patch.doctor.tree import TreeFacts, by_content, cuda_of, judge

CUDA = "{cuda}"
"""Stands for the CUDA release of the question in the texts of a packed answer."""
ROWS = ("asked", "kernels", "on", "reaches", "stops", "error")
"""Keys of a build's row that an answer keeps."""
OF_A_GPU = ("gpu", "level", "verdict", "because", "todo")
"""Keys of doctor's answer for a GPU that an answer keeps."""
GPUS = ("sm_121", "sm_120", "sm_120,sm_121", "sm_90", "sm_100")
"""Each value of --for: GB10, the RTX cards, one build for both, and H200 and B200 for comparison."""
LISTS = ("12.0", "12.1", "12.0;12.1", "12.0f;12.1f", "10.0a;12.0a", "9.0a;10.0a;12.0a;12.1a", "8.0;9.0;10.0;12.0")
"""Arch lists to ask about, beside those of the target: without a suffix, and for several generations at once."""


def lists_of(target: Target) -> tuple[str, ...]:
    """Return the arch lists to ask about; the empty one asks for those in common use."""
    if target.build is None:
        return ("",)
    usual = [asked.replace(target.build.separator, ";") for asked in target.build.lists]
    return tuple(dict.fromkeys(["", *usual, *LISTS]))


def read(root: Path) -> Any:
    """Return doctor's answers about each recorded release, state, CUDA release, arch list and GPU as plain values."""
    survey = recorded.read(root)
    releases: dict[tuple[str, str], dict[str, Any]] = {}
    known: dict[Any, Any] = {}
    for tree in survey.trees:
        key = tree.state, _of_the_release(tree.facts, survey.cudas)
        if key not in known:
            known[key] = _answered(tree.facts, survey.cudas)
        row = {"target": tree.target, "version": tree.version, "states": {}}
        releases.setdefault((tree.target, tree.version), row)["states"][tree.variant] = known[key]
    return {"cudas": survey.cudas, "gpus": GPUS, "releases": list(releases.values())}


def _of_the_release(facts: TreeFacts, cudas: Sequence[str]) -> tuple[Any, ...]:
    """Return what an answer takes from a tree's release, beside its state: advice and defects."""
    tree = by_content(facts.tree, facts.content)
    advice = [recommend(tree, cuda_of(question(None, None, cuda))) for cuda in cudas]
    defects = tuple(covers(defect.versions, tree.version) for defect in tree.target.defects)
    return (tree.target.name, facts.variant, str(advice), defects, facts.findings)


def _answered(facts: TreeFacts, cudas: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    asked = [(cuda, archs, gpus) for cuda in cudas for archs in lists_of(facts.tree.target) for gpus in GPUS]
    reports = [judge(facts, question(gpus, archs or None, cuda)) for cuda, archs, gpus in asked]
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for (cuda, archs, gpus), answer in zip(asked, answers(reports, [cuda for cuda, _, _ in asked]), strict=True):
        result.setdefault(cuda, {}).setdefault(archs, {})[gpus] = answer
    return result


def answers(reports: Sequence[TreeReport], cudas: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield doctor's answer of each report; ``./TARGET`` stands for the tree's directory, CUDA for its release."""
    trees = document(DoctorReport(None, tuple(reports), (), ()))["trees"]
    for tree, cuda in zip(trees, cudas, strict=True):
        found = {
            "level": tree["level"],
            "gpus": [{key: one[key] for key in OF_A_GPU} for one in tree["gpus"]],
            "recommended": tree["recommended"],
            "builds": [{key: row[key] for key in ROWS} for row in tree["builds"]],
            "findings": tree["findings"],
        }
        root, named = shlex.quote(tree["tree"]), f"./{tree['target']}"
        yield _texts(found, lambda text: text.replace(root, named).replace(cuda, CUDA))  # noqa: B023 - called here


def asked(found: Mapping[str, Any], cuda: str) -> dict[str, Any]:
    """Return a recorded answer with the CUDA release of the question in its texts."""
    return _texts(found, lambda text: text.replace(CUDA, cuda))  # type: ignore[no-any-return]


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _texts(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def packed(value: Any) -> list[Any]:
    """Return a value of JSON as nodes, each distinct one once: a list or an object has the numbers of its parts, which
    come before it. The last node is the value itself."""
    nodes: list[Any] = []
    numbers: dict[str, int] = {}
    seen: dict[int, tuple[int, Any]] = {}

    def number(part: Any) -> int:
        if id(part) in seen:
            return seen[id(part)][0]
        if isinstance(part, Mapping):
            node: Any = {key: number(one) for key, one in part.items()}
        elif isinstance(part, list | tuple):
            node = [number(one) for one in part]
        else:
            node = part
        text = json.dumps(node)
        if text not in numbers:
            numbers[text] = len(nodes)
            nodes.append(node)
        seen[id(part)] = numbers[text], part  # with the part itself, so that its id stays its own
        return numbers[text]

    number(value)
    return nodes


def unpacked(nodes: Sequence[Any]) -> Any:
    """Return the value of packed nodes. Equal parts are the same objects: do not change them."""
    return parts(nodes)[-1]


def parts(nodes: Sequence[Any]) -> list[Any]:
    """Return each distinct part of the value of packed nodes, and last the value itself."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, dict):
            values.append({key: values[at] for key, at in node.items()})
        elif isinstance(node, list):
            values.append([values[at] for at in node])
        else:
            values.append(node)
    return values
