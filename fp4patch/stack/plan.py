"""What becomes of a stack of patches on releases: which go on, which are in already, which conflict, which need others.

The patches are put on each release in memory, in their order: one that does not go on is left out, and those behind it
are tried without it. Nothing is written.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial

from packaging.version import Version

from fp4patch.catalog.target import Target
from fp4patch.core.document import HIDDEN, Document, Report, shown
from fp4patch.core.lex_error import LexError
from fp4patch.core.release import is_version
from fp4patch.core.tree_path import is_source, not_built
from fp4patch.core.wording import counted, shortened
from fp4patch.edits.patch_file import Commit, FileChange, read
from fp4patch.sources.history import Clone, Entry
from fp4patch.stack.attempt import Attempt, Misfit, attempt, blob_name, exactly_at_lines, lines_of, merge, over
from fp4patch.stack.files import Release
from fp4patch.stack.landing import Landing, is_revert, landing
from fp4patch.stack.presence import Found, hunks_in

_TESTS = frozenset(("test", "tests", "testing", "qa", "ci", ".github", "docs", "benchmark", "benchmarks"))


class Outcome(StrEnum):
    """What becomes of a patch on a release."""

    APPLIES = "applies"
    """Each hunk fits at one place, line by line."""
    MERGES = "applies after a merge"
    """Git merges it with what the release changed at other lines of the same files."""
    IN = "in the release"
    """The release has it."""
    NOTHING = "nothing to do"
    """The release is as after the patch, and whether it ever was otherwise is not known: a revert, or lines that go."""
    PARTLY = "partly in"
    """The release has some of its hunks, and the others do not go on."""
    NEEDS = "needs others first"
    """It goes on once others are in, which are not."""
    CONFLICTS = "conflicts"
    NOT_FOR = "not for this release"
    """The release has none of its files, or is of another project."""

    @property
    def is_settled(self) -> bool:
        """True if nobody needs to look at it: the patch goes on, or there is nothing to put on."""
        return self in (Outcome.APPLIES, Outcome.MERGES, Outcome.IN, Outcome.NOTHING)


@dataclass(frozen=True)
class Place(Document):
    """A place of a patch in a release."""

    file: str
    hunk: int
    """1-based number of the hunk in its file; 0 for the whole file."""
    line: int | None
    """1-based line of the release."""
    reason: str = ""
    release: str = ""
    """The lines of the release."""
    patch: str = ""
    """The lines of the patch."""
    is_in: bool = False
    """True if the release has the hunk."""
    commits: tuple[str, ...] = ()
    """Commits of the release that wrote these lines, the newest first, where a clone is at hand."""


@dataclass(frozen=True)
class Step(Document):
    """What becomes of one patch on one release."""

    patch: str
    """Label of the patch."""
    release: str
    outcome: Outcome
    evidence: str = ""
    """By what one sees it."""
    since: str = ""
    """The first release that has it."""
    needs: tuple[str, ...] = ()
    """Patches of the stack, or commits, on which it builds here. They are on, unless the outcome is "needs others"."""
    places: tuple[Place, ...] = ()
    """Where it conflicts, where a merge puts it, or which of its hunks the release has."""
    left_out: tuple[str, ...] = ()
    """Files of the patch that are no part of what is built, and that the release has not, or not as the patch has
    them: tests, documents."""


@dataclass(frozen=True)
class Patch(Document):
    """A patch of a stack."""

    name: str
    title: str
    link: str = ""
    base: str = ""
    """Release or commit that it was made for, if the stack says it."""
    target: str = field(metadata=HIDDEN, default="")
    """Kind of tree that it is for, if the stack says it."""
    commit: Commit = field(metadata=HIDDEN, default=None)  # type: ignore[assignment]

    @property
    @shown()
    def label(self) -> str:
        """The number before its name, as ``git format-patch`` writes it; its whole name if there is none."""
        number = re.match(r"\d{2,}(?=-)", self.name)
        return number[0] if number else self.name

    @cached_property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that it changes."""
        return self.commit.changes

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of its files, before it and after it."""
        return frozenset(path for change in self.changes for path in (change.before, change.after) if path)

    @cached_property
    def judged(self) -> tuple[FileChange, ...]:
        """The changes that decide: those of what is built, or all, if it has none of these."""
        built = tuple(change for change in self.changes if _is_built(change.path))
        return built or self.changes


@dataclass(frozen=True)
class Goes(Document):
    """The release from which on a patch can go."""

    patch: str
    target: str
    since: str = ""
    """The first release that has it; empty if the newest one has it not."""
    before: str = ""
    """The release before that, which has it not; empty if the oldest one has it already."""
    newest: str = ""
    """The newest release that was looked at."""


@dataclass(frozen=True)
class Plan(Report):
    """A stack on releases."""

    stack: str
    releases: tuple[str, ...]
    patches: tuple[Patch, ...]
    steps: tuple[Step, ...]
    """One for each patch and release, by releases."""
    goes: tuple[Goes, ...] = ()
    """The release from which on each patch can go, if that is asked for."""

    @property
    @shown()
    def settled(self) -> bool:
        """True if each patch goes on each release, or there is nothing to put on."""
        return all(step.outcome.is_settled for step in self.steps)

    def step(self, patch: Patch, release: str) -> Step:
        """Return what becomes of a patch on a release."""
        return next(step for step in self.steps if (step.patch, step.release) == (patch.label, release))


def plan(stack: str, patches: Sequence[Patch], releases: Sequence[Release], made_for: Sequence[Release] = ()) -> Plan:
    """Return what becomes of each patch on each release. ``made_for`` are releases that patches were made for."""
    base = Bases((*made_for, *releases))
    steps = [step for release in releases for step in OnRelease(release, patches, base).steps]
    return Plan(stack, tuple(release.name for release in releases), tuple(patches), tuple(_since(steps, releases)))


def _is_built(path: str) -> bool:
    *folders, name = path.lower().split("/")
    return is_source(name) and not not_built(path) and not _TESTS & set(folders) and not name.startswith("test_")


class Bases:
    """The texts that patches were made for, as far as a clone or a release has them."""

    def __init__(self, releases: Sequence[Release]) -> None:
        self._releases = releases
        self._known: dict[int, str | None] = {}

    def __call__(self, change: FileChange) -> str | None:
        """Return the text before a change; None if it is not known."""
        if id(change) not in self._known:
            self._known[id(change)] = self._find(change)
        return self._known[id(change)]

    def _find(self, change: FileChange) -> str | None:
        path, name = change.before or "", change.blob_before
        for clone in {id(r.clone): r.clone for r in self._releases if r.clone}.values():
            if name and (content := clone.blob(name)) is not None:
                return content.decode("utf-8", "surrogateescape")
        texts = [text for release in self._releases if (text := release.text(path)) is not None]
        same = (text for text in texts if name and blob_name(text).startswith(name))
        fitting = (text for text in texts if exactly_at_lines(text, change.hunks) is not None)
        return next(same, next(fitting, None))


class OnRelease:
    """The patches of a stack on one release."""

    def __init__(self, release: Release, patches: Sequence[Patch], base: Callable[[FileChange], str | None]) -> None:
        self.release = release
        self.base = base
        self.on: list[Patch] = []
        """The patches that are on, in their order."""
        self._changes: list[Sequence[FileChange]] = []
        """What counts of each of these."""
        self._needs: list[tuple[int, ...]] = []
        """The numbers of those that each of these needs."""
        self._made: dict[tuple[int, ...], Mapping[str, str | None] | None] = {(): {}}
        self.texts: dict[str, str | None] = {}
        """The files that these change."""
        self.steps: list[Step] = []
        for number, patch in enumerate(patches):
            self.steps.append(self._step(patch, patches[:number], patches[number + 1 :]))

    def text(self, path: str) -> str | None:
        """Return a file of the release with the patches that are on."""
        return self.texts[path] if path in self.texts else self.release.text(path)

    def _step(self, patch: Patch, before: Sequence[Patch], behind: Sequence[Patch]) -> Step:
        made = partial(Step, patch.label, self.release.name)
        there = self.presence(patch)
        if there.outcome:
            return made(there.outcome, there.evidence, there.since, places=there.places)
        changes, left_out = self._present(patch)
        tried = self._tried_here(changes)
        if tried.fits:
            same = all(self.text(path) == text for path, text in tried.texts.items())
            is_done = same and not any(change.sets_mode for change in changes)
            needed = self._needed(patch, changes)
            needs = tuple(self.on[number].label for number in needed)
            self.on.append(patch)
            self._needs.append(needed)
            self._changes.append(changes)
            self.texts |= tried.texts
            moved = tuple(Place(place.file, place.hunk, place.line, "its lines changed here") for place in tried.moved)
            outcome = Outcome.NOTHING if is_done else Outcome.MERGES if tried.merged else Outcome.APPLIES
            evidence = "the patches before it have done it" if is_done else there.evidence
            return made(outcome, evidence, needs=needs, places=moved, left_out=left_out)
        if not any(self.release.text(change.before) is not None for change in patch.judged if change.before) and all(
            change.before for change in patch.judged
        ):
            missing = shortened(change.path for change in patch.judged)
            if needs := self._missing(patch, before, behind, changes):
                return made(Outcome.NEEDS, f"without them the release has no {missing}", needs=needs, left_out=left_out)
            return made(Outcome.NOT_FOR, f"the release has no {missing}", left_out=left_out)
        if needs := self._missing(patch, before, behind, changes):
            return made(Outcome.NEEDS, needs=needs, places=self._places(patch, tried), left_out=left_out)
        outcome = Outcome.PARTLY if there.places else Outcome.CONFLICTS
        held = {(place.file, place.hunk) for place in there.places}
        others = (place for place in self._places(patch, tried) if (place.file, place.hunk) not in held)
        places = (*there.places, *others)
        return made(outcome, there.evidence, places=places, left_out=left_out, needs=self._builds_on(patch))

    # --- in it already ---

    def presence(self, patch: Patch) -> "_Presence":
        """Return whether the release has a patch, by the log if a clone has it, else by its texts."""
        is_others = patch.target and self.release.target and patch.target != self.release.target.name
        return _Presence(Outcome.NOT_FOR, f"it is for {patch.target}") if is_others else self._presence(patch)

    def _presence(self, patch: Patch) -> "_Presence":
        found = list(self._found(patch))
        told = {here.found for here in found}
        has = [here for here in found if here.found is Found.IN]
        open_ = [here for here in found if here.found is Found.BEFORE]
        lacking = [here for here in found if here.found is Found.ABSENT]
        is_undone = bool(open_) and not has and len(open_) >= len(lacking)
        landed = self._landed(patch)
        if landed and not landed.reverted and not is_undone and (landed.is_sure or has):
            since = self._first_tag(landed.entry.commit)
            undone = f"; as before it again: {_hunks(open_)}" if open_ else ""
            return _Presence(Outcome.IN, f"its {landed.by} is in the log: {landed.entry}{undone}", since)
        news = ""
        if landed and landed.reverted:
            news = f"it was in, and was taken back: {landed.reverted}"
        elif landed and landed.is_sure and open_:
            news = f"it is in the log ({landed.entry}), and its text is gone again"
        if told <= {Found.IN, Found.GONE, Found.SAME} and told & {Found.IN, Found.GONE}:
            if not has:
                return _Presence(Outcome.NOTHING, "what it takes away is not there")
            if is_revert(patch.commit):
                return _Presence(Outcome.NOTHING, "it takes back a change that is not there")
            exact = all(here.exact for here in found)
            evidence = "its reverse fits exactly" if exact else f"each statement of {_hunks(found)} is there"
            return _Presence(Outcome.IN, evidence)
        if has and not open_ and self._merge_is_empty(patch):
            outcome = Outcome.NOTHING if is_revert(patch.commit) else Outcome.IN
            return _Presence(outcome, "a merge with it changes nothing")
        places = tuple(Place(here.file, here.hunk, None, "is in already", is_in=True) for here in has)
        return _Presence(None, news, places=places)

    def _found(self, patch: Patch) -> Iterator["_Here"]:
        """Yield what the release has of each hunk that decides."""
        for change in patch.judged:
            text = self.release.text(change.path)
            if change.binary:
                yield _Here(change.path, 0, Found.ABSENT)
            elif change.after is None:
                is_gone = text is None and not self.release.occupied(change.path)
                yield _Here(change.path, 0, Found.GONE if is_gone else Found.ABSENT, exact=is_gone)
            elif text is None:
                yield _Here(change.path, 0, Found.ABSENT)
            elif change.before is None and text == "".join(line for hunk in change.hunks for line in hunk.after):
                yield _Here(change.path, 0, Found.IN, exact=True)
            elif change.before not in (None, change.after) and not self._has_moved(change, text):
                yield _Here(change.path, 0, Found.ABSENT)
            elif not change.hunks:
                renamed = change.before != change.after
                yield _Here(change.path, 0, Found.IN if renamed else Found.SAME, exact=True)
            else:
                for number, here in enumerate(hunks_in(change, text), 1):
                    yield _Here(change.path, number, here.found, here.exact)

    def _has_moved(self, change: FileChange, text: str) -> bool:
        """Tell whether a file with a text can be one that was renamed, or copied: that of the first name decides."""
        first = self.release.text(change.before or "")
        return (bool(change.hunks) or text == first) if change.copied else first is None

    def _landed(self, patch: Patch) -> Landing | None:
        clone, commit = self.release.clone, self.release.commit
        return landing(patch.commit, clone.log(commit)) if clone and commit else None

    def _first_tag(self, commit: str) -> str:
        """Return the first release that has a commit."""
        clone, target = self.release.clone, self.release.target
        if not clone:
            return ""
        names = [(Version(name), tag) for tag in clone.tags_with(commit) if is_version(name := version_of(tag, target))]
        stable = [(version, tag) for version, tag in names if not version.is_prerelease]
        return str(min(stable or names)[0]) if names else ""

    def _merge_is_empty(self, patch: Patch) -> bool:
        """Tell whether git's merge of each file with the text before the patch and after it changes nothing."""
        for change in patch.judged:
            ours, base = self.release.text(change.path), self.base(change) if change.before else None
            theirs = exactly_at_lines(base, change.hunks) if base is not None else None
            if ours is None or base is None or theirs is None:
                return False
            text, conflicts = merge(base, ours, theirs)
            if conflicts or text != ours:
                return False
        return True

    # --- what it needs ---

    def _present(self, patch: Patch) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
        """Return the changes that count, and the files that are left out: no part of what is built, and not there."""
        counting, left_out = [], []
        for change in patch.changes:
            aside = change not in patch.judged
            if aside and not self._tried_here([change]).fits:
                left_out.append(change.path)
            else:
                counting.append(change)
        return tuple(counting), tuple(left_out)

    def _tried_here(self, changes: Sequence[FileChange]) -> Attempt:
        """Return the attempt with changes behind the patches that are on."""
        tried = attempt(changes, self.text, self.base)
        made = (change.path for change in changes if change.after not in (None, change.before))
        missing = (path for path in made if self.release.text(path) is None)
        tried.misfits += [Misfit(path, 0, None, why) for path in missing if (why := self.release.obstacle(path))]
        return tried

    def _with(self, numbers: tuple[int, ...]) -> Mapping[str, str | None] | None:
        """Return the files that some of the patches that are on change, on the bare release; None if one does not go.

        Each is tried once behind the same others: a stack can have hundreds of patches.
        """
        known = next(end for end in range(len(numbers), -1, -1) if numbers[:end] in self._made)
        for end in range(known, len(numbers)):
            before, made = self._made[numbers[:end]], None
            if before is not None:
                tried = attempt(self._changes[numbers[end]], over(before, self.release.text), self.base)
                made = {**before, **tried.texts} if tried.fits else None
            self._made[numbers[: end + 1]] = made
        return self._made[numbers]

    def _needed(self, patch: Patch, changes: Sequence[FileChange]) -> tuple[int, ...]:
        """Return the numbers of the patches that are on and that a patch does not go on without.

        The last of them is the one from which on it goes. That one with all that it needs is kept, and the next is
        found among those before it.
        """

        def goes(*numbers: int) -> bool:
            texts = self._with(tuple(sorted({*numbers})))
            return texts is not None and attempt(changes, over(texts, self.release.text), self.base).fits

        related = self._related(patch, self.on)
        end, kept = len(related), set[int]()
        while not goes(*kept) and end:
            low, high = 0, end  # it goes on with the first ``high``
            while low + 1 < high:
                middle = (low + high) // 2
                low, high = (low, middle) if goes(*related[:middle], *kept) else (middle, high)
            end = high - 1
            kept |= {related[end], *self._needs[related[end]]}
        return tuple(sorted(kept))

    def _related(self, patch: Patch, others: Sequence[Patch]) -> list[int]:
        """Return the numbers of the patches that share a file with a patch, or with one that does."""
        paths, found = set(patch.paths), list[int]()
        for number, other in reversed(list(enumerate(others))):
            if other.paths & paths:
                paths |= other.paths
                found.append(number)
        return found[::-1]

    def _missing(
        self, patch: Patch, before: Sequence[Patch], behind: Sequence[Patch], changes: Sequence[FileChange]
    ) -> tuple[str, ...]:
        """Return the patches or commits that a patch waits for, found by trying."""
        for other in behind:
            if other.paths & patch.paths:
                tried = attempt(self._present(other)[0], self.text, self.base)
                if tried.fits and attempt(changes, over(tried.texts, self.text), self.base).fits:
                    return (other.label,)
        if stuck := [other.label for other in before if other not in self.on and self._builds_on_lines(patch, other)]:
            return tuple(stuck)
        return self._missing_commits(patch, changes)

    def _builds_on_lines(self, patch: Patch, other: Patch) -> bool:
        """Tell whether hunks of a patch, which do not fit, have lines before the change that another one adds."""
        for change in patch.judged:
            text = self.text(change.before or "")
            there = set(lines_of(text)) if text else set()
            wanted = {line for hunk in change.hunks for line in hunk.before} - there
            adds = {
                line
                for theirs in other.changes
                if theirs.after and theirs.after == change.before
                for hunk in theirs.hunks
                for sign, line in hunk.rows
                if sign == "+" and len(line.strip()) > 3
            }
            if wanted & adds:
                return True
        return False

    def _origin(self, patch: Patch) -> str:
        """Return the commit before a patch, in the clone; empty if it is not known."""
        clone = self.release.clone
        return clone.commit(f"{patch.commit.commit}^") if clone and patch.commit.commit else ""

    def _missing_commits(self, patch: Patch, changes: Sequence[FileChange]) -> tuple[str, ...]:
        """Return the commits, which the release lacks, with which the patch goes on."""
        clone, texts = self.release.clone, dict[str, str | None]()
        builds_on = self._builders(patch)
        if not clone or not builds_on:
            return ()
        for entry in reversed(builds_on):  # the oldest first
            wanted = [change for change in _changes_of(clone, entry) if {change.before, change.after} & patch.paths]
            tried = attempt(wanted, over(texts, self.text), self.base)
            if not tried.fits:
                return ()
            texts |= tried.texts
        fits = attempt(changes, over(texts, self.text), self.base).fits
        return tuple(str(entry) for entry in builds_on) if fits else ()

    def _builds_on(self, patch: Patch) -> tuple[str, ...]:
        return tuple(str(entry) for entry in self._builders(patch))

    def _builders(self, patch: Patch) -> list[Entry]:
        """Return the commits that wrote the lines that the patch changes and the release lacks; the newest first."""
        clone, origin = self.release.clone, self._origin(patch)
        if not clone or not origin:
            return []
        found: dict[str, Entry] = {}
        for change in patch.judged:
            text = self.text(change.before or "")
            if not change.before or text is None:
                continue
            there = set(lines_of(text))
            rows = [
                hunk.line + at
                for hunk in change.hunks
                for at, line in enumerate(hunk.before)
                if line not in there and line.strip()
            ]
            wrote = clone.writers(origin, change.before, rows, without=self.release.commit)
            found |= {entry.commit: entry for entry in wrote.values()}
        order = {entry.commit: at for at, entry in enumerate(clone.log(origin))} if found else {}
        return sorted(found.values(), key=lambda entry: order.get(entry.commit, 0), reverse=True)

    # --- where ---

    def _places(self, patch: Patch, tried: Attempt) -> tuple[Place, ...]:
        rows = {misfit: _lines(misfit) for misfit in tried.misfits}
        wrote = {
            file: self._writers(patch, file, [row for misfit, of in rows.items() if misfit.file == file for row in of])
            for file in {misfit.file for misfit in rows}
        }
        return tuple(
            Place(
                misfit.file,
                misfit.hunk,
                misfit.line,
                misfit.reason,
                "".join(misfit.ours),
                "".join(misfit.theirs),
                commits=tuple(dict.fromkeys(str(wrote[misfit.file][row]) for row in of if row in wrote[misfit.file])),
            )
            for misfit, of in rows.items()
        )

    def _writers(self, patch: Patch, file: str, rows: Sequence[int]) -> dict[int, Entry]:
        """Return the commits that wrote lines of a file that no patch of the stack has changed."""
        clone = self.release.clone
        if not clone or file in self.texts:
            return {}
        return clone.writers(self.release.commit, file, rows, without=self._origin(patch))


def _lines(misfit: Misfit) -> range:
    """Return the lines of the release that a place is about."""
    return range(misfit.line, misfit.line + max(1, len(misfit.ours))) if misfit.line else range(0)


def _changes_of(clone: Clone, entry: Entry) -> tuple[FileChange, ...]:
    """Return what a commit changes; nothing if it is no patch, as a merge."""
    try:
        return read(clone.patch(entry.commit)).changes
    except LexError:
        return ()


@dataclass(frozen=True)
class _Here:
    """What a release has of a hunk."""

    file: str
    hunk: int
    found: Found
    exact: bool = False


@dataclass(frozen=True)
class _Presence:
    """Whether a release has a patch. ``outcome`` is None if it has not."""

    outcome: Outcome | None
    evidence: str = ""
    since: str = ""
    places: tuple[Place, ...] = ()
    """The hunks that it has, if not all."""


def _hunks(found: Sequence[_Here]) -> str:
    """Return ``hunk 2 of a.cu``, or ``9 hunks of a.cu, b.cu and c.cu``."""
    files = shortened(here.file for here in found)
    return (
        f"hunk {found[0].hunk} of {files}"
        if len(found) == 1 and found[0].hunk
        else f"{counted(len(found), 'hunk')} of {files}"
    )


def version_of(tag: str, target: Target | None) -> str:
    """Return the version that a tag names, as the tags of a target are formed."""
    begin = target.tag.partition("{")[0] if target else "v"
    return tag.removeprefix(begin or "v")


def _since(steps: Sequence[Step], releases: Sequence[Release]) -> Iterator[Step]:
    """Yield the steps. Those of patches that are in name the first release that has it, if no log says more."""
    versions = {release.name: (release.target, release.version) for release in releases}
    for step in steps:
        target, version = versions[step.release]
        having = [
            Version(versions[other.release][1])
            for other in steps
            if other.patch == step.patch
            and other.outcome is Outcome.IN
            and versions[other.release][0] is target
            and is_version(versions[other.release][1])
        ]
        if step.outcome is Outcome.IN and not step.since and is_version(version) and len(having) > 1:
            yield replace(step, since=f"{min(having)} or before")
        else:
            yield step
