"""Which commit of a log a patch is, and whether it was taken back."""

from pathlib import Path

import pytest
from project import Project

from fp4patch.edits.patch_file import Commit, read
from fp4patch.sources.history import Clone, Entry
from fp4patch.stack.landing import By, is_revert, landing

FIX = Commit(subject="Fix the guard of FP4 on SM121 (#1234)", pull_request=1234, changes=())


def entries(*subjects: str | tuple[str, str]) -> list[Entry]:
    rows = [(row, "") if isinstance(row, str) else row for row in subjects]
    return [Entry(f"{number:040x}", *row) for number, row in enumerate(rows, 0xABCDEF0)]


@pytest.mark.parametrize(
    ("log", "by"),
    [
        (["Fix the guard of FP4 on SM121 (#1234)"], By.PULL_REQUEST),
        (["Fix the guard of FP4 on SM121 (#1234) (#1300)"], By.SUBJECT),
        (["Fix the guard of FP4 on SM121"], By.SUBJECT),
        (["cherry-pick: #1234 (Fix the guard) and #7 (#1300)"], By.PULL_REQUEST),
        (["Merge pull request #1234 from someone/branch"], By.PULL_REQUEST),
        (["Fix a fault of #1234 (#1240)"], None),
        (["Something else (#1234)"], None),
        (["Fix the guard of FP4 on SM121 (#1234)", 'Revert "Fix the guard of FP4 on SM121 (#1234)" (#1250)'], None),
        (["Fix the guard of FP4 on SM121 (#1234)", 'Revert "Fix the guard of FP4 on SM…" (#1250)'], None),
        (
            [
                "Fix the guard of FP4 on SM121 (#1234)",
                ("Back", "This reverts commit 000000000000000000000000000000000abcdef1."),
            ],
            None,
        ),
        (["Fix the guard of FP4 on SM121 (#1234)", ("Back", "Reverts owner/name#1234")], None),
        (["Fix the guard of FP4 on SM121 (#1234)", "revert: #1234 and #17 (#1250)"], None),
        (["Fix the guard of FP4 on SM121 (#1234)", "[Core] Revert PR 1234 (#1250)"], None),
        (["Fix the guard of FP4 on SM121 (#1234)", "Revert PR 999 (#1250)"], By.PULL_REQUEST),
        (["Fix the guard of FP4 on SM121 (#1234)", "Remove what was reverted by #1234 (#1250)"], By.PULL_REQUEST),
        (
            [
                "Fix the guard of FP4 on SM121 (#1234)",
                'Revert "Fix the guard of FP4 on SM121 (#1234)" (#1250)',
                'Revert "Revert "Fix the guard of FP4 on SM121 (#1234)" (#1250)" (#1260)',
            ],
            By.PULL_REQUEST,
        ),
        (
            [
                "Fix the guard of FP4 on SM121 (#1234)",
                'Revert "Fix the guard of FP4 on SM121 (#1234)" (#1250)',
                "Fix the guard of FP4 on SM121 (#1260)",
            ],
            By.SUBJECT,
        ),
    ],
    ids=str,
)
def test_a_log_has_a_patch_or_not(log: list[str | tuple[str, str]], by: By | None) -> None:
    found = landing(FIX, entries("Another one (#1)", *log, "Another two (#2)"))
    assert (found.by if found and not found.reverted else None) is by


def test_the_revert_is_named() -> None:
    found = landing(FIX, entries(FIX.subject, f'Revert "{FIX.subject}" (#1250)'))
    assert found
    assert found.reverted
    assert found.reverted.subject.endswith("(#1250)")


def test_a_commit_that_a_patch_only_mentions_is_not_the_patch() -> None:
    log = entries("The commit that brought the fault (#1000)")
    named = Commit(subject="Mend it", description="A fault of commit abcdef0", commit=log[0].commit, changes=())
    assert landing(named, log) is None


@pytest.mark.parametrize(
    ("subject", "description", "expected"),
    [
        ('Revert "A"', "", True),
        ("fix: revert what deadlocks", "", True),
        ("Back", "This reverts commit 0123456789abcdef.", True),
        ("Guard", "as before the revert", False),
    ],
)
def test_a_patch_says_that_it_takes_another_one_back(subject: str, description: str, expected: bool) -> None:
    assert is_revert(Commit(subject=subject, description=description, changes=())) is expected


def test_git_is_the_witness(tmp_path: Path) -> None:
    """git revert writes what is read here, and a commit is found in a bare clone by its own mail."""
    project = Project(tmp_path / "project")
    project.commit({"a.h": "int a;\n"}, "First")
    fix = project.commit({"a.h": "int a;\nint b;\n"}, "Fix")
    mail = project.mail()
    back = project.revert(fix)
    again = project.revert(back)
    project.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    (commit,) = read(mail).commits
    clone = Clone(tmp_path / "bare")
    found = [landing(commit, clone.log(at)) for at in (f"{fix}^", fix, back, again)]
    assert [bool(one and not one.reverted) for one in found] == [False, True, False, True]
    assert found[1]
    assert found[1].by is By.COMMIT


@pytest.mark.parametrize(
    ("log", "is_sure"),
    [
        (["Fix the guard of FP4 on SM121 (#7)"], False),
        (["Fix the guard of FP4 on SM121 (#1234)", "Fix the guard of FP4 on SM121 (#7)"], True),
        (["Fix the guard of FP4 on SM121 (#1234) (#7)"], True),
        (["Fix the guard of FP4 on SM121"], True),
        (
            [
                "Fix the guard of FP4 on SM121 (#1234)",
                'Revert "Fix the guard of FP4 on SM121 (#1234)" (#1250)',
                "Fix the guard of FP4 on SM121 (#1260)",
            ],
            True,
        ),
    ],
)
def test_a_subject_of_another_pull_request_is_sure_behind_a_revert_alone(log: list[str], is_sure: bool) -> None:
    found = landing(FIX, entries(*log))
    assert found
    assert found.is_sure is is_sure
