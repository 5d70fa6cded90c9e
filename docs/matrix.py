"""Tries every patch on every release that the catalog can fetch, and records what became of it.

    python docs/matrix.py [TREE...]

Writes patches/matrix.json, which `fp4patch list patches --matrix` shows, and docs/matrix.md. Releases that no archive
of the package index holds are tried where a tree of them is named, and keep their row where none is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.manifest import load
from fp4patch.model import SCHEMA, State
from fp4patch.report import progress
from fp4patch.report.catalog import MATRIX, matrix_rows
from fp4patch.sources.fetch import fetch
from fp4patch.verbs.status import status

ROOT = Path(__file__).parents[1]


def row(tree: Path, source: str) -> dict[str, object]:
    """The state that each patch would be in, were it applied to this pristine tree."""
    found, *inside = status([tree], on_wait=print)  # behind a tree come those that it contains
    patches = [patch for part in (found, *inside) for patch in part.patches]
    states = {p.patch: State.APPLIED if p.state is State.PRISTINE else p.state for p in patches}
    return {"target": found.target, "version": found.version, "source": source, "states": states}


def main(trees: list[Path]) -> None:
    """Fetch, try, write."""
    file = ROOT / MATRIX
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = {(r["target"], r["version"]): r for r in old}
    for tree in trees:
        new = row(tree, "a checkout of the tag")
        rows[new["target"], new["version"]] = new
    for target in load().targets.values():
        for version, archive in ((v, a) for a in target.archives for v in a.versions):
            with tempfile.TemporaryDirectory() as work:
                tree = Path(work) / "tree"
                fetch(target, version, tree, git_url=None, progress=progress.silent, show_progress=False)
                rows[target.name, version] = row(tree, archive.filename) | {"version": version}
                print(target.name, version, rows[target.name, version]["states"], flush=True)  # noqa: T201 - a script
    ordered = sorted(rows.values(), key=lambda r: (r["target"], Version(str(r["version"]))))
    file.write_text(json.dumps({"schema": SCHEMA, "rows": ordered}, indent=1) + "\n")
    (ROOT / "docs" / "matrix.md").write_text(markdown(ordered))


def markdown(rows: list[dict[str, object]]) -> str:
    """The same tables for readers."""
    text = "# What each patch comes to on each release\n\n"
    text += "Made by `python docs/matrix.py`, which runs every patch on the real source of every release; the same as\n"
    text += (
        "`fp4patch list patches --matrix`. *applied*: it applies; *upstreamed*: the release has the change already;\n"
    )
    text += "*not-needed*: it never had what the patch changes; *drifted*: refused.\n"
    for target, patches, body in matrix_rows(rows):
        text += f"\n## {target}\n\n| version | {' | '.join(patches)} |\n|---|{'---|' * len(patches)}\n"
        text += "".join(f"| {version} | {' | '.join(states)} |\n" for version, states in body)
    return text


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
