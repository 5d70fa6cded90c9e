"""Run doctor on every source tree that the catalog can fetch, and record fingerprints of the releases.

    python -m tools.regenerate releases [--missing] [--target NAME] [TREE...]

It writes records/releases.json. From it, `fp4patch doctor` recognises a tree's release by its content, and reports the
build's result for an arch list where there is no cmake; the site makes a page of it. Needs cmake. Releases that no
archive of the package index holds are examined if a checkout of their commit is named, and keep their row if none is.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.adapters.result import BuildRow, JitTargets
from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import load
from fp4patch.catalog.surveyed import RECORD, forget
from fp4patch.core import progress
from fp4patch.core.arch import GPUS, Arch, Reach
from fp4patch.core.document import SCHEMA
from fp4patch.doctor.result import Question, TreeReport
from fp4patch.doctor.tree import hashes_of, read_facts
from fp4patch.doctor.tree_answers import judge
from fp4patch.sources.fetch import fetch
from fp4patch.tree.locking import locked
from fp4patch.tree.status import TreeStatus
from tools.checkouts import checked_out


def files_of(tree: Identified) -> dict[str, str]:
    """Return the hash of each file that identifies a release."""
    with locked([tree]) as (copy,):
        return hashes_of(tree.target, copy.read)


def look(path: Path, version: str | None) -> dict[str, Any]:
    """Return the record of one pristine tree, and doctor's findings on it for each relevant CUDA release."""
    tree = identify(path, load(), version)
    build = tree.target.build
    cudas = build.cuda if build else ("",)
    # What each patch comes to is tools/watch.py's business, and takes longer than all else.
    found = TreeStatus(tree.root, tree.target.name, str(tree.version or ""), "", (), (), ())
    questions = [Question(GPUS, cuda=cuda) for cuda in cudas]
    facts = read_facts(tree, found, questions)
    reports = {question.cuda: judge(facts, question) for question in questions}
    return {
        "target": tree.target.name,
        "version": version or str(tree.version),
        "files": files_of(tree),
        "builds": {c: _made(r) for c, r in reports.items() if build},
        "verdicts": {
            c: {
                "gpus": {str(o.gpu): [o.level.value, o.verdict] for o in r.answers},
                "recommended": r.recommended.variant or "",
            }
            for c, r in reports.items()
        },
    }


def looked(path: Path, version: str | None) -> dict[str, Any]:
    """Return the record of one pristine tree, and print it: there are many."""
    row = look(path, version)
    print(row["target"], row["version"], row["verdicts"], flush=True)  # noqa: T201 - a script
    return row


def _made(report: TreeReport) -> dict[str, list[str]]:
    """Return the FP4 kernels' architectures for each arch list; for a build at run time, the targets on each GPU."""
    return {
        row.asked: [f"{targets(row.on[g])}: {_worth(row, g)}" for g in GPUS] if row.on else list(row.kernels)
        for row in report.builds
    }


def targets(made: JitTargets) -> str:
    """Return the first module's architectures, then each module that differs: ``12.1a; quantization 12.0f``."""
    usual = next(iter(made.modules.values()), ())
    others = [f"{name} {', '.join(archs)}" for name, archs in made.modules.items() if archs != usual]
    return "; ".join([", ".join(usual) or "nothing", *others])


def _worth(row: BuildRow, gpu: Arch) -> str:
    found = row.reaches[gpu]
    return f"only {', '.join(row.on[gpu].served(gpu))}" if found is Reach.PARTLY else found.value


def main(arguments: list[str]) -> None:
    """Fetch, examine and write trees; write after each one, so that nothing is lost if the run is stopped."""
    options = argparse.ArgumentParser(description="Run doctor on every release's source tree.")
    options.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    options.add_argument("--missing", action="store_true", help="only releases that have no row yet")
    options.add_argument("--target", help="only releases of this target")
    asked = options.parse_args(arguments)
    rows = {(r["target"], r["version"]): r for r in recorded()}
    for tree in asked.trees:
        row = looked(tree, checked_out(identify(tree, load())))
        rows[row["target"], row["version"]] = row
        write(rows)
    for target in load().targets.values():
        for version in (archive.version for archive in target.archives):
            if asked.target not in (None, target.name) or (asked.missing and (target.name, version) in rows):
                continue
            with tempfile.TemporaryDirectory() as work:
                tree = Path(work) / "tree"
                fetch(target, version, tree, progress=progress.silent)
                rows[target.name, version] = looked(tree, version)
            write(rows)


def add(row: dict[str, Any]) -> None:
    """Put the row of one release into the record."""
    write({(one["target"], one["version"]): one for one in (*recorded(), row)})


def recorded() -> list[dict[str, Any]]:
    """Return the rows of the record."""
    file = load().root / RECORD
    return json.loads(file.read_text(encoding="utf-8"))["releases"] if file.exists() else []


def write(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write the record in order of target and version."""
    ordered = sorted(rows.values(), key=lambda r: (r["target"], Version(r["version"])))
    text = ",\n".join(f"  {json.dumps(row)}" for row in ordered)
    (load().root / RECORD).write_text(f'{{"schema": {SCHEMA}, "releases": [\n{text}\n]}}\n')
    forget()
