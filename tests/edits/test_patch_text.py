"""The writer of patch files: the reader and git read what it writes, and find the same changes."""

import subprocess
from dataclasses import replace
from pathlib import Path

from git_trees import ENVIRONMENT, Tree, applied, commit, found, git, put, repository, trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fp4patch.edits.patch_file import Commit, FileChange, read
from fp4patch.edits.patch_text import git_diff, patch_text

__all__ = ["repository"]


def bare(change: FileChange) -> FileChange:
    """Return a change without what depends on the file that it stands in."""
    return replace(change, line=0, text="")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees, after=trees, moved=st.booleans())
def test_what_is_written_is_read_again_and_git_applies_it(
    repository: Path, before: Tree, after: Tree, moved: bool
) -> None:
    if moved:
        after = {**after, **{f"moved/{path}": (data + b"more\n", x) for path, (data, x) in before.items()}}
    if before == after:
        return
    old, new = commit(repository, before, "before"), commit(repository, after, "after")
    changes = read(git(repository, "diff", "-C20%", "--find-copies-harder", old, new)).changes
    text = git_diff(changes)
    assert [bare(change) for change in read(text.encode()).changes] == [bare(change) for change in changes]
    assert applied(before, read(text.encode()).changes) == after
    put(repository, before)
    subprocess.run(["git", "apply", "-"], cwd=repository, env=ENVIRONMENT, input=text.encode(), check=True)
    assert found(repository) == after


def test_the_head_is_read_again() -> None:
    (change,) = read(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n").changes
    made = Commit(
        subject="Count: ü (#5)",
        author="A B <a@b>",
        description="Why.\n\nAnd how: so.",
        link="https://example.org/x",
        changes=(change,),
    )
    (again,) = read(patch_text(made).encode()).commits
    assert (again.subject, again.author, again.description, again.link) == (
        made.subject,
        made.author,
        made.description,
        made.link,
    )
    assert read(patch_text(Commit(changes=(change,))).encode()).commits[0].subject == ""
