"""What doctor reads of a source tree: its release by content, its patches, its build, the conditions in its sources."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Finding, Level
from fp4patch.catalog.identify import Identified, contained
from fp4patch.catalog.manifest import load
from fp4patch.catalog.plan import Read
from fp4patch.catalog.surveyed import HASH, releases
from fp4patch.catalog.target import Gate, Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ToolchainError
from fp4patch.core.results import State
from fp4patch.cxx.preprocessor import Header
from fp4patch.doctor import projects
from fp4patch.doctor.builds import Builds
from fp4patch.doctor.compilers import toolkit
from fp4patch.doctor.result import Question
from fp4patch.doctor.statements import Left, Statement
from fp4patch.tree.evaluate import bypasses, try_patches
from fp4patch.tree.files import sha256
from fp4patch.tree.locking import locked
from fp4patch.tree.receipt import PatchStatus
from fp4patch.tree.status import TreeStatus


@dataclass(frozen=True)
class TreeFacts:
    """What doctor reads of a source tree. Its answers follow from this and from the catalog."""

    tree: Identified
    releases: tuple[str, ...]
    """Releases that have exactly its files: several if they share them, none if no surveyed release matches."""
    variant: str
    """Variant that is applied; empty if none."""
    state: State
    patches: tuple[PatchStatus, ...]
    rows: Callable[[Question, Version | None], tuple[tuple[BuildRow, ...], Sequence[Finding]]]
    """Results of the tree's build for a question and a CUDA release, and notes."""
    opened: Callable[[Gate, Sequence[Arch], str], Sequence[Arch] | None]
    """Targets of these for which the headers define a gate's macro with a CUDA release; None if they do not decide."""
    findings: tuple[Finding, ...] = ()
    """Findings that depend on no question."""
    left_out: Callable[[Arch, str], Mapping[Left, Sequence[Statement]]] = lambda _target, _cuda: {}
    """Conversions in the sources by what the preprocessor leaves of them for a target and a CUDA release."""
    project: Callable[[Question], tuple[Answer, ...]] = lambda _: ()
    """Answers of a tree without a build or a header of its own that fp4patch evaluates."""

    @property
    def released(self) -> Identified:
        """The tree with the release that its files are of, where it states none or a wrong one."""
        stated = self.tree.version
        if not self.releases or (stated and stated.release in {Version(name).release for name in self.releases}):
            return self.tree
        return replace(self.tree, version=Version(self.releases[-1]))


def read_facts(tree: Identified, status: TreeStatus, questions: Sequence[Question]) -> TreeFacts:
    """Read a tree, and evaluate its build for all of the questions in one run."""
    catalog = load()
    with locked([tree]) as (held,):
        # Without a receipt, status has tried them.
        tried = try_patches(held, catalog, all_patches=any(q.patches for q in questions)) if status.variant else ()
        hashes = hashes_of(tree.target, held.read)
    states = {patch.patch: patch for patch in (*tried, *status.patches)}
    builds = Builds(tree)
    with suppress(ToolchainError):  # which the rows of each question report
        builds.evaluate((question, cuda_of(question)) for question in questions)
    inner = [part.root for part in contained(tree.root, tree.target, catalog)]
    project = cache(lambda: projects.Project.at(tree.root, without=inner, converting=True))
    return TreeFacts(
        tree=tree,
        releases=releases_of(tree.target, hashes),
        variant=status.variant,
        state=status.state,
        patches=tuple(states.values()),
        rows=builds.rows,
        opened=partial(opened_by_headers, tree),
        findings=tuple(_findings(tree, status)),
        left_out=cache(lambda target, cuda: projects.left_out(project(), target, cuda)),
        project=lambda question: projects.examine(tree.root, question, cuda_of(question)).answers,
    )


def cuda_of(question: Question) -> Version | None:
    """Return the CUDA release that a question is about; None if it names none and there is no compiler."""
    return Version(question.cuda) if question.cuda else toolkit()


def releases_of(target: Target, hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the releases that have exactly a tree's files, by the hashes of these."""
    return tuple(version for version, files in releases(target) if hashes.items() >= files.items())


def hashes_of(target: Target, read: Read) -> dict[str, str]:
    """Return the start of the SHA-256 of each file that there is of those that tell releases apart."""
    for folder in target.telling_in:
        if found := {path: sha256(data)[:HASH] for path in target.telling if (data := read(folder + path))}:
            return found
    return {}


def opened_by_headers(tree: Identified, gate: Gate, archs: Sequence[Arch], cuda: str) -> list[Arch] | None:
    """Return the targets for which the tree's own headers define the macro; None if that is not decided by them."""

    def text(path: str) -> str | None:
        file = tree.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    try:
        header = Header(gate.file, text, tree.target.include)
        found = {arch: header.macro(gate.defines, arch, cuda) for arch in archs}
    except (OSError, ValueError):
        return None
    return None if any(m and m.undecided for m in found.values()) else [arch for arch, m in found.items() if m]


_STATES = {
    State.FOREIGN: (Level.RED, "a file was edited since fp4patch wrote it", "tree_edited"),
    State.OUTDATED: (Level.YELLOW, "an older version of its patches was applied", "tree_outdated"),
    State.DRIFTED: (Level.RED, "its patches do not fit this source any more", "tree_drifted"),
}


def _findings(tree: Identified, status: TreeStatus) -> list[Finding]:
    """Return findings about the state of a patched tree, and about compiled code in the place of its sources."""
    findings = [Finding(Level.YELLOW, "note", note) for note in status.notes]
    if status.variant and status.state in _STATES:
        level, why, cause = _STATES[status.state]
        findings.append(remedies.finding(level, status.variant, why, cause, root=shlex.quote(str(tree.root))))
    if not status.variant:  # the notes of a patched tree have them
        notes = bypasses(tree.root, tree.target)
        findings += [remedies.finding(Level.YELLOW, "loaded instead", note, "loaded_instead") for note in notes]
    return findings
