"""What a text has of a hunk."""

import pytest
from project import Project

from fp4patch.edits.patch_file import FileChange, read
from fp4patch.stack.presence import Found, HunkFound, hunks_in

C = """\
#include <cuda.h>

void first(int n) {
  int a = n;
  check(a);
  launch(a, n);
  finish(a);
}

void second(int n) {
  int a = n;
  check(a);
  launch(a, n);
  finish(a);
}
"""
GUARD = '  if (is_sm121(n)) {\n    throw_unless(n > 0, "small");\n  }\n'
PYTHON = """\
import os


class Runner:
    def first(self, x):
        y = x + 1
        self.check(y)
        return y

    def second(self, x):
        y = x + 1
        self.check(y)
        return y
"""


@pytest.fixture
def project(tmp_path):  # type: ignore[no-untyped-def]
    return Project(tmp_path / "project")


def change(project: Project, path: str, before: str, after: str) -> FileChange:
    project.commit({path: before}, "before")
    project.commit({path: after}, "after")
    (found,) = read(project.mail()).changes
    return found


def guarded(place: str = "first") -> str:
    """C with a guard in one of its functions."""
    head, name, tail = C.partition(f"void {place}(int n) {{\n  int a = n;\n")
    return head + name + GUARD + tail


def only(change: FileChange, text: str) -> Found:
    (found,) = hunks_in(change, text)
    return found.found


def test_its_own_sides_are_exact(project: Project) -> None:
    made = change(project, "a.cu", C, guarded())
    assert hunks_in(made, C) == [HunkFound(Found.BEFORE, exact=True)]
    assert hunks_in(made, guarded()) == [HunkFound(Found.IN, exact=True)]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("  if (is_sm121(n)) {\n", "  if (is_sm121(n))  // spark\n  {\n"),
        lambda text: text.replace("throw_unless(n > 0, ", "throw_unless(\n        n > 0,\n        "),
        lambda text: text.replace("  check(a);\n", "  check(a);\n  trace();\n"),
        lambda text: text.replace(
            "#include <cuda.h>", "#include <cuda.h>\n#include <new.h>\n\nint other() { return 1; }"
        ),
        lambda text: text.replace('"small");\n', '"small");\n    count();\n'),
    ],
    ids=["comment and brace", "broken line", "changed context", "moved down", "statement put between"],
)
def test_layout_comments_and_what_others_add_do_not_count(project: Project, edit) -> None:  # type: ignore[no-untyped-def]
    made = change(project, "a.cu", C, guarded())
    text = edit(guarded())
    assert text != guarded()
    assert only(made, text) is Found.IN


@pytest.mark.parametrize(
    "text",
    [
        guarded("second"),
        guarded().replace("n > 0", "n > 1"),
        guarded().replace("is_sm121(n)", "is_sm120(n)"),
        guarded().replace("void first", "void other"),
        "// nothing\n",
        "",
        "/* never closed",
    ],
    ids=["another function", "another number", "another name", "renamed function", "no code", "empty", "unreadable"],
)
def test_what_is_elsewhere_or_different_is_not_in(project: Project, text: str) -> None:
    made = change(project, "a.cu", C, guarded())
    assert only(made, text) is not Found.IN


def test_what_a_patch_takes_away_must_be_gone(project: Project) -> None:
    after = C.replace("  launch(a, n);\n", "  launch_guarded(a, n, true);\n", 1)
    made = change(project, "a.cu", C, after)
    both = C.replace("  launch(a, n);\n", "  trace();\n  launch_guarded(a, n, true);\n  launch(a, n);\n", 1)
    assert only(made, both) is Found.ABSENT
    assert only(made, after.replace("  check(a);\n", "  check(a);  // now\n", 1)) is Found.IN


def test_lines_that_only_go_are_gone_and_not_in(project: Project) -> None:
    made = change(project, "a.cu", C, C.replace("  check(a);\n", "", 1))
    assert only(made, C.replace("  check(a);\n", "", 1)) is Found.GONE
    assert only(made, C) is Found.BEFORE


def test_comments_alone_prove_nothing(project: Project) -> None:
    made = change(project, "a.cu", C, C.replace("  check(a);\n", "  check(a);  // twice\n", 1))
    assert only(made, C.replace("  check(a);\n", "  check(a);  // once\n", 1)) is Found.SAME


def test_a_line_that_the_function_has_elsewhere_is_not_the_one_that_is_added(project: Project) -> None:
    after = C.replace("  check(a);\n  launch(a, n);\n", "  check(a);\n  finish(a);\n  launch(a, n);\n", 1)
    made = change(project, "a.cu", C, after)
    assert only(made, C.replace("  check(a);\n", "  check(a);  // once\n", 1)) is Found.ABSENT


def test_where_both_sides_fit_nothing_is_said(project: Project) -> None:
    """The text has the lines before the change, and those after it, at two places."""
    made = change(project, "a.cu", C, guarded())
    text = C + "\n" + guarded().removeprefix(C[: C.index("void first")])
    assert only(made, text) is Found.ABSENT


@pytest.mark.parametrize("method", ["first", "second"])
def test_python_is_read_by_its_functions(project: Project, method: str) -> None:
    def with_guard(name: str) -> str:
        return PYTHON.replace(f"def {name}(self, x):\n", f"def {name}(self, x):\n        assert is_sm12x(x), 'no'\n")

    made = change(project, "a.py", PYTHON, with_guard(method))
    moved = with_guard(method).replace("        y = x + 1\n", "        # one more\n        y = x + 1\n")
    other = with_guard("second" if method == "first" else "first")
    assert only(made, moved) is Found.IN
    assert only(made, other) is not Found.IN


def test_cmake_is_read_by_its_commands(project: Project) -> None:
    before = "project(x)\nset(ARCHS\n  90a\n  100a)\nadd_library(x a.cu)\ntarget_link_libraries(x cuda)\n"
    after = before.replace("  100a)", "  100a\n  121a)")
    made = change(project, "CMakeLists.txt", before, after)
    assert (
        only(made, after.replace("  90a\n  100a\n  121a)", "90a 100a 121a) # all").replace("(x a", "(y b")) is Found.IN
    )
    assert only(made, before.replace("(x a", "(y b")) is Found.ABSENT


def test_what_a_statement_loses_is_no_evidence(project: Project) -> None:
    """A release that never had the item looks the same as one from which it was taken."""
    more = "def config():\n    # Note: all sizes.\n    return [(64, 64), (128, 128), (512, 512)], torch.float16\n"
    less = more.replace(", (512, 512)", "").replace("all sizes", "512 is left out")
    never = more.replace(", (512, 512)", "").replace("    # Note: all sizes.\n", "")
    change_ = change(project, "a.py", more, less)
    assert hunks_in(change_, never) == [HunkFound(Found.GONE)]
    added = change(project, "a.py", less, more)
    assert hunks_in(added, more.replace("all sizes", "the sizes")) == [HunkFound(Found.IN)]
