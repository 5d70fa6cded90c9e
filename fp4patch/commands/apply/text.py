"""Results of ``apply`` and ``revert`` as text, as a unified diff, and as a JSON document."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from fp4patch.commands import terminal
from fp4patch.commands.apply.result import ApplyState
from fp4patch.commands.document import problem_document
from fp4patch.commands.words import VERBATIM, printable
from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fp4patch.commands.apply.result import Applied, TreeResult


def document(applied: Applied, *, diff: bool) -> dict[str, Any]:
    """Return the JSON document that docs/json.md describes."""
    trees = [_tree(tree, diff=diff) for tree in applied.trees]
    only = trees[0] if len(trees) == 1 else {}
    return {
        "schema": SCHEMA,
        "command": applied.verb,
        "written": applied.written and applied.changed,
        "state": applied.state.value,
        "target": only.get("target"),
        "version": only.get("version"),
        "variant": trees[0]["variant"],
        "cost": applied.cost,
        "files": [file | {"tree": tree["tree"]} for tree in trees for file in tree["files"]],
        "problems": [problem | {"tree": tree["tree"]} for tree in trees for problem in tree["problems"]],
        "trees": trees,
    }


def _tree(tree: TreeResult, *, diff: bool) -> dict[str, Any]:
    files = []
    for file in tree.files:
        entry = {
            "path": file.path,
            "state": file.state.value,
            "patches": list(file.patches),
            "before_sha256": hashlib.sha256(file.before).hexdigest(),
            "after_sha256": hashlib.sha256(file.after).hexdigest(),
        }
        files.append(entry | ({"diff": unified(file.path, file.before, file.after)} if diff else {}))
    return {
        "tree": str(tree.root),
        "target": tree.target,
        "version": tree.version,
        "variant": tree.variant,
        "state": tree.state.value,
        "files": files,
        "notes": [*map(str, tree.retired), *tree.notes],
        "remainders": [asdict(remainder) for remainder in tree.remainders],
        "problems": [problem_document(problem) for problem in tree.problems],
    }


def text(applied: Applied, *, diff: bool, why: bool = False) -> RenderableType:
    """Return one line per tree, one per file that changes, then the notes; with ``diff`` the changes themselves.

    If several edits of a patch have nothing to do, they are counted; with ``why`` each is listed with its reason.
    """
    lines: list[RenderableType] = []
    for tree in applied.trees:
        lines.append(_line(f"{tree.root}: {_sentence(tree, applied)}"))
        for file in () if applied.refused else tree.files:
            if file.changed:
                by = ", ".join(file.patches) if tree.state is ApplyState.APPLIED and file.patches else "pristine bytes"
                lines.append(_line(f"  {file.path}  ({by})"))
                lines += [Verbatim(unified(file.path, file.before, file.after))] if diff else []
        lines += [
            _line(f"  {note}") for note in (*_nothing_to_do(tree, why=why), *_remaining(tree, why=why), *tree.notes)
        ]
    if applied.cost and not applied.refused:
        lines.append(Text(f"cost: {applied.cost}"))
    return Group(*lines)


def _line(text: str) -> Text:
    """Return a text as one line, whatever characters it contains."""
    return Text(printable(text))


def _sentence(tree: TreeResult, applied: Applied) -> str:
    changed = sum(file.changed for file in tree.files)
    what = " ".join(part for part in (tree.target, tree.version) if part)
    would = "" if applied.written else "would be "
    match tree.state:
        case ApplyState.APPLIED:
            files = f", {changed} file{'s' * (changed != 1)} changed" if applied.written else f", {changed} to change"
            return f"{tree.variant} {would}applied to {what}{files}"
        case ApplyState.REVERTED:
            return f"{what} {would}reverted to its pristine bytes, {changed} file{'s' * (changed != 1)}"
        case ApplyState.UNCHANGED if applied.verb == "revert":
            return f"nothing to revert, {what} has no receipt of fp4patch"
        case ApplyState.UNCHANGED:
            return f"nothing to do, {what} is in the state of {tree.variant}"
        case ApplyState.REFUSED:
            return f"refused, {what} is untouched"


def _nothing_to_do(tree: TreeResult, *, why: bool) -> Iterator[str]:
    for patch, group in groupby(sorted(tree.retired, key=attrgetter("patch")), attrgetter("patch")):
        edits = list(group)
        if why or len(edits) == 1:
            yield from map(str, edits)
        else:
            states = Counter(edit.state.value for edit in edits)
            found = ", ".join(f"{number} {state}" for state, number in states.items())
            yield f"{patch}: {len(edits)} of its edits have nothing to do here ({found}); --why says why"


def _remaining(tree: TreeResult, *, why: bool) -> Iterator[str]:
    """Return the places that remain unchanged: a line for each patch and reason with its files, or for each place."""
    if why:
        yield from map(str, tree.remainders)
        return
    by = attrgetter("patch", "because")
    for (patch, because), group in groupby(sorted(tree.remainders, key=by), by):
        places = list(group)
        named = list(dict.fromkeys(place.file for place in places))
        more = f" and {len(named) - 4} more files (--why names each)" if len(named) > 4 else ""
        files = ", ".join(named[:4]) + more
        yield f"{patch}: {len(places)} place{'s' * (len(places) != 1)} left as they are in {files}: {because}"


def refusal(applied: Applied) -> RenderableType:
    """Return every problem of every tree, each tree by its name. Equal problems of several edits appear once."""
    parts: list[RenderableType] = []
    for tree in (tree for tree in applied.trees if tree.problems):
        parts += [_line(f"{tree.root}:"), terminal.problems(tuple(dict.fromkeys(tree.problems)))]
    return Group(*parts)


class Verbatim:
    """Text that is printed to the byte: ``rich.text.Text`` would take the carriage returns out."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield Segment(self.text, Style.from_meta({VERBATIM: True}))


def unified(path: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file, as ``git apply`` takes it: only a line feed ends a line there."""
    one, other = (data.decode("utf-8", errors="surrogateescape") for data in (before, after))
    lines = difflib.unified_diff(_lines(one), _lines(other), _quoted(f"a/{path}"), _quoted(f"b/{path}"))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split into lines with their ends. ``splitlines`` would also cut at a form feed, or at a lone carriage return."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _quoted(name: str) -> str:
    """Quote a name as git does, if it has characters that could end the line or control a terminal."""
    if name.isprintable() and not set(name) & set('"\\'):
        return name
    escaped = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:03o}" for b in os.fsencode(name))
    return f'"{"".join(escaped)}"'
