"""What a variant wants of a tree: the fold of its edits over the pristine bytes, and how the tree compares with it.

Apply, status and verify are three uses of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.plan import Plan, plan
from fp4patch.errors import ManifestError, Refused
from fp4patch.model.edit import Edit
from fp4patch.model.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.model.patch import Patch
from fp4patch.model.problem import Problem
from fp4patch.model.state import State
from fp4patch.model.variant import Variant
from fp4patch.patching.edit import fold
from fp4patch.patching.journal import sha256
from fp4patch.patching.patterns import mistakes
from fp4patch.patching.transaction import Transaction
from fp4patch.patching.tree import decode, encode


@dataclass(frozen=True)
class FoldedFile:
    """A file's desired bytes, None where there is and shall be no file, and what each edit came to."""

    desired: bytes | None
    outcomes: tuple[tuple[Patch, Outcome], ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def patches(self) -> tuple[str, ...]:
        """Those that change the file, with their versions, in order."""
        changed = (f"{patch.id} {patch.version}" for patch, outcome in self.outcomes if isinstance(outcome, Rewritten))
        return tuple(dict.fromkeys(changed))


@dataclass(frozen=True)
class FoldedTree:
    """Every file that an edit is about or the receipt knows, and the edits that found no file at all."""

    files: dict[str, FoldedFile]
    unplaced: tuple[tuple[Patch, Outcome], ...]
    problems: tuple[Problem, ...]

    def outcomes(self) -> Iterator[tuple[str, Patch, Outcome]]:
        """File (empty for an edit without one), patch, and what the edit came to there."""
        for path, done in self.files.items():
            yield from ((path, patch, outcome) for patch, outcome in done.outcomes)
        yield from (("", patch, outcome) for patch, outcome in self.unplaced)


def plan_for(tx: Transaction, variant: Variant, tree: Identified, catalog: Catalog) -> Plan:
    """The variant's plan, made from the pristine bytes."""
    return plan(variant, tree, catalog, reader(tx, tree.root))


def reader(tx: Transaction, root: Path) -> Callable[[str], bytes | None]:
    """Reads what the planner looks at: pristine bytes where they are known, else the file as it is."""
    receipt = tx.receipt(root)
    known = receipt.files if receipt else {}

    def read(path: str) -> bytes | None:
        try:
            return tx.pristine(root, path) if path in known else (root / path).read_bytes()
        except (OSError, Refused):
            return None

    return read


def fold_tree(tx: Transaction, wanted: Plan) -> FoldedTree:
    """Each file of the plan and of the receipt: its desired bytes, and what each edit came to.

    ManifestError: what an edit looks for cannot be read.
    """
    _check(wanted.patches)
    receipt = tx.receipt(wanted.tree.root)
    on_record = receipt.files if receipt else {}
    files, placed = {}, set()
    for path in dict.fromkeys([*wanted.files, *on_record]):
        done, about = _fold_file(tx, wanted, path)
        placed |= about
        if done.outcomes or done.problems or path in on_record:
            files[path] = done
    unplaced = tuple((p.patch, _unplaced(p.edit)) for p in wanted.edits if id(p) not in placed)
    problems = tuple(problem for done in files.values() for problem in done.problems)
    return FoldedTree(files, unplaced, problems + _problems(wanted, "", unplaced))


def _check(patches: Sequence[Patch]) -> None:
    """The texts that edits hold, in their languages; what else can be wrong with a patch, its reader has seen."""
    problems = [
        Problem(expected, found, file=f"patches/{patch.id}/patch.toml", nearest=f"edits[{number}].{key}")
        for patch in patches
        for number, edit in enumerate(patch.edits)
        for key, expected, found in mistakes(edit)
    ]
    if problems:
        raise ManifestError(
            "the catalog is not valid", problems=problems, help="docs/extending.md says what goes there"
        )


def _unplaced(edit: Edit) -> Outcome:
    """What it means that no file of the tree has what the edit is about."""
    if otherwise := getattr(edit, "otherwise", ""):
        return NothingToDo(State.NOT_NEEDED, otherwise)
    return Drift(
        f"a file that {edit.op} is about, below {', '.join(getattr(edit, 'search', ()))}",
        "none",
        help="this is not the whole source tree, or a release that fp4patch does not know",
    )


def _fold_file(tx: Transaction, wanted: Plan, path: str) -> tuple[FoldedFile, set[int]]:
    """The fold of a file, and the edits (by id) that are about it."""
    steps = wanted.files.get(path, ())
    try:
        pristine = tx.pristine(wanted.tree.root, path)
        if pristine is None:
            outcome = missing(wanted, path)
            outcomes = tuple((step.patch, outcome) for step in steps)
            return FoldedFile(None, outcomes, _problems(wanted, path, outcomes[:1])), {id(step) for step in steps}
        if not steps:
            return FoldedFile(pristine), set()
        done = fold(decode(pristine, path), steps)
    except Refused as refused:
        patch = steps[0].patch.id if steps else ""
        problems = tuple(replace(p, patch=p.patch or patch) for p in refused.problems)
        return FoldedFile(None, problems=problems), {id(step) for step in steps}
    about = [
        (step, outcome)
        for step, outcome in zip(steps, done.outcomes, strict=True)
        if not (isinstance(outcome, NothingToDo) and outcome.elsewhere)
    ]
    outcomes = tuple((step.patch, outcome) for step, outcome in about)
    return FoldedFile(encode(done.text), outcomes, _problems(wanted, path, outcomes)), {id(step) for step, _ in about}


def missing(wanted: Plan, path: str) -> Outcome:
    """What it means that a file is not there: an older release never had it; else somebody took it away."""
    version, patch = wanted.tree.version, wanted.files[path][0].patch
    oldest = min((Version(s.version) for s in SpecifierSet(patch.applies) if s.operator == ">="), default=None)
    if version and oldest and version < oldest:
        return NothingToDo(State.NOT_NEEDED, f"{wanted.tree.target.name} {version} has no {path}")
    return Drift(
        "the file is there",
        "no such file",
        help="this is not the whole source tree, or a release that fp4patch does not know",
    )


def _problems(wanted: Plan, path: str, outcomes: Sequence[tuple[Patch, Outcome]]) -> tuple[Problem, ...]:
    """The edits that refuse, each with what to do next; a release that the patch was not tried on is named."""
    version = wanted.tree.version
    problems = []
    for patch, outcome in outcomes:
        if isinstance(outcome, Drift):
            tried = SpecifierSet(patch.applies)
            advice = outcome.help or f"somebody changed this place; see `fp4patch show {patch.name}`"
            if version and not tried.contains(version, prereleases=True):
                advice = (
                    f"this is {wanted.tree.target.name} {version}, and the patch was tried on {patch.applies}; {advice}"
                )
            problems.append(
                Problem(
                    outcome.expected,
                    outcome.found,
                    advice,
                    patch.id,
                    path,
                    outcome.line,
                    outcome.nearest,
                    State.DRIFTED,
                )
            )
    return tuple(problems)


def file_state(tx: Transaction, root: Path, path: str, desired: bytes | None) -> State:
    """What a file is in: compared with its pristine bytes, with what we wrote, and with what is desired now.

    ``desired`` None: what is desired is not known, and what we wrote counts as applied.
    """
    receipt = tx.receipt(root)
    written = receipt.files[path].written_sha256 if receipt and path in receipt.files else None
    current, pristine = tx.current(root, path), tx.pristine(root, path)
    if current == pristine and (desired is None or written is None or current != desired):
        return State.PRISTINE
    if current == desired or (desired is None and sha256(current) == written):
        return State.APPLIED
    return State.OUTDATED if sha256(current) == written else State.FOREIGN


def recovered(tx: Transaction, root: Path) -> tuple[str, ...]:
    """Says that an interrupted command was finished or rolled back."""
    return tuple(f"an interrupted command was {found.outcome}" for found in tx.recovered if found.root == root)
