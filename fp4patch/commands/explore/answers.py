"""The record of doctor's answers, ``records/answers.json``, and the form in which it holds each distinct value once.

``python -m tools.regenerate answers`` runs doctor and writes it. An answer is the part of ``fp4patch doctor --json``
about one source tree that depends on the question.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fp4patch.commands.document import document
from fp4patch.doctor.result import DoctorReport, TreeReport

RECORD = "records/answers.json"
CUDA = "{cuda}"
"""Stands for the CUDA release of the question in the texts of a packed answer."""
ROWS = ("asked", "kernels", "on", "reaches", "stops", "error")
"""Keys of a build's row that an answer keeps."""
OF_A_GPU = ("gpu", "level", "verdict", "because", "todo")
"""Keys of doctor's answer for a GPU that an answer keeps."""


def read(root: Path) -> Any:
    """Return the record below the catalog's root as plain values, or None if there is none."""
    file = root / RECORD
    return unpacked(json.loads(file.read_text(encoding="utf-8"))["nodes"]) if file.is_file() else None


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
