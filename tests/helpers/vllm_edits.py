"""Runs of a patch's edits over the files of a real tree that they search for, without apply's transaction."""

from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.catalog.plan import Planned
from fp4patch.core.results import NothingToDo, Outcome
from fp4patch.edits import Edit
from fp4patch.edits.fold import Fold, Step, fold

RELEASES = (
    "0.10.2",
    "0.11.0",
    "0.12.0",
    "0.13.0",
    "0.14.1",
    "0.16.0",
    "0.18.0",
    "0.20.0",
    "0.25.1",
    "0.30.0",
    "0.33.0",
)
"""Releases that the tests of real trees go through."""


@dataclass(frozen=True)
class Edited:
    """Results of each file that was searched, and of each edit: file → outcome, if the edit applies to the file."""

    files: dict[Path, Fold]
    edits: tuple[dict[str, Outcome], ...]


def run(patch_id: str, root: Path) -> Edited:
    """Fold the patch over the tree at ``root``, without writing anything."""
    patch = load().patches[patch_id]
    files: dict[Path, Fold] = {}
    edits: tuple[dict[str, Outcome], ...] = tuple({} for _ in patch.edits)
    found = [_searched(edit, root) for edit in patch.edits]
    for path in sorted(set().union(*found)):
        numbers = [number for number, paths in enumerate(found) if path in paths]
        planned: list[Step] = [
            (edit, Planned(patch, edit, {}).template, {}) for edit in (patch.edits[n] for n in numbers)
        ]
        files[path] = fold(path.read_bytes().decode(), planned)
        for number, outcome in zip(numbers, files[path].outcomes, strict=True):
            if not (isinstance(outcome, NothingToDo) and outcome.elsewhere):
                edits[number][path.relative_to(root).as_posix()] = outcome
    return Edited(files, edits)


def _searched(edit: Edit, root: Path) -> set[Path]:
    return {path for glob in edit.search for path in root.glob(glob) if path.is_file()}
