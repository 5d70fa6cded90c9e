"""The fold of a variant's edits over the pristine bytes of a tree, and the comparison of the tree with it.

Apply, status and verify are three uses of this.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import Plan, edits_of, patches_of
from fp4patch.catalog.variant import Variant
from fp4patch.core.errors import Refused
from fp4patch.core.release import covers
from fp4patch.core.results import Drift, NothingToDo, Outcome, Problem, Rewritten, State
from fp4patch.edits import Edit
from fp4patch.edits.diff import FileDiff
from fp4patch.edits.operation import fold
from fp4patch.tree.candidate_files import candidates
from fp4patch.tree.files import decode, locate, refuse
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.postcondition import check
from fp4patch.tree.receipt import Remainder
from fp4patch.tree.stamp import find_stamp, stamped


@dataclass(frozen=True)
class FoldedFile:
    """A file's desired bytes, None where there is and shall be no file, and what each edit came to."""

    desired: bytes | None
    patches: tuple[str, ...] = ()
    """Those that change the file, with their versions, in order."""
    outcomes: tuple[tuple[str, Outcome], ...] = ()
    """Each edit's patch, by its id, and its outcome without a text."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class FoldedTree:
    """Every file that an edit is about or the receipt knows, and the edits that found no file at all."""

    files: dict[str, FoldedFile]
    unplaced: tuple[tuple[str, Outcome], ...]
    problems: tuple[Problem, ...]
    remainders: tuple[Remainder, ...]
    """Places that the patches leave in the tree on purpose."""

    def outcomes(self) -> Iterator[tuple[str, str, Outcome]]:
        """Yield file (empty for an edit without one), id of the patch, and the outcome there."""
        for path, done in self.files.items():
            yield from ((path, patch, outcome) for patch, outcome in done.outcomes)
        yield from (("", patch, outcome) for patch, outcome in self.unplaced)


def plan_for(tree: LockedTree, variant: Variant, catalog: Catalog) -> Plan:
    """Return the variant's plan, made from the pristine bytes. UsageError if the variant has nothing for such trees."""
    patches, options = patches_of(variant, tree.known, catalog)
    return plan_patches(tree, variant.name, patches, options)


def plan_patches(
    tree: LockedTree, name: str, patches: Sequence[Patch], options: Mapping[str, Mapping[str, str]]
) -> Plan:
    """Return the edits of these patches, in this order. Refused: a directory to search may not be read."""
    return Plan(tree.known, name, tuple(patches), edits_of(patches, options), candidates(tree), tree.read)


def fold_tree(tree: LockedTree, wanted: Plan) -> FoldedTree:
    """Return each file of the plan and of the receipt with its desired bytes and what each edit came to.

    ManifestError: what an edit looks for cannot be read.
    """
    lost = without_receipt(tree)
    files, placed = {path: FoldedFile(None, problems=(problem,)) for path, problem in lost.items()}, set[int]()
    for path in dict.fromkeys([*wanted.files, *tree.on_record]):
        if path in lost:
            placed |= {id(step) for step in wanted.files[path]}
            continue
        done, about = _fold_file(tree, wanted, path)
        placed |= about
        if done.outcomes or done.problems or path in tree.on_record:
            files[path] = done
    unplaced = [(p.patch, _unplaced(p.edit, wanted.tree.version)) for p in wanted.edits if id(p) not in placed]
    problems = [problem for done in files.values() for problem in done.problems]
    problems += [*_drifted(wanted, "", unplaced), *_in_part(wanted, files)]

    def desired(path: str) -> bytes | None:
        return files[path].desired if path in files and files[path].desired is not None else tree.read(path)

    left, remainders = check(wanted, tree.read, desired)
    known = {(problem.patch, problem.file) for problem in problems}
    refused = {path for path, done in files.items() if done.problems}
    problems += [p for p in left if (p.patch, p.file) not in known and p.file not in refused]
    return FoldedTree(files, _by_id(unplaced), tuple(problems), tuple(remainders))


def without_receipt(tree: LockedTree) -> Mapping[str, Problem]:
    """Return why each file that fp4patch wrote, and no receipt knows, is not pristine, with the way back."""
    problems, target = {}, tree.known.target.name
    for path in candidates(tree).files:
        stamp = find_stamp(tree.contents.get(path) or b"") if path not in tree.on_record else None
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
        diffed = {edit.path for edit in patch.edits if isinstance(edit, FileDiff)}
        outcomes = {p: o for p in diffed & files.keys() for by, o in files[p].outcomes if by == patch.id}
        done = [path for path, outcome in sorted(outcomes.items()) if isinstance(outcome, NothingToDo)]
        if done and any(isinstance(outcome, Rewritten) for outcome in outcomes.values()):
            advice = "a diff is applied as a whole: take the one for this release, or leave it out"
            expected, found = "all changes of the diff, or none", "its own ones, and not those of other files"
            yield Problem(expected, found, advice, patch.id, done[0], state=State.DRIFTED)


def _by_id(outcomes: Iterable[tuple[Patch, Outcome]]) -> tuple[tuple[str, Outcome], ...]:
    """Return the outcomes with the id of each patch, and without texts: a fold has the last one."""
    return tuple(
        (patch.id, replace(outcome, text="") if isinstance(outcome, Rewritten) else outcome)
        for patch, outcome in outcomes
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


def _fold_file(tree: LockedTree, wanted: Plan, path: str) -> tuple[FoldedFile, set[int]]:
    """Return the fold of a file, and the edits (by id) that are about it."""
    steps = wanted.files.get(path, ())
    try:
        pristine = tree.pristine(path)
        if pristine is None or not steps:
            return FoldedFile(pristine), set()
        if locate(tree.root, path) != tree.root / path:  # a diff may name any
            raise refuse(path, "the name of the file itself", "one that leads through a link")
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
    outcomes = [(step.patch, outcome) for step, outcome in about]
    changing = (f"{patch.id} {patch.version}" for patch, outcome in outcomes if isinstance(outcome, Rewritten))
    patches, desired = tuple(dict.fromkeys(changing)), done.text.encode()
    if patches:
        desired = stamped(desired, pristine, path, wanted.variant, patches)
    problems = tuple(_drifted(wanted, path, outcomes))
    return FoldedFile(desired, patches, _by_id(outcomes), problems), {id(step) for step, _ in about}


def _drifted(wanted: Plan, path: str, outcomes: Iterable[tuple[Patch, Outcome]]) -> Iterator[Problem]:
    """Yield the edits that refuse, each with what to do next; a release that the patch was not tried on is named."""
    version = wanted.tree.version
    for patch, outcome in outcomes:
        if isinstance(outcome, Drift):
            advice = outcome.help or f"this place was changed; see `fp4patch show {patch.name}`"
            if version and not covers(patch.applies, version):
                tree = f"{wanted.tree.target.name} {version}"
                advice = f"this is {tree}, and the patch was tried on {patch.applies}; {advice}"
            place = (patch.id, path, outcome.line, outcome.nearest)
            yield Problem(outcome.expected, outcome.found, advice, *place, State.DRIFTED)
