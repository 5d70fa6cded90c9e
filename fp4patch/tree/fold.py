"""The fold of a variant's edits over the pristine bytes of a tree, and the comparison of the tree with it.

Apply, status and verify are three uses of this.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import Plan, Planned, edits_of
from fp4patch.catalog.source_files import CandidateFiles
from fp4patch.core.errors import Refused
from fp4patch.core.release import covers
from fp4patch.core.results import Drift, NothingToDo, Outcome, Problem, Rewritten, State
from fp4patch.core.tree_path import is_source
from fp4patch.edits import Edit
from fp4patch.edits.diff import File, changed
from fp4patch.edits.fold import fold
from fp4patch.tree.files import decode, locate, refuse
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.postcondition import check
from fp4patch.tree.receipt import Remainder
from fp4patch.tree.scan import Scan, scan
from fp4patch.tree.stamp import find_stamp, stamped


@dataclass(frozen=True)
class FoldedFile:
    """A file's desired bytes, None where there is and shall be no file, and what each edit came to."""

    desired: bytes | None
    patches: tuple[str, ...] = ()
    """Those that change the file, with their versions, in order."""
    outcomes: tuple[tuple[Planned, Outcome], ...] = ()
    """What each edit came to that is about the file."""
    problems: tuple[Problem, ...] = ()
    executable: bool | None = None
    """Whether it is to be executable; None: as it is without us."""


@dataclass(frozen=True)
class FoldedTree:
    """Every file that an edit is about or the receipt knows, and the edits that found no file at all."""

    patches: tuple[Patch, ...]
    files: dict[str, FoldedFile]
    unplaced: tuple[tuple[Planned, Outcome], ...]
    problems: tuple[Problem, ...]
    remainders: tuple[Remainder, ...]
    """Places that the patches leave in the tree on purpose."""
    scan: Scan | None = None
    """The tree as it was looked at; None if that was not needed."""

    def outcomes(self) -> Iterator[tuple[str, str, Outcome]]:
        """Yield file (empty for an edit without one), id of the patch, and the outcome there."""
        for path, done in self.files.items():
            yield from ((path, step.patch.id, outcome) for step, outcome in done.outcomes)
        yield from (("", step.patch.id, outcome) for step, outcome in self.unplaced)


def fold_tree(
    tree: LockedTree,
    variant: str,
    patches: Sequence[Patch],
    options: Mapping[str, Mapping[str, str]],
    scanned: Scan | None = None,
) -> FoldedTree:
    """Return each file that the patches are about, and each of the receipt, as their edits make it in this order.

    ``scanned``: the tree as it was looked at for these patches, and perhaps others. None: it is looked at.
    ``variant`` is the name in the stamps of files; empty: they get none, since they are not to be written to the tree.
    Refused: a directory to search may not be read. ManifestError: what an edit looks for cannot be read.
    """
    scanned = scanned or scan(tree, patches)
    edits = edits_of(patches, options)
    diffed = _Diffed(tree)
    for patch in patches:
        diffed.apply([planned for planned in edits if planned.patch is patch and planned.edit.file_change])
    wanted = Plan(
        tree=tree.known,
        variant=variant,
        patches=tuple(patches),
        edits=tuple(planned for planned in edits if not planned.edit.file_change),
        candidates=diffed.among(scanned.candidates),
        read=diffed.read,
        passing=scanned.passing,
    )
    lost = without_receipt(tree, scanned)
    files = {path: FoldedFile(None, problems=(problem,)) for path, problem in lost.items()}
    for path in dict.fromkeys([*diffed.outcomes, *wanted.files, *tree.on_record]):
        done = files.get(path) or _fold_file(tree, wanted, path, diffed)
        if done.outcomes or done.patches or done.problems or path in tree.on_record:
            files[path] = done
    placed = {id(step) for file in files.values() for step, _ in file.outcomes}
    untried = [path for path, file in files.items() if file.problems and not file.outcomes]
    placed |= {id(step) for path in untried for step in wanted.files.get(path, ())}
    unplaced = [(p, _unplaced(p.edit, wanted.tree.version)) for p in wanted.edits if id(p) not in placed]
    problems = [problem for done in files.values() for problem in done.problems]
    problems += [*_drifted(wanted, "", unplaced), *_in_part(diffed)]

    def desired(path: str) -> bytes | None:
        return files[path].desired if path in files and files[path].desired is not None else diffed.read(path)

    left, remainders = check(wanted, diffed.read, desired)
    known = {(problem.patch, problem.file) for problem in problems}
    refused = {path for path, done in files.items() if done.problems}
    problems += [p for p in left if (p.patch, p.file) not in known and p.file not in refused]
    return FoldedTree(wanted.patches, files, tuple(unplaced), tuple(problems), tuple(remainders), scanned)


def without_receipt(tree: LockedTree, scanned: Scan) -> Mapping[str, Problem]:
    """Return why each file that fp4patch wrote, and no receipt knows, is not pristine, with the way back."""
    problems, target = {}, tree.known.target.name
    for path, content in scanned.contents.items():
        stamp = find_stamp(content)
        if stamp:
            wrote = f"what fp4patch wrote for {stamp['variant'].decode()} ({stamp['patches'].decode(errors='replace')})"
            problems[path] = Problem(
                expected="the bytes that upstream released, or a receipt of what fp4patch wrote",
                found=f"{wrote}, without its receipt",
                help=f"`git -C {shlex.quote(str(tree.root))} checkout -- {shlex.quote(path)}` gives the file back in a "
                "checkout, unless the patched one was committed; else copy it from the release, which `fp4patch fetch "
                f"{target}=={tree.known.version or 'VERSION'} DIR` gets; then run this again",
                file=path,
                state=State.FOREIGN,
            )
    return problems


class _Diffed:
    """What diffs make of the pristine files of a tree, one after another: other edits look at that."""

    def __init__(self, tree: LockedTree) -> None:
        self.tree = tree
        self.files: dict[str, File | None] = {}
        """The files that differ, None for one that is not there any more."""
        self.outcomes: dict[str, list[tuple[Planned, Outcome]]] = {}
        self.problems: dict[str, list[Problem]] = {}
        self.authors: dict[str, dict[str, None]] = {}
        """The patches whose diffs change a file, with their versions; a rename changes two."""

    def apply(self, steps: Sequence[Planned]) -> None:
        """Apply the diff of one patch, of which each step is one file."""
        changes = [change for step in steps if (change := step.edit.file_change)]
        try:
            done = changed(changes, self._file)
        except Refused as refused:
            for problem in refused.problems:
                placed = replace(problem, patch=problem.patch or steps[0].patch.id)
                self.problems.setdefault(problem.file, []).append(placed)
                self.outcomes.setdefault(problem.file, [])
            return
        self.files |= done.files
        for step, change, outcome in zip(steps, changes, done.outcomes, strict=True):
            for path in (change.path, *change.paths):
                self.outcomes.setdefault(path, [])
            self.outcomes[change.path].append((step, outcome))
            for path in change.changed_paths if isinstance(outcome, Rewritten) else ():
                self.authors.setdefault(path, {})[f"{step.patch.id} {step.patch.version}"] = None

    def read(self, path: str) -> bytes | None:
        """Return the bytes that a plan looks at; None if there is no file, or it cannot be read."""
        if path not in self.files:
            return self.tree.read(path)
        file = self.files[path]
        return file.text.encode() if file else None

    def executable(self, path: str) -> bool | None:
        """Return whether a file is to be executable; None if no diff says so."""
        file = self.files.get(path)
        before = self.tree.pristine_mode(path)
        is_other = file and (before is None or bool(before & 0o100) != file.executable)
        return file.executable if file and is_other else None

    def among(self, candidates: CandidateFiles) -> CandidateFiles:
        """Return the source files that patches may be about, with those that the diffs make."""
        there = {path for path, file in self.files.items() if file and is_source(path.rpartition("/")[2])}
        made = {path for path, file in self.tree.on_record.items() if not file.pristine_sha256}
        kept = {path for path in candidates.files if self.files.get(path, path not in made or self.tree.read(path))}
        return replace(candidates, files=tuple(sorted(there | kept)))

    def _file(self, path: str) -> File | None:
        """Return a file as the diffs before left it. Refused: it cannot be read, or a link leads to it."""
        return self.files[path] if path in self.files else pristine_file(self.tree, path)


def pristine_file(tree: LockedTree, path: str) -> File | None:
    """Return a file that a diff names, as upstream has it. Refused: it cannot be read, or a link leads to it."""
    if locate(tree.root, path) != tree.root / path:
        raise refuse(path, "the name of the file itself", "one that leads through a link")
    content = tree.pristine(path)
    executable = bool((tree.pristine_mode(path) or 0) & 0o100)
    return None if content is None else File(decode(content, path), executable)


def _in_part(diffed: _Diffed) -> Iterator[Problem]:
    """Yield a problem for each diff that one file has already, and others have not."""
    done, rewritten = dict[str, str](), set[str]()
    for path, outcomes in sorted(diffed.outcomes.items()):
        for step, outcome in outcomes:
            if isinstance(outcome, NothingToDo):
                done.setdefault(step.patch.id, path)
            elif isinstance(outcome, Rewritten):
                rewritten.add(step.patch.id)
    for patch in done.keys() & rewritten:
        yield Problem(
            expected="all changes of the diff, or none",
            found="its own ones, and not those of other files",
            help="a diff is applied as a whole: take the one for this release, or leave it out",
            patch=patch,
            file=done[patch],
            state=State.DRIFTED,
        )


def _unplaced(edit: Edit, version: Version | None) -> Outcome:
    """Return the outcome if the edit is about no file of the tree: drift in a release that is known to have one."""
    if edit.present and version and covers(edit.present, version):
        return Drift(
            f"`{edit.subject}` for {edit.op}, which releases {edit.present} have",
            f"none in {version}",
            help="it was renamed, or upstream moved it: the patch does not recognize this shape of the source",
        )
    if edit.not_needed:
        return NothingToDo(State.NOT_NEEDED, edit.not_needed)
    return Drift(
        f"a file that {edit.op} is about, below {', '.join(edit.search)}",
        "none",
        help="this is not the whole source tree, or an unknown release",
    )


def _fold_file(tree: LockedTree, wanted: Plan, path: str, diffed: _Diffed) -> FoldedFile:
    steps, of_diffs = wanted.files.get(path, ()), diffed.outcomes.get(path, [])
    try:
        pristine = tree.pristine(path)
        found = diffed.read(path) if path in diffed.files else pristine
        outcomes = list(of_diffs)
        if found is not None and steps:
            done = fold(decode(found, path), [(step.edit, step.template, step.options) for step in steps])
            found = done.text.encode()
            outcomes += zip(steps, done.outcomes, strict=True)
    except Refused as refused:
        patch = steps[0].patch.id if steps else ""
        problems = tuple(replace(p, patch=p.patch or patch) for p in refused.problems)
        return FoldedFile(None, problems=problems)
    outcomes = [(s, o) for s, o in outcomes if not (isinstance(o, NothingToDo) and o.elsewhere)]
    changing = [f"{s.patch.id} {s.patch.version}" for s, o in outcomes if isinstance(o, Rewritten)]
    executable = diffed.executable(path)
    patches = tuple(dict.fromkeys([*diffed.authors.get(path, ()), *changing]))
    if found == pristine and executable is None:
        patches = ()
    elif found is not None and found != pristine and wanted.variant:
        found = stamped(found, pristine, path, wanted.variant, patches)
    problems = (*diffed.problems.get(path, ()), *_drifted(wanted, path, outcomes))
    return FoldedFile(found, patches, tuple(outcomes), problems, executable)


def _drifted(wanted: Plan, path: str, outcomes: Iterable[tuple[Planned, Outcome]]) -> Iterator[Problem]:
    """Yield the edits that refuse, each with what to do next; a release that the patch was not tried on is named."""
    version = wanted.tree.version
    for step, outcome in outcomes:
        if isinstance(outcome, Drift):
            patch = step.patch
            advice = outcome.help or f"this place was changed; see `fp4patch show {patch.name}`"
            if version and not covers(patch.applies, version):
                tree = f"{wanted.tree.target.name} {version}"
                advice = f"this is {tree}, and the patch was tried on {patch.applies}; {advice}"
            yield Problem(
                expected=outcome.expected,
                found=outcome.found,
                help=advice,
                patch=patch.id,
                file=path,
                line=outcome.line,
                nearest=outcome.nearest,
                state=State.DRIFTED,
            )
