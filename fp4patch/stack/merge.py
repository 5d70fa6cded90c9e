"""Three-way merges of patches onto a release that they were not made for, where the text of their own is known.

The base of a file is the blob that the patch names, in a clone; or the file of the commit or the release that the
stack names. The patch must apply to it exactly. Git merges (``git merge-file``); for what it calls a conflict, each
hunk may find its place by its lines, or in C++ by its tokens. The result is a diff of this release, which is applied
in exact context like any other. Whatever remains is a conflict, and is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.outside import OutsidePatch, with_changes
from fp4patch.catalog.target import AS_UPSTREAM, Layout, Target
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.lex_error import LexError
from fp4patch.core.progress import silent
from fp4patch.core.release import is_version
from fp4patch.core.results import Drift, NothingToDo, Problem, Rewritten, State
from fp4patch.core.wording import counted
from fp4patch.edits.diff import File, changed
from fp4patch.edits.language import language
from fp4patch.edits.patch_file import FileChange, read
from fp4patch.edits.patch_text import git_diff
from fp4patch.edits.sources import LANGUAGES
from fp4patch.sources.checkout import Checkout
from fp4patch.sources.git import MARK, merge_file
from fp4patch.stack.files import in_archive
from fp4patch.stack.tokens import by_tokens
from fp4patch.tree.files import unified
from fp4patch.tree.fold import pristine_file
from fp4patch.tree.locking import locked

ReadFile = Callable[[str], File | None]
"""Returns a file of a tree; None if there is none."""
_HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Bases:
    """Where the files are that patches were made for."""

    target: Target
    clones: tuple[Checkout, ...]
    layout: Layout = AS_UPSTREAM
    """That of the tree."""

    def text(self, change: FileChange, base: str) -> str | None:
        """Return the file before a change, to which this applies exactly; None if it is not known."""
        for content in self._candidates(change, base):
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if _patched(change, text):
                return text
        return None

    def _candidates(self, change: FileChange, base: str) -> Iterable[bytes]:
        path = self.layout.in_repository(self.layout.place(change.before or ""))
        for clone in self.clones:
            names = [change.blob_before] if _HASH.fullmatch(change.blob_before) else []
            names += [f"{base}:{path}"] if _HASH.fullmatch(base) else []
            yield from (content for name in names if (content := clone.blob(name)) is not None)
        for archive in self.target.archives if is_version(base) else ():
            if archive.version == base.removeprefix("v"):
                content = in_archive(self.target, archive, {path}, silent).read(path)
                yield from [] if content is None else [content]


@dataclass(frozen=True)
class Merged:
    """What a stack comes to on a release, by exact context or by a merge."""

    patches: tuple[OutsidePatch, ...]
    """Those that change something, in their order; the merged ones have the diff of this release."""
    merged: tuple[str, ...] = ()
    """Names of those that were merged."""
    retired: tuple[str, ...] = ()
    """Names of those whose merge changes nothing: the release has their changes."""
    problems: tuple[Problem, ...] = ()
    """Conflicts, each with its place and both sides."""


@dataclass
class Tree:
    """A tree with the patches that are in already."""

    read_file: ReadFile
    files: dict[str, File | None] = field(default_factory=dict)

    def read(self, path: str) -> File | None:
        """Return a file as the patches before left it."""
        return self.files[path] if path in self.files else self.read_file(path)


def merge_stack(patches: Sequence[OutsidePatch], read_file: ReadFile, bases: Bases) -> Merged:
    """Return a stack as it applies to a tree of which ``read_file`` returns the pristine files."""
    tree = Tree(read_file)
    done = list[OutsidePatch]()
    problems = list[Problem]()
    merged, retired = list[str](), list[str]()
    for patch in patches:
        changes = patch.commit.changes
        exact = changed(changes, tree.read)
        kinds = {type(outcome) for outcome in exact.outcomes}
        if kinds in ({Rewritten}, {NothingToDo}):
            tree.files |= exact.files
            done.append(patch)
            continue
        made = list[FileChange]()
        for change, outcome in zip(changes, exact.outcomes, strict=True):
            if isinstance(outcome, Rewritten):
                made.append(change)
            elif isinstance(outcome, Drift):
                result = merge_change(change, tree.read, bases.text(change, patch.base))
                if isinstance(result, Problem):
                    problems.append(replace(result, patch=patch.id))
                elif result:
                    made.append(result)
        after = changed(made, tree.read)
        if not problems:
            assert all(isinstance(outcome, Rewritten) for outcome in after.outcomes)
        tree.files |= after.files
        if made:
            done.append(with_changes(patch, made, merged=True))
        (merged if made else retired).append(patch.name)
    return Merged(tuple(done), tuple(merged), tuple(retired), tuple(problems))


def merge_onto(
    trees: Sequence[Identified], patches: Sequence[OutsidePatch], clones: Sequence[Path]
) -> Mapping[Path, Merged]:
    """Return for each tree what the patches for it come to. Changes nothing.

    ``clones`` are repositories that may have the files that patches were made for; the one that a tree is in may, too.
    Refused: a conflict, or a tree that cannot be read.
    """
    repositories = [_clone(folder) for folder in clones]
    found = dict[Path, Merged]()
    for tree in trees:
        own = Checkout.around(tree.root / "x")
        layout = tree.target.layout_at(tree.root)
        bases = Bases(tree.target, (*repositories, *([own] if own else ())), layout)
        mine = [patch for patch in patches if patch.target in ("", tree.target.name)]
        with locked([tree]) as (held,):
            found[tree.root] = merge_stack(mine, lambda path: pristine_file(held, layout.place(path)), bases)  # noqa: B023
    if problems := [problem for merged in found.values() for problem in merged.problems]:
        raise Refused(
            f"{counted(len(problems), 'conflict')}; nothing was changed",
            problems=problems,
            help="take the patch for this release, carry a merge that you made by hand, or leave it out",
        )
    return found


def _clone(folder: Path) -> Checkout:
    if found := Checkout.at(folder.resolve()):
        return found
    raise UsageError(f"{folder} is no repository of git", help="name a clone of the project, with --clone")


def merge_change(change: FileChange, read_file: ReadFile, base: str | None) -> FileChange | Problem | None:
    """Return a change as one of the tree's file, made by a merge; None if the tree has it; or the conflict.

    ``base`` is the text of the file that the change was made for; None if nobody knows it.
    """
    path = change.before or change.path
    moved = change.before != change.after and change.after is not None and read_file(path) is None
    here = read_file(change.after or "") if moved else read_file(path)
    if here is None or change.before is None:
        expected = "a file to merge the change into" if change.before else "no file, since the patch makes one"
        return _conflict(path, expected, "none" if here is None else "another one")
    if base is None:
        return _conflict(path, "the text that the patch was made for (`--clone`, or `base` in stack.toml)", "none")
    theirs = _patched(change, base)
    if theirs is None:
        return _conflict(path, "the text that the patch was made for", "another one")
    if change.after is None:
        if here.text == base:
            return None if moved else change
        return _conflict(path, "the file that the patch deletes, as it was", "one that was changed since")
    return _merged_texts(change, base, here, theirs, moved=moved)


def _patched(change: FileChange, base: str) -> File | None:
    """Return what a change makes of the text that it was made for; None if it does not apply to it exactly."""
    done = changed([change], lambda path: File(base) if path == change.before else None)
    applies = isinstance(done.outcomes[0], Rewritten)
    return (done.files[change.path] or File("")) if applies else None


def _merged_texts(
    change: FileChange, base: str, here: File, theirs: File, *, moved: bool
) -> FileChange | Problem | None:
    """Return the merge of the tree's text and the patch's, or the conflict."""
    path = change.before or change.path
    text, conflicts = merge_file(base.encode(), here.text.encode(), theirs.text.encode())
    merged = text.decode() if not conflicts else _by_hunks(change, here.text)
    if merged is None:
        line, ours, others = _first_conflict(text.decode("utf-8", "replace"))
        return _conflict(path, f"a merge; the patch has {others}", f"a conflict; the release has {ours}", line)
    if not _reads(path, (here.text, theirs.text), merged):
        return _conflict(path, "a merge that reads as its language", "one that does not")
    return _as_change(change, here.text, merged, moved=moved)


def _by_hunks(change: FileChange, text: str) -> str | None:
    """Return a text with each hunk at the one place of its lines, or of its tokens; None if one has no such place."""
    for hunk in change.hunks:
        one = replace(change, before=change.path, after=change.path, hunks=(hunk,), mode_before="", mode_after="")
        done = changed([one], {change.path: File(text)}.get)
        if isinstance(done.outcomes[0], NothingToDo):
            continue
        file = done.files.get(change.path)
        found = file.text if file else by_tokens(text, hunk) if language(change.path) == "c++" else None
        if found is None:
            return None
        text = found
    return text


def _as_change(change: FileChange, before: str, after: str, *, moved: bool) -> FileChange | None:
    """Return the change from the tree's text to the merged one; None if there is none."""
    old = change.path if moved else change.before or change.path
    made = replace(change, before=old, blob_before="", blob_after="", hunks=())
    if before != after:
        head = f"diff --git a/x b/x\n{unified('x', before.encode(), after.encode())}"
        made = replace(made, hunks=read(head.encode()).changes[0].hunks)
    changes_something = made.hunks or made.before != made.after or made.sets_mode
    return replace(made, text=git_diff([made])) if changes_something else None


def _reads(path: str, sides: Iterable[str], merged: str) -> bool:
    """Tell whether a merged text can be read in its language; nothing is asked if a side cannot."""
    reader = LANGUAGES.get(language(path))
    if reader is None:
        return True
    try:
        for side in sides:
            reader.read(side)
    except (LexError, SyntaxError):
        return True
    try:
        reader.read(merged)
    except (LexError, SyntaxError):
        return False
    return True


def _first_conflict(text: str) -> tuple[int, str, str]:
    """Return the line of the first conflict, and what each side has there, from what git merged."""
    match = re.search(rf"^<{{{MARK}}}.*\n((?s:.*?))^={{{MARK}}}\n((?s:.*?))^>{{{MARK}}}", text, re.MULTILINE)
    if not match:
        return 1, "", ""
    line = text.count("\n", 0, match.start()) + 1
    return line, _excerpt(match[1]), _excerpt(match[2])


def _excerpt(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    more = f" and {len(lines) - 2} more lines" if len(lines) > 2 else ""
    return (" / ".join(f"`{line[:100]}`" for line in lines[:2]) or "nothing") + more


def _conflict(path: str, expected: str, found: str, line: int | None = None) -> Problem:
    return Problem(expected, found, file=path, line=line, state=State.DRIFTED)
