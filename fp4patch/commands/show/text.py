"""Results of ``list`` and ``show``, as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from fp4patch.commands import terminal
from fp4patch.commands.show.result import Lists
from fp4patch.commands.terminal import STATES, Fitting, Hanging, folded, whole
from fp4patch.core.state import State

ROOM = 60
"""Columns that the two texts of a list need beside each other."""

MATRIX = "records/matrix.json"
"""Path below the catalog's root of the results of each patch on each release, as tools/watch.py recorded them."""


def list_table(found: Lists) -> RenderableType:
    """Return one small table per kind."""
    tables: list[RenderableType] = []
    if found.variants:
        tables.append(_List("variant", "patches", [(v.name, v.title, " ".join(v.patches)) for v in found.variants]))
    if found.patches:
        tables.append(_List("patch", "tried on", [(p.name, p.title, p.applies) for p in found.patches]))
    if found.targets:
        rows = [(t.name, t.title, _spans(t.versions)) for t in found.targets]
        tables.append(_List("target", "fetched from the package index", rows))
    return terminal.spaced(tables)


@dataclass(frozen=True)
class _List:
    """A table of three columns; on a terminal with too little room for two texts, each name has its texts below it."""

    name: str
    last: str
    rows: Sequence[tuple[str, str, str]]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - max(len(name) for name, _, _ in self.rows)
        if room >= ROOM:
            yield terminal.table([whole(self.name), folded("title"), folded(self.last)], self.rows, gap=3)
            return
        for name, title, text in self.rows:
            yield Text(name, style="bold")
            yield Hanging("  ", title)
            if text:
                yield Hanging(f"  {self.last}: ", text)


def matrix_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str], list[tuple[str, list[str]]]]]:
    """Yield for each target its name, the patches that head the columns, and a row of states for each version."""
    for target in dict.fromkeys(row["target"] for row in rows):
        own = [row for row in rows if row["target"] == target]
        patches = list(dict.fromkeys(patch for row in own for patch in row["states"]))
        yield target, patches, [(row["version"], [row["states"].get(p, "-") for p in patches]) for row in own]


def matrix_table(document: Mapping[str, Any]) -> RenderableType:
    """Return a table per target, version by patch, and one for each kind of tree inside it.

    The document is the record of tools/watch.py.
    """
    tables: list[RenderableType] = []
    for target, patches, body in matrix_rows(document["rows"]):
        for kind in dict.fromkeys(patch.partition("/")[0] for patch in patches):
            of_kind = [number for number, patch in enumerate(patches) if patch.startswith(f"{kind}/")]
            first = whole(target if kind == target else f"{kind} in {target}")
            rows: list[Sequence[RenderableType]] = [
                (version, *(Text(states[number], style=STATES[State(states[number])]) for number in of_kind))
                for version, states in body
            ]
            names = [patches[number].partition("/")[2] for number in of_kind]
            table = terminal.table([first, *map(whole, names)], rows)
            by_patch = zip(names, zip(*([states[n] for n in of_kind] for _, states in body), strict=True), strict=True)
            versions = [version for version, _ in body]
            tables.append(Fitting(table, [*_runs(str(first.header), by_patch, versions)]))
    return terminal.spaced(tables)


def _runs(
    title: str, by_patch: Iterable[tuple[str, Sequence[str]]], versions: Sequence[str]
) -> Iterator[RenderableType]:
    """Yield each patch, and below it the releases, in order, that have the same state."""
    yield Text(title, style="bold")
    for name, states in by_patch:
        yield Text(f"  {name}")
        for state, run in groupby(zip(states, versions, strict=True), key=itemgetter(0)):
            releases = [version for _, version in run]
            first, last = releases[0], releases[-1]
            span = first if first == last else f"{first} to {last}"
            yield Hanging(f"    {state}: ", span, STATES[State(state)])


def show_text(document: dict[str, Any]) -> RenderableType:
    """Return the title, then each part that has a value under its name, one per line; a pipe gets it complete."""
    lines: list[RenderableType] = [Text.assemble((document["name"], "bold"), f"  {document['kind']}")]
    lines.append(Hanging("", document["title"]))

    def add(label: str, value: str) -> None:
        if value:
            lines.append(terminal.label(label, " ".join(value.split()), "bold", "  "))

    for key, label in (
        ("summary", "summary"),
        ("reason", "reason"),
        ("link", "link"),
        ("applies", "tried on"),
        ("retire", "can be deleted"),
        ("cost", "cost"),
        ("promise", "promise"),
        ("git", "upstream"),
    ):
        add(label, document.get(key, ""))
    for key, label in (("arch", "targets"), ("variants", "variants")):
        add(label, ", ".join(document.get(key, ())))
    for target, chosen in document.get("targets", {}).items():
        add(target, ", ".join(chosen["patches"]) or "nothing to patch")
    for edit in document.get("edits", ()):
        add(edit["op"], edit.get("file") or ", ".join(edit.get("search", ())))
    for probe in document.get("probes", ()):
        add("probe", f"{probe['name']}: {probe['title']}")
    for archive in document.get("archives", ()):
        holds = f" ({archive['holds']})" if archive["holds"] else ""
        add("archive", f"{archive['version']} from {archive['filename']}{holds}")
    for series in document.get("series", ()):
        add("archives", f"{', '.join(series['sha256'])} from {series['filename']}")
    return Group(*lines)


def _spans(versions: Sequence[str]) -> str:
    return ", ".join(versions) if len(versions) <= 8 else f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"
