"""What a person must decide about a release that a patch no longer fits, with what upstream changed there."""

import difflib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.core import progress
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.results import State
from fp4patch.sources.fetch import fetch
from fp4patch.tree.receipt import PatchStatus

_PLACE = re.compile(r"(\S+?)(?::(\d+))?: expected ")
_MOST = 60
"""Lines of a difference that are printed."""
_AROUND = 4
"""Lines above and below a place that are printed of a new file."""


@dataclass(frozen=True)
class Decision:
    """A patch that drifted on a release: what a person must look at, and the ways to go on."""

    target: str
    version: str
    patch: Patch
    because: str
    """Place, expectation and finding, as ``fp4patch status`` has it."""
    before: str
    """Newest older release that the patch fits; empty if there is none."""
    change: str
    """What upstream changed in that file since then, as a difference; empty if that is not known."""

    def __str__(self) -> str:
        """Return the text of the decision, in Markdown."""
        own = f"patches/{self.patch.id}/patch.toml"
        lines = [f"### {self.target} {self.version}: {self.patch.id}", "", self.because, ""]
        if self.change:
            lines += [f"Upstream's change since {self.before}:", "", "```diff", self.change, "```", ""]
        return "\n".join(
            [
                *lines,
                f'The patch: "{self.patch.title}"; it goes {self.patch.retire}. Decide which of these holds:',
                "",
                f"- upstream does what the patch is for: `{own}` gets a sign of that (`[[edits.retired]]`) and a case",
                f"- the code only has another shape: its edit gets wider, with a case, and `{own}` stays",
                "- the code is gone, and nothing in its place needs the patch: `otherwise` says why",
                "",
                f"Then `python -m tools.watch {self.target}=={self.version}` writes all records.",
                "",
            ]
        )


def decisions(
    target: Target,
    version: str,
    tree: Path,
    drifted: Sequence[tuple[PatchStatus, Path]],
    patches: Mapping[str, Patch],
    rows: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Iterator[Decision]:
    """Yield what is to be decided about each patch that drifted, with the directory of its tree.

    ``rows`` are those of the matrix: an older release that the patch fits is fetched and compared.
    """
    if not drifted:
        return
    befores = {status.patch: fitting(target, version, status.patch, rows) for status, _ in drifted}
    with tempfile.TemporaryDirectory() as work:
        trees: dict[str, Path | None] = {"": None}
        for before in {*befores.values()} - {""}:
            trees[before] = Path(work) / before
            try:
                fetch(target, before, Path(work) / before, progress=progress.silent)
            except Fp4PatchError:
                trees[before] = None  # the decision is due all the same
        for status, root in drifted:
            old, before = trees[befores[status.patch]], befores[status.patch]
            place = _PLACE.match(status.because)
            change = ""
            if place and old:
                file = (root / place[1]).relative_to(tree)
                change = difference(old / file, tree / file, int(place[2] or 0))
            yield Decision(target.name, version, patches[status.patch], status.because, before, change)


def fitting(target: Target, version: str, patch: str, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Return the newest older release with an archive on which the patch did not drift; empty if there is none."""
    fits = (
        Version(archive.version)
        for archive in target.archives
        if Version(archive.version) < Version(version)
        and rows.get((target.name, archive.version), {}).get("states", {}).get(patch, State.DRIFTED)
        not in (State.DRIFTED, State.FOREIGN)
    )
    return str(max(fits, default=""))


def difference(old: Path, new: Path, line: int) -> str:
    """Return what changed in a file: the part at a line of the new one if that part changed, else all, within bounds.

    Of a file that was not there before: the lines around the place.
    """
    after = new.read_text(encoding="utf-8", errors="replace").splitlines() if new.is_file() else []
    if not old.is_file() and line:
        first = max(0, line - 1 - _AROUND)
        return "\n".join([f"a new file, at line {line}:", *(f"+{text}" for text in after[first : line + _AROUND])])
    before = old.read_text(encoding="utf-8", errors="replace").splitlines() if old.is_file() else []
    parts = [*_parts(difflib.unified_diff(before, after, n=3, lineterm=""))]
    here = [part for part in parts if _covers(part[0], line)]
    lines = [text for part in here or parts for text in part]
    more = [f"… and {len(lines) - _MOST} lines more"] if len(lines) > _MOST else []
    return "\n".join([*lines[:_MOST], *more])


def _parts(lines: Iterable[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for text in lines:
        if text.startswith("@@"):
            if part:
                yield part
            part = [text]
        elif part:
            part.append(text)
    if part:
        yield part


def _covers(head: str, line: int) -> bool:
    """Return whether a part of a difference, by its first line, has a line of the new file."""
    found = re.search(r"\+(\d+)(?:,(\d+))?", head)
    assert found, head
    first = int(found[1])
    return first <= line < first + int(found[2] or 1)
