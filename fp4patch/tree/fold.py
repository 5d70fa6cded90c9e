"""The fold of a variant's edits over the pristine bytes of a tree, and the comparison of the tree with it.

Apply, status and verify are three uses of this.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import Plan, Planned, edits_of
from fp4patch.core.errors import Refused
from fp4patch.core.release import covers
from fp4patch.core.results import Drift, NothingToDo, Outcome, Problem, Rewritten, State
from fp4patch.edits import Edit
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
    wanted = Plan(
        tree=tree.known,
        variant=variant,
        patches=tuple(patches),
        edits=edits_of(patches, options),
        candidates=scanned.candidates,
        read=tree.read,
        passing=scanned.passing,
    )
    lost = without_receipt(tree, scanned)
    files = {path: FoldedFile(None, problems=(problem,)) for path, problem in lost.items()}
    for path in dict.fromkeys([*wanted.files, *tree.on_record]):
        done = files.get(path) or _fold_file(tree, wanted, path)
        if done.outcomes or done.problems or path in tree.on_record:
            files[path] = done
    placed = {id(step) for file in files.values() for step, _ in file.outcomes}
    untried = [path for path, file in files.items() if file.problems and not file.outcomes]
    placed |= {id(step) for path in untried for step in wanted.files.get(path, ())}
    unplaced = [(p, _unplaced(p.edit, wanted.tree.version)) for p in wanted.edits if id(p) not in placed]
    problems = [problem for done in files.values() for problem in done.problems]
    problems += [*_drifted(wanted, "", unplaced), *_in_part(wanted, files)]

    def desired(path: str) -> bytes | None:
        return files[path].desired if path in files and files[path].desired is not None else tree.read(path)

    left, remainders = check(wanted, tree.read, desired)
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


def _in_part(wanted: Plan, files: Mapping[str, FoldedFile]) -> Iterator[Problem]:
    """Yield a problem for each diff that one file has already, and others have not."""
    for patch in wanted.patches:
        diffed = {edit.named_file for edit in patch.edits if edit.named_file}
        outcomes = {p: o for p in diffed & files.keys() for step, o in files[p].outcomes if step.patch is patch}
        done = [path for path, outcome in sorted(outcomes.items()) if isinstance(outcome, NothingToDo)]
        if done and any(isinstance(outcome, Rewritten) for outcome in outcomes.values()):
            advice = "a diff is applied as a whole: take the one for this release, or leave it out"
            yield Problem(
                expected="all changes of the diff, or none",
                found="its own ones, and not those of other files",
                help=advice,
                patch=patch.id,
                file=done[0],
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


def _fold_file(tree: LockedTree, wanted: Plan, path: str) -> FoldedFile:
    steps = wanted.files.get(path, ())
    try:
        pristine = tree.pristine(path)
        if pristine is None or not steps:
            return FoldedFile(pristine)
        if locate(tree.root, path) != tree.root / path:  # a diff may name any
            raise refuse(path, "the name of the file itself", "one that leads through a link")
        done = fold(decode(pristine, path), [(step.edit, step.template, step.options) for step in steps])
    except Refused as refused:
        patch = steps[0].patch.id if steps else ""
        problems = tuple(replace(p, patch=p.patch or patch) for p in refused.problems)
        return FoldedFile(None, problems=problems)
    outcomes = tuple(
        (step, outcome)
        for step, outcome in zip(steps, done.outcomes, strict=True)
        if not (isinstance(outcome, NothingToDo) and outcome.elsewhere)
    )
    changing = (f"{step.patch.id} {step.patch.version}" for step, o in outcomes if isinstance(o, Rewritten))
    patches, desired = tuple(dict.fromkeys(changing)), done.text.encode()
    if patches and wanted.variant:
        desired = stamped(desired, pristine, path, wanted.variant, patches)
    return FoldedFile(desired, patches, outcomes, tuple(_drifted(wanted, path, outcomes)))


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
