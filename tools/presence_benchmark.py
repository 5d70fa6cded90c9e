"""How often ``fp4patch plan`` is right on the history of projects: commits, each put on releases that have it or not.

    python -m tools.presence_benchmark CLONE... --commits 105

A clone is a git directory with its tags. The truth is its log: a commit is in a release if it is an ancestor, or a
commit with its subject and the number of its pull request is, and no revert of it comes after. Of each commit four
releases are tried: the newest, the first that has it, and two before that. Reverts, and what they take back, are always
among the commits. The table has what the text of the patch says by itself, what it says where the text that it was made
for is known and no log, and what it says with the clone's log.
"""

import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import click
from packaging.version import Version

from fp4patch.core.lex_error import LexError
from fp4patch.core.release import is_version
from fp4patch.edits.patch_file import read
from fp4patch.sources.history import Clone, Entry
from fp4patch.stack.attempt import attempt, merge
from fp4patch.stack.files import Release
from fp4patch.stack.plan import Bases, OnRelease, Outcome, Patch

_HARD = re.compile(r"\b(?:revert|reland|reapply)", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """A commit, and the releases that it is tried on."""

    entry: Entry
    tags: dict[str, bool]
    """Each with whether it has the commit, by the log."""
    newest: str


class History:
    """The truth about a clone, from its log alone."""

    def __init__(self, clone: Clone, since: str) -> None:
        self.clone = clone
        names = {tag: tag.removeprefix("v") for tag in clone.tags}
        stable = [tag for tag, name in names.items() if is_version(name) and not Version(name).is_prerelease]
        ordered = sorted(stable, key=lambda tag: Version(names[tag]))
        self.tags = ordered[ordered.index(since) :] if since else ordered[-40:]
        self.commits = {tag: clone.commit(tag) for tag in self.tags}

    @cache  # noqa: B019 - it lives as long as the program
    def in_by_title(self, tag: str) -> dict[str, Entry]:
        """Return the commits of a release by their subjects, without those that a later one takes back."""
        found: dict[str, Entry] = {}
        taken: dict[str, dict[str, Entry]] = {}  # by the commit that took them back
        for entry in self.clone.log(self.commits[tag]):
            back: dict[str, Entry] = {}
            for title in _reverted(entry, found):
                other = found.pop(title)
                back |= taken.pop(other.commit, {})
                taken.setdefault(entry.commit, {})[title] = other
            found |= back
            for others in taken.values():  # the same title again is the commit once more
                again = {title for title in others if _untagged(title) == _untagged(entry.subject)}
                found |= {title: others.pop(title) for title in again}
            found[entry.subject] = entry
        return found

    def cases(self, number: int, seed: int) -> Iterator[Case]:
        """Yield commits of the main branch that have releases on both sides, and all reverts with what they revert."""
        first, last = self.commits[self.tags[0]], self.clone.commit("HEAD")
        before = {entry.commit for entry in self.clone.log(first)}
        entries = [entry for entry in self.clone.log(last) if entry.commit not in before]
        known = {entry.subject for entry in entries}
        reverted = {name for name in known if f'Revert "{name.rpartition(" (#")[0]}' in "\n".join(known)} - {""}
        hard = [entry for entry in entries if _HARD.search(entry.subject) or entry.subject in reverted]
        inside = [entry for entry in entries if self.has(self.tags[-1], entry) and not self.has(self.tags[0], entry)]
        some = random.Random(seed).sample(inside, min(number, len(inside)))  # noqa: S311 - no secret
        chosen = {entry.commit: entry for entry in some + hard}
        for entry in chosen.values():
            having = [tag for tag in self.tags if self.has(tag, entry)]
            at = self.tags.index(having[0]) if having else len(self.tags)
            tried = [self.tags[-1], *having[:1], *(self.tags[n] for n in (at - 1, at - 4) if n >= 0)]
            yield Case(entry, {tag: tag in having for tag in tried}, self.tags[-1])

    @cache  # noqa: B019 - the same
    def picked(self, tag: str) -> frozenset[str]:
        """Return the numbers of pull requests that the subjects of cherry-picks name."""
        picks = [entry for entry in self.clone.log(self.commits[tag]) if "cherry-pick" in entry.subject.casefold()]
        return frozenset(number for entry in picks for number in re.findall(r"#(\d+)", entry.subject))

    def has(self, tag: str, entry: Entry) -> bool:
        """Tell whether a release has a commit, one of its subject, or a cherry-pick of its number."""
        number = re.search(r"\(#(\d+)\)$", entry.subject)
        return entry.subject in self.in_by_title(tag) or bool(number and number[1] in self.picked(tag))


def _reverted(entry: Entry, found: dict[str, Entry]) -> list[str]:
    """Return the subjects that a commit takes back."""
    hashes = tuple(re.findall(r"This reverts commit ([0-9a-f]{7,40})", entry.body))
    gone = {title for title, other in found.items() if other.commit.startswith(hashes)}
    if quoted := re.match(r'Revert "(.{15,}?)(?:…|"|$)', entry.subject):
        gone |= {title for title in found if title.startswith(quoted[1])}
    elif re.match(r"\W*(\w+\W+)?revert", entry.subject, re.IGNORECASE):
        numbers = re.findall(r"#(\d+)|PR (\d+)", entry.subject.rpartition("(#")[0])
        gone |= {title for title in found if title.endswith(tuple(f"(#{one or other})" for one, other in numbers))}
    return sorted(gone)


def _untagged(subject: str) -> str:
    return subject.rpartition(" (#")[0] or subject


def git_merge(patch: Patch, release: Release, bases: Bases) -> str:
    """Return what git's merge of the files that decide says: ``nothing`` changes, ``changes``, or ``conflicts``."""
    said = {"nothing"}
    for change in patch.judged:
        ours = release.text(change.path)
        before = bases(change) if change.before else ""
        after = "".join(line for hunk in change.hunks for line in hunk.after)
        if before:
            made = attempt([replace(change, before=change.path, blob_before="")], lambda _: before, lambda _: before)  # noqa: B023
            after = made.texts.get(change.path) or ""
        if ours is None or before is None:
            said.add("nothing" if ours is None and change.after is None else "conflicts")
            continue
        text, conflicts = merge(before, ours, after)
        said.add("conflicts" if conflicts else "nothing" if text == ours else "changes")
    return "conflicts" if "conflicts" in said else "changes" if "changes" in said else "nothing"


def git_applies(patch: Patch, release: Release, left_out: tuple[str, ...]) -> bool:
    """Tell whether ``git apply --check`` takes a patch on the files of a release."""
    diff = "".join(change.text for change in patch.changes if change.path not in left_out)
    with tempfile.TemporaryDirectory() as folder:
        for path in patch.paths:
            if (text := release.text(path)) is not None:
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode("utf-8", "surrogateescape"))
        command = ["git", "apply", "--check"]
        data = diff.encode("utf-8", "surrogateescape")
        return subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False).returncode == 0


def judged(case: Case, clone: Clone, counts: Counter[str], wrong: list[str]) -> None:
    """Count what the plan says of one commit on its releases."""
    try:
        commit = read(clone.patch(case.entry.commit)).commits[0]
    except LexError:
        counts["commits that are no patch: merges, empty ones, submodules alone"] += 1
        return
    counts["commits"] += 1
    patch = Patch("patch", commit.subject, commit=commit)
    for tag, is_in in case.tags.items():
        at = clone.commit(tag)  # the texts of a release are read once for both
        bare = Release(tag, lambda path, at=at: clone.read(at, path))  # type: ignore[misc]
        whole = replace(bare, clone=clone, commit=at)
        bases = Bases([whole])
        alone = OnRelease(bare, [patch], Bases([bare])).steps[0]
        based = OnRelease(bare, [], bases).presence(patch)
        told = OnRelease(whole, [], bases).presence(patch)
        where = f"{case.entry.commit[:9]} on {tag}: {case.entry.subject[:60]}"
        counts["pairs"] += 1
        counts[f"{'in' if is_in else 'not in'} by the log"] += 1
        for kind, step in (("text alone", alone), ("with its base", based), ("with the log", told)):
            if step.outcome is Outcome.IN and not is_in:
                same = git_merge(patch, whole, bases) == "nothing"
                name = "in, not by the log, and git's merge changes nothing" if same else "FALSE in"
                counts[f"{kind}: {name}"] += 1
                wrong.append(f"{name} ({kind}): {where}")
            if is_in and tag == case.newest:
                counts[f"{kind}: on the newest: {step.outcome or 'not in'}"] += 1
                if step.outcome is not Outcome.IN and kind == "with the log":
                    wrong.append(f"not recognised: {where}: {step.evidence}")
        counts["in by the log, on the newest"] += is_in and tag == case.newest
        if alone.outcome is Outcome.APPLIES:
            counts["applies"] += 1
            merged = git_merge(patch, whole, bases)
            if not git_applies(patch, bare, alone.left_out):
                counts["FALSE applies: git apply --check refuses"] += 1
                wrong.append(f"FALSE applies: {where}")
            if is_in:
                counts["applies, and is in by the log: its text is gone again"] += 1
                wrong.append(f"applies, and is in by the log: {where}")
            counts[f"applies, and git's merge: {merged}"] += 1


@click.command()
@click.argument("clones", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--commits", default=105, help="Commits of each project, beside the reverts.")
@click.option("--since", default="", help="The oldest tag. Default: the last 40 releases.")
@click.option("--seed", default=58)
def main(clones: tuple[Path, ...], commits: int, since: str, seed: int) -> None:
    """Print the counts for all clones, and each case that is wrong."""
    counts, wrong = Counter[str](), list[str]()
    try:
        for path in clones:
            clone = Clone(path)
            for number, case in enumerate(History(clone, since).cases(commits, seed), 1):
                judged(case, clone, counts, wrong)
                click.echo(f"{path}: {number} commits", err=True)
    finally:  # of a run that is interrupted, what it has so far
        for name, number in sorted(counts.items()):
            click.echo(f"{number:6} {name}")
        for line in wrong:
            click.echo(f"       {line}")
    sys.exit(any(name.startswith("FALSE") or ": FALSE" in name for name in counts))


if __name__ == "__main__":
    main()
