"""Complete report on a source tree: its release by content, its patches, its build, the result for each GPU."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
from fp4patch.binaries import remedies
from fp4patch.binaries.driver_choice import nearest
from fp4patch.binaries.findings import Answer, Finding, Level
from fp4patch.catalog.identify import Identified, contained
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.plan import Read
from fp4patch.catalog.target import Advice, Defect, Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import PTX, Arch
from fp4patch.core.cuda import has, refused
from fp4patch.core.release import covers
from fp4patch.core.results import State
from fp4patch.core.wording import counted, listed
from fp4patch.doctor import projects
from fp4patch.doctor.builds import Builds, quoted
from fp4patch.doctor.outlook import Opened, instead, opened_by_headers, outlooks, targets_of
from fp4patch.doctor.projects import places
from fp4patch.doctor.recommend import recommend, toolkit
from fp4patch.doctor.result import Content, PatchInTree, Question, TreeReport
from fp4patch.doctor.statements import Left, Statement
from fp4patch.doctor.surveyed import HASH, content, surveyed
from fp4patch.tree.files import sha256
from fp4patch.tree.installed import bypasses
from fp4patch.tree.locked import reading
from fp4patch.tree.receipt import PatchStatus
from fp4patch.tree.status import TreeStatus, each_patch

_LARGEST = 1 << 18
"""Bytes of a source whose conditions are read: what is larger is generated, for one target."""


@dataclass(frozen=True)
class TreeFacts:
    """What doctor reads of a source tree. Its answers follow from this and from the catalog."""

    tree: Identified
    content: Content
    variant: str
    """Variant that is applied; empty if none."""
    state: State
    claims: str
    """The version that the tree states; empty if none."""
    patches: tuple[PatchInTree, ...]
    findings: tuple[Finding, ...]
    """Findings that depend on no question."""
    rows: Callable[[Question, Version | None], tuple[tuple[BuildRow, ...], Sequence[Finding]]]
    """Results of the tree's build for a question and a CUDA release, and notes."""
    opened: Opened
    left_out: Callable[[Arch, str], Mapping[Left, Sequence[Statement]]] = lambda _target, _cuda: {}
    """Conversions in the sources by what the preprocessor leaves of them for a target and a CUDA release."""
    project: Callable[[Question], tuple[Answer, ...]] = lambda _: ()
    """Answers of a tree without a build or a header of its own that fp4patch evaluates."""


def examine_each(tree: Identified, found: TreeStatus, questions: Sequence[Question]) -> Iterator[TreeReport]:
    """Yield a complete report on a source tree, of which ``found`` is the status, for each question.

    The tree is read once, and its build is evaluated once for each arch list.
    """
    facts = read_facts(tree, found, questions)
    for question in questions:
        yield judge(facts, question)


def read_facts(tree: Identified, found: TreeStatus, questions: Sequence[Question]) -> TreeFacts:
    """Read a tree, of which ``found`` is the status, and evaluate its build for all of the questions in one run."""
    catalog = load()
    releases = tuple(r for r in surveyed(catalog.root) if r.target == tree.target.name)
    with reading([tree]) as (locked,):
        # Without a receipt, status has tried them all.
        tried = each_patch(locked, catalog, {}) if found.variant else found.patches
        hashes = hashes_of(tree.target, locked.read)
    what = content(releases, hashes)
    # In a patched tree, the status reports bypasses.
    own = (*content_findings(tree, what), *_state_findings(tree, found))
    own = own if found.variant else (*own, *_bypass_findings(tree))
    builds = Builds(tree)
    builds.evaluate((question, cuda_of(question)) for question in questions)
    return TreeFacts(
        tree=tree,
        content=what,
        variant=found.variant,
        state=found.state,
        claims=found.version,
        patches=_patches(catalog, tried, found),
        findings=own,
        rows=builds.rows,
        opened=partial(opened_by_headers, tree),
        left_out=_Guards(tree).left_out,
        project=lambda question: projects.examine(tree.root, question, cuda_of(question)).answers,
    )


class _Guards:
    """The conditions around the conversions of a tree, read once, and evaluated once for each target."""

    def __init__(self, tree: Identified) -> None:
        self._tree = tree
        self._known: dict[tuple[Arch, str], Mapping[Left, Sequence[Statement]]] = {}
        self._project: projects.Project | None = None

    def left_out(self, target: Arch, cuda: str) -> Mapping[Left, Sequence[Statement]]:
        """Return the conversions by what is left of each."""
        if self._project is None:
            inner = [part.root for part in contained(self._tree.root, self._tree.target, load())]
            self._project = projects.Project.at(self._tree.root, without=inner, largest=_LARGEST)
        if (target, cuda) not in self._known:
            self._known[target, cuda] = projects.left_out(self._project, target, cuda)
        return self._known[target, cuda]


def cuda_of(question: Question) -> Version | None:
    """Return the CUDA release that a question is about; None if it names none and there is no compiler."""
    return Version(question.cuda) if question.cuda else toolkit()


def judge(facts: TreeFacts, question: Question) -> TreeReport:
    """Return the complete report on a tree for one question."""
    tree, cuda = facts.tree, cuda_of(question)
    rows, notes = facts.rows(question, cuda)
    advice = _advice(by_content(tree, facts.content), cuda, question.gpus)
    command = _next(facts, advice)
    todo = "" if facts.variant else command
    variant = load().variants.get(facts.variant)
    lines = outlooks(tree, variant, question, rows, facts.opened, cuda, todo) or facts.project(question)
    lines = tuple(_guarded(line, facts, variant, question, rows, cuda) for line in lines)
    build = tree.target.build
    if build and (part := question.unlike_pytorch):
        why = f"{build.setting} with {part}: PyTorch and this build write {Arch.parse(part.removesuffix(PTX)).torch}"
        todo = remedies.of("list_for_gpus", setting=build.setting, list=quoted(question.asked))
        lines = tuple(Answer(line.gpu, Level.RED, "the build ends", (why,), todo) for line in lines)
    elif question.asked and any(line.level is Level.RED for line in lines):
        others, _ = facts.rows(replace(question, asked=""), cuda)
        lines = tuple(instead(tree, line, question, others) for line in lines)
    setting = build.setting if build else ""
    known = _defects(by_content(tree, facts.content), facts.patches, question, advice)
    defects = tuple(finding for _, finding in known)
    lines = tuple(_with_defect(line, known) for line in lines) or tuple(
        _with_defect(Answer(gpu, Level.NONE, "the build of this target is not evaluated"), known)
        for gpu in question.gpus
    )
    return TreeReport(
        root=str(tree.root),
        target=tree.target.name,
        title=tree.target.title,
        claims=facts.claims,
        content=facts.content,
        variant=facts.variant,
        state=facts.state,
        patches=facts.patches,
        setting=setting,
        builds=tuple(replace(row, setting=setting) for row in rows),
        advice=advice,
        next_command=command,
        findings=(*facts.findings, *defects, *notes),
        outlooks=lines,
    )


def _guarded(
    line: Answer,
    facts: TreeFacts,
    variant: Variant | None,
    question: Question,
    rows: Sequence[BuildRow],
    cuda: Version | None,
) -> Answer:
    """Return the answer that takes the conditions in the sources into account: they can leave a conversion out."""
    if facts.tree.target.build is None or line.level in (Level.RED, Level.NONE):
        return line
    usable = [row for row in rows if not row.error]
    made = targets_of(line.gpu, question, usable)
    target = nearest(line.gpu, made, ())
    if target is None:
        return line
    left = facts.left_out(target, str(cuda or usable[0].cuda))
    if lost := left.get(Left.CONSTANT):
        why = f"for {target}, {counted(len(lost), 'conversion')} left out, with {Left.CONSTANT}: {places(lost)}"
        todo = f"restore the condition at {lost[0].place}"
        return Answer(line.gpu, Level.RED, "conversions are left out", (why, *line.evidence), todo)
    for what, said in ((Left.OTHER, "with software in its place"), (Left.UNKNOWN, Left.UNKNOWN.value)):
        if (some := left.get(what)) and variant is None:
            evidence = (*line.evidence, f"for {target}, {counted(len(some), 'conversion')} {said}: {places(some)}")
            line = replace(line, level=Level.YELLOW, evidence=evidence, reservations=line.reservations + 1)
    return line


def _with_defect(line: Answer, known: Sequence[tuple[Defect, Finding]]) -> Answer:
    """Return the answer that takes the known defects of the release into account."""
    own = [pair for pair in known if line.gpu in map(Arch.parse, pair[0].gpus)]
    for defect, finding in own:
        if finding.level is Level.RED:
            evidence = (f"{defect.subject}: {defect.found}", *line.evidence)
            return Answer(line.gpu, Level.RED, f"{defect.subject} fails", evidence, finding.remedy)
    return line


def _advice(tree: Identified, cuda: Version | None, gpus: Sequence[Arch]) -> Advice | None:
    """Return what to apply. Nothing where no patch can help: the compiler has no target with FP4 instructions."""
    targets = [replace(gpu, suffix=suffix) for gpu in gpus for suffix in ("a", "f")]
    if cuda is None or any(has(cuda, target) for target in targets):
        return recommend(tree, cuda)
    return Advice(because=f"{refused(cuda, targets)}: {remedies.of('cuda_too_old')}")


def by_content(tree: Identified, what: Content) -> Identified:
    """Return the tree with the release that its files are of, where it states none or a wrong one."""
    if not what.releases or (tree.version and _claimed(str(tree.version), what.releases)):
        return tree
    return replace(tree, version=Version(what.releases[-1]))


def hashes_of(target: Target, read: Read) -> dict[str, str]:
    """Return the start of the SHA-256 of each file that there is of those that tell releases apart."""
    for folder in target.telling_in:
        if found := {path: sha256(data)[:HASH] for path in target.telling if (data := read(folder + path))}:
            return found
    return {}


def _patches(catalog: Catalog, tried: Sequence[PatchStatus], found: TreeStatus) -> tuple[PatchInTree, ...]:
    """Return every patch of the target: its state if it is applied, else the state that it would have."""
    standing = {p.patch: p for p in found.patches} if found.variant else {}
    rows = []
    for patch in (standing.get(p.patch, p) for p in tried):
        variants = tuple(v.name for v in catalog.variants.values() if patch.patch in v.patch_ids)
        rows.append(PatchInTree(patch.patch, patch.state, patch.because, variants))
    return tuple(rows)


def _defects(
    tree: Identified, patches: Sequence[PatchInTree], question: Question, advice: Advice | None
) -> list[tuple[Defect, Finding]]:
    """Return the known defects of this release on the GPUs in question, without those that a patch has repaired."""
    open_patches = {row.patch.partition("/")[2] for row in patches if row.state is State.PRISTINE}
    variant = advice.variant if advice else ""
    apply = f"fp4patch apply --variant {variant} {shlex.quote(str(tree.root))}" if variant else ""
    return [
        (defect, Finding(Level(defect.level), defect.subject, defect.found, defect.remedy or apply, defect.link))
        for defect in tree.target.defects
        if set(map(Arch.parse, defect.gpus)) & set(question.gpus)
        and (not defect.patch or defect.patch in open_patches)
        and covers(defect.versions, tree.version)
    ]


def _state_findings(tree: Identified, found: TreeStatus) -> list[Finding]:
    root, why = shlex.quote(str(tree.root)), "it was edited since fp4patch wrote it"
    findings = [
        remedies.finding(Level.RED, file.path, why, "tree_edited", root=root)
        for file in found.files
        if file.state is State.FOREIGN
    ]
    if found.state is State.OUTDATED:
        why = "an older version of its patches was applied"
        findings.append(remedies.finding(Level.YELLOW, found.variant, why, "tree_outdated", root=root))
    if found.variant and found.state is State.DRIFTED:
        why = "its patches do not fit this source any more"
        findings.append(remedies.finding(Level.RED, found.variant, why, "tree_drifted", root=root))
    return findings + [Finding(Level.YELLOW, "note", note) for note in found.notes]


def _bypass_findings(tree: Identified) -> list[Finding]:
    """Compiled code in the place of the tree's sources, beside them or in them: the verdict is not about it."""
    here = replace(tree.target, bypasses=tuple(b for b in tree.target.bypasses if not b.instead))
    notes = bypasses(tree.root, here, tree.version)
    return [remedies.finding(Level.YELLOW, "loaded instead", note, "loaded_instead") for note in notes]


def content_findings(tree: Identified, what: Content) -> list[Finding]:
    """Return a finding if the tree states another release than that of its files."""
    claims = str(tree.version or "")
    if claims and what.releases and not _claimed(claims, what.releases):
        own = listed(what.releases, "or")
        why = f"the tree states {claims}, but the files that differ between releases are those of {own}"
        return [remedies.finding(Level.YELLOW, "version", why, "tree_version")]
    return []


def _claimed(claims: str, releases: Iterable[str]) -> bool:
    return Version(claims).release in {Version(release).release for release in releases}


def _next(found: TreeFacts, advice: Advice | None) -> str:
    root = shlex.quote(str(found.tree.root))
    if found.state.refused:
        return f"fp4patch status {root}"
    if found.variant:
        verb = "apply" if found.state is State.OUTDATED else "verify"
        return f"fp4patch {verb} --variant {found.variant} {root}"
    return f"fp4patch apply --variant {advice.variant} {root}" if advice and advice.variant else ""
