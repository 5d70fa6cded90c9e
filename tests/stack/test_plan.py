"""What becomes of a stack on releases."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from project import Project

from fp4patch.edits.patch_file import read
from fp4patch.sources.history import Clone
from fp4patch.stack.compose import composed
from fp4patch.stack.files import Release
from fp4patch.stack.plan import Outcome, Patch, Plan, plan

BASE = "".join(f"int v{number}() {{\n  return {number};\n}}\n\n" for number in range(12))


def with_body(text: str, number: int, body: str) -> str:
    """The text with another body of one function."""
    old = f"int v{number}() {{\n  return {number};\n"
    assert old in text
    return text.replace(old, f"int v{number}() {{\n{body}  return {number};\n")


GUARD = "  if (is_sm121()) {\n    throw_unless(ready(), 5);\n  }\n"
GUARDED = with_body(BASE, 5, GUARD)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.commit({"src/a.cu": BASE, "tests/t.cu": "int t;\n"}, "First", "v1.0")
    return made


def patch(project: Project, name: str, *commits: str) -> Patch:
    mails = b"".join(project.mail(commit) for commit in commits or ("HEAD",))
    commit = composed(read(mails).commits)
    return Patch(name, commit.subject, commit=commit)


def on_side(project: Project, name: str, files: dict[str, str | None], subject: str, of: str = "v1.0") -> Patch:
    """A patch that is a commit of a branch of its own."""
    project.git("checkout", "-q", of)
    project.commit(files, subject)
    made = patch(project, name)
    project.git("checkout", "-q", "main")
    return made


def planned(project: Project, patches: Sequence[Patch], *tags: str, log: bool = False) -> Plan:
    clone = Clone(project.folder)
    releases = []
    for tag in tags:
        commit = clone.commit(tag)
        assert commit
        own = {"clone": clone, "commit": commit} if log else {}
        releases.append(Release(f"x=={tag[1:]}", lambda path, at=commit: clone.read(at, path), version=tag[1:], **own))  # type: ignore[arg-type,misc]
    return plan("stack", patches, releases)


def outcomes(made: Plan) -> list[Outcome]:
    return [step.outcome for step in made.steps]


@pytest.mark.parametrize("log", [False, True])
def test_a_patch_goes_on_until_a_release_has_it(project: Project, log: bool) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED}, "Guard the fifth one on SM121 (#12)")
    project.commit({"src/a.cu": with_body(BASE, 1, "  one();\n")}, "Other", "v1.1")
    project.commit({"src/a.cu": with_body(GUARDED, 1, "  one();\n")}, "Guard the fifth one on SM121 (#12)", "v1.2")
    made = planned(project, [fix], "v1.0", "v1.1", "v1.2", log=log)
    assert outcomes(made) == [Outcome.APPLIES, Outcome.APPLIES, Outcome.IN]
    assert made.settled
    assert made.steps[2].since == ("1.2" if log else "")
    assert "in the log" in made.steps[2].evidence if log else made.steps[2].evidence == "its reverse fits exactly"


def test_what_was_rewritten_since_is_in_by_the_log_alone(project: Project) -> None:
    project.commit({"src/a.cu": GUARDED}, "Guard the fifth one on SM121 (#12)", "v1.1")
    fix = patch(project, "fix")
    project.commit({"src/a.cu": with_body(BASE, 5, "  require(ready());\n")}, "Rewrite it", "v1.2")
    assert outcomes(planned(project, [fix], "v1.2")) == [Outcome.CONFLICTS]
    (step,) = planned(project, [fix], "v1.2", log=True).steps
    assert (step.outcome, step.since) == (Outcome.IN, "1.1")


@pytest.mark.parametrize("said", [True, False])
def test_what_was_taken_back_is_not_in(project: Project, said: bool) -> None:
    """By a revert that says so, and by a commit that does not."""
    fixed = project.commit({"src/a.cu": GUARDED}, "Guard the fifth one on SM121 (#12)", "v1.1")
    fix = patch(project, "fix")
    back = project.revert(fixed, "v1.2") if said else project.commit({"src/a.cu": BASE}, "Tidy up", "v1.2")
    taking_back = patch(project, "back")
    project.revert(back, "v1.3")
    made = planned(project, [fix], "v1.1", "v1.2", "v1.3", log=True)
    assert outcomes(made) == [Outcome.IN, Outcome.APPLIES, Outcome.IN]
    assert ("was taken back" if said else "is gone again") in made.steps[1].evidence
    text = planned(project, [fix], "v1.1", "v1.2", "v1.3")
    assert outcomes(text) == [Outcome.IN, Outcome.APPLIES, Outcome.IN]
    if said:  # a release that never had the guard is as after the revert, and has not the revert
        assert outcomes(planned(project, [taking_back], "v1.0")) == [Outcome.NOTHING]


def test_a_patch_that_only_takes_away_is_never_said_to_be_in(project: Project) -> None:
    removal = on_side(project, "removal", {"src/a.cu": BASE.replace("  return 5;\n", "")}, "Remove the fifth line")
    project.commit({"src/a.cu": BASE.replace("  return 5;\n", "")}, "Something else", "v1.1")
    made = planned(project, [removal], "v1.0", "v1.1")
    assert outcomes(made) == [Outcome.APPLIES, Outcome.NOTHING]


def test_a_merge_is_used_where_the_base_is_known(project: Project) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED}, "Guard the fifth one")
    project.commit({"src/a.cu": BASE.replace("}\n\nint v5()", "}\n// five\n\nint v5()")}, "Comment", "v1.1")
    assert outcomes(planned(project, [fix], "v1.1")) == [Outcome.CONFLICTS]
    made = planned(project, [fix], "v1.0", "v1.1")  # the first release is the base
    assert outcomes(made) == [Outcome.APPLIES, Outcome.MERGES]
    assert [(place.file, place.hunk) for place in made.steps[1].places] == [("src/a.cu", 1)]


def test_a_conflict_names_place_sides_and_commits(project: Project) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED}, "Guard the fifth one")
    project.commit({"src/a.cu": with_body(BASE, 5, "  other();\n")}, "Call another one (#7)", "v1.1")
    (step,) = planned(project, [fix], "v1.1", log=True).steps
    assert step.outcome is Outcome.CONFLICTS
    (place,) = step.places
    assert (place.file, place.line, place.release) == ("src/a.cu", 22, "  other();\n")
    assert place.patch == GUARD
    assert [commit.partition(" ")[2] for commit in place.commits] == ["Call another one (#7)"]


def test_a_part_that_is_in_is_named(project: Project) -> None:
    both = with_body(GUARDED, 9, "  if (is_sm121()) {\n    count_of_nine(1);\n  }\n")
    fix = on_side(project, "fix", {"src/a.cu": both}, "Guard two")
    project.commit({"src/a.cu": with_body(GUARDED, 9, "  other();\n")}, "The first, and another", "v1.1")
    (step,) = planned(project, [fix], "v1.1").steps
    assert step.outcome is Outcome.PARTLY
    assert [place.hunk for place in step.places if place.is_in] == [1]
    assert [place.hunk for place in step.places if not place.is_in] == [2]


def test_needs_are_found_by_trying(project: Project) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.commit({"src/a.cu": GUARDED}, "Guard the fifth one")
    first = patch(project, "0001-first")
    project.commit({"src/a.cu": GUARDED.replace("ready(), 5", "ready() && more(), 5")}, "And more")
    second = patch(project, "0002-second")
    project.git("checkout", "-q", "main")
    made = planned(project, [first, second], "v1.0")
    assert [(step.outcome, step.needs) for step in made.steps] == [
        (Outcome.APPLIES, ()),
        (Outcome.APPLIES, ("0001",)),
    ]
    wrong_order = planned(project, [second, first], "v1.0")
    assert [(step.outcome, step.needs) for step in wrong_order.steps] == [
        (Outcome.NEEDS, ("0001",)),
        (Outcome.APPLIES, ()),
    ]
    project.commit({"src/a.cu": with_body(BASE, 5, "  other();\n")}, "Other", "v1.1")
    stuck = planned(project, [first, second], "v1.1")
    assert [(step.outcome, step.needs) for step in stuck.steps] == [
        (Outcome.CONFLICTS, ()),
        (Outcome.NEEDS, ("0001",)),
    ]
    # The commit that the stack lacks is in the clone.
    (alone,) = planned(project, [second], "v1.0", log=True).steps
    assert alone.outcome is Outcome.NEEDS
    assert [need.partition(" ")[2] for need in alone.needs] == ["Guard the fifth one"]


def test_several_commits_of_one_pull_request_are_one_patch(project: Project) -> None:
    one = project.commit({"src/a.cu": GUARDED}, "Guard the fifth one")
    two = project.commit({"src/a.cu": GUARDED.replace("ready()", "set()")}, "Review")
    project.git("checkout", "-q", "v1.0")
    project.commit({"src/a.cu": GUARDED.replace("ready()", "set()")}, "All of it (#30)", "v1.1")
    made = planned(project, [patch(project, "pr", one, two)], "v1.0", "v1.1")
    assert outcomes(made) == [Outcome.APPLIES, Outcome.IN]


def test_a_release_without_its_files_is_not_for_it(project: Project) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED}, "Guard the fifth one")
    project.commit({"src/a.cu": None, "src/b.cu": BASE}, "Another layout", "v2.0")
    (step,) = planned(project, [fix], "v2.0").steps
    assert step.outcome is Outcome.NOT_FOR
    assert not planned(project, [fix], "v2.0").settled


def test_tests_and_documents_do_not_decide(project: Project) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED, "tests/t.cu": "int t;\nint u;\n"}, "Guard, with a test")
    project.commit({"tests/t.cu": "long t;\n"}, "Other test", "v1.1")
    (step,) = planned(project, [fix], "v1.1").steps
    assert (step.outcome, step.left_out) == (Outcome.APPLIES, ("tests/t.cu",))


def test_a_stack_is_put_on_in_its_order(project: Project) -> None:
    """What does not go on is left out, and those behind it are tried without it."""
    project.git("checkout", "-q", "-b", "side")
    texts = [GUARDED, with_body(GUARDED, 7, "  seven();\n")]
    patches = []
    for number, text in enumerate(texts, 1):
        project.commit({"src/a.cu": text}, f"Number {number}")
        patches.append(patch(project, f"{number:04}-n"))
    project.git("checkout", "-q", "main")
    project.commit({"src/a.cu": with_body(BASE, 5, "  other();\n")}, "Other", "v1.1")
    assert outcomes(planned(project, patches, "v1.1")) == [Outcome.CONFLICTS, Outcome.APPLIES]


def test_since_is_the_first_of_the_releases_without_a_log(project: Project) -> None:
    fix = on_side(project, "fix", {"src/a.cu": GUARDED}, "Guard the fifth one")
    project.commit({"src/a.cu": GUARDED}, "Guard it", "v1.1")
    project.commit({"src/b.cu": ""}, "Next", "v1.2")
    made = planned(project, [fix], "v1.1", "v1.2")
    assert [step.since for step in made.steps] == ["1.1 or before", "1.1 or before"]
