"""Results of ``list`` and ``show``, as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from fp4patch.catalog.manifest import Catalog

MATRIX = "records/matrix.json"
"""Path below the catalog's root of the results of each patch on each release, as tools/watch.py recorded them."""

COLOUR = {"applied": "green", "upstreamed": "cyan", "not-needed": "dim", "drifted": "red"}

KINDS = ("variants", "patches", "targets")


def list_document(catalog: Catalog, what: str | None) -> dict[str, Any]:
    """Return the JSON document that docs/json.md describes; only one of the three lists if ``what`` names it."""
    rows = {
        "variants": [
            {"name": v.name, "title": v.title, "arch": list(v.arch), "patches": _patches(v)}
            for v in catalog.variants.values()
        ],
        "patches": [
            {"name": p.id, "title": p.title, "version": p.version, "target": p.target, "applies": p.applies}
            for p in catalog.patches.values()
        ],
        "targets": [
            {"name": t.name, "title": t.title, "versions": _pinned(t), "git": t.git} for t in catalog.targets.values()
        ],
    }
    return {"schema": SCHEMA} | {kind: rows[kind] for kind in KINDS if what in (None, kind)}


def list_table(catalog: Catalog, what: str | None) -> RenderableType:
    """Return one small table per kind."""
    columns = {
        "variants": ("variant", "title", "patches"),
        "patches": ("patch", "title", "tried on"),
        "targets": ("target", "title", "fetched from the package index"),
    }
    cells = {
        "variants": [(v.name, v.title, " ".join(_patches(v))) for v in catalog.variants.values()],
        "patches": [(p.id, p.title, p.applies) for p in catalog.patches.values()],
        "targets": [(t.name, t.title, _spans(t)) for t in catalog.targets.values()],
    }
    tables: list[RenderableType] = []
    for kind in KINDS:
        if what in (None, kind):
            table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
            for number, column in enumerate(columns[kind]):
                table.add_column(column, overflow="fold", no_wrap=number == 0)
            for row in cells[kind]:
                table.add_row(*row)
            tables += [table, Text()]
    return Group(*tables[:-1])


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
            table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
            table.add_column(target if kind == target else f"{kind} in {target}", no_wrap=True)
            for number in of_kind:
                table.add_column(patches[number].partition("/")[2])
            for version, states in body:
                cells = [states[number] for number in of_kind]
                table.add_row(version, *(Text(state, style=COLOUR.get(state, "")) for state in cells))
            tables += [table, Text()]
    return Group(*tables[:-1])


def show_document(catalog: Catalog, name: str) -> dict[str, Any]:
    """Return every field of the variant, patch or target of that name. UsageError: see ``Catalog.named``."""
    kind, thing = catalog.named(name)
    document = {"schema": SCHEMA, "kind": kind} | asdict(thing)
    document.pop("directory", None)
    if isinstance(thing, Patch):
        document["variants"] = [v.name for v in catalog.variants.values() if thing.id in _patches(v)]
    return document


def show_text(document: dict[str, Any]) -> RenderableType:
    """Return the title, then each part that has a value under its name, one per line; a pipe gets it complete."""
    lines = [Text.assemble((document["name"], "bold"), f"  {document['kind']}"), Text(document["title"])]

    def add(label: str, value: str) -> None:
        if value:
            lines.append(Text.assemble("  ", (f"{label}: ", "bold"), " ".join(value.split())))

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


def _patches(variant: Variant) -> list[str]:
    return [f"{target}/{name}" for target, chosen in variant.targets.items() for name in chosen.patches]


def _pinned(target: Target) -> list[str]:
    return [archive.version for archive in target.pinned]


def _spans(target: Target) -> str:
    versions = _pinned(target)
    return ", ".join(versions) if len(versions) <= 8 else f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"
