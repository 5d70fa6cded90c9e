"""Three-way merges: git's own, hunks that find their place by lines or tokens, and conflicts with both sides."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from git_trees import commit, git, repository
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cutlass import small_cutlass

from fp4patch.catalog.manifest import load
from fp4patch.core.results import Problem, Rewritten
from fp4patch.edits.diff import File, changed
from fp4patch.edits.patch_file import FileChange, Hunk, read
from fp4patch.sources.checkout import Checkout
from fp4patch.sources.git import merge_file
from fp4patch.stack.merge import Bases, merge_change, merge_stack
from fp4patch.stack.read import read_stack
from fp4patch.stack.tokens import by_tokens

__all__ = ["repository"]
LINES = [f"int v{number};\n" for number in range(40)]
BASE = "".join(LINES)


def change_of(before: str, after: str, name: str = "a.h") -> FileChange:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for side, text in (("a", before), ("b", after)):
            (Path(folder) / side).mkdir()
            (Path(folder) / side / name).write_text(text, newline="")
        command = ["git", "diff", "--no-index", "--no-prefix", f"a/{name}", f"b/{name}"]
        diff = subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout
    return read(diff).changes[0]


def merged(before: str, after: str, release: str, name: str = "a.h") -> str | Problem | None:
    """Return the text that a merge makes of a release, after its diff was applied exactly; or the conflict."""
    made = merge_change(change_of(before, after, name), {name: File(release)}.get, before)
    if not isinstance(made, FileChange):
        return made
    done = changed([made], {name: File(release)}.get)
    assert isinstance(done.outcomes[0], Rewritten)
    file = done.files[name]
    assert file
    return file.text


AFTER = BASE.replace("int v20;\n", "int w20;\nint w21;\n")


def test_a_change_of_context_is_merged_by_git() -> None:
    release = BASE.replace("int v18;\n", "int other;\n")
    assert merged(BASE, AFTER, release) == AFTER.replace("int v18;\n", "int other;\n")


def test_what_the_release_has_is_no_change() -> None:
    assert merged(BASE, AFTER, AFTER.replace("int v18;\n", "int other;\n")) is None


def test_a_conflict_names_its_line_and_both_sides() -> None:
    problem = merged(BASE, AFTER, BASE.replace("int v20;\n", "long v20;\n"))
    assert isinstance(problem, Problem)
    assert problem.line == 21
    assert "`long v20;`" in problem.found
    assert "`int w20;`" in problem.expected


@pytest.mark.parametrize(
    "release",
    [
        BASE.replace("int v20;\n", "int   v20 ;  // was reformatted\n"),
        BASE.replace("int v19;\nint v20;\nint v21;\n", "int v19; int v20;\nint v21;\n"),
        "".join([*LINES[:10], *LINES[25:], *LINES[10:25]]).replace("int v20;", "int\tv20;"),
    ],
    ids=["blanks", "lines", "moved"],
)
def test_another_layout_and_a_move_are_no_conflict_in_cxx(release: str) -> None:
    text = merged(BASE, AFTER, release)
    assert isinstance(text, str)
    assert text.split() != release.split()
    assert "int w20;\nint w21;" in text
    assert isinstance(merged(BASE, AFTER, release, "a.py"), Problem)


def test_a_place_that_occurs_twice_is_a_conflict() -> None:
    release = BASE.replace("int v20;", "int  v20;")
    assert isinstance(merged(BASE, AFTER, release + release), Problem)


def test_a_merge_that_does_not_read_as_its_language_is_a_conflict() -> None:
    before = "if x:\n    a\n    b\n    c\n    d\ne\n"
    after, release = before.replace("e\n", "else:\n    z\ne\n"), before.replace("if x", "with x")
    problem = merged(before, after, release, "a.py")
    assert isinstance(problem, Problem)
    assert "reads as its language" in problem.expected
    assert isinstance(merged(before, after, release, "a.txt.in"), str)


def test_without_a_base_nothing_is_guessed() -> None:
    problem = merge_change(change_of(BASE, AFTER), {"a.h": File(BASE.replace("v18", "x"))}.get, None)
    assert isinstance(problem, Problem)
    assert "made for" in problem.expected


texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=0, max_size=12).map(
    lambda rows: "".join(f"{row}\n" for row in rows)
)


@settings(max_examples=40, deadline=None)
@given(base=texts, ours=texts, theirs=texts)
def test_the_merge_is_gits_and_no_mark_is_left(base: str, ours: str, theirs: str) -> None:
    text, conflicts = merge_file(base.encode(), ours.encode(), theirs.encode())
    assert bool(conflicts) == (b"<" * 97 in text)
    if base == theirs:
        assert text.decode() == ours
    if base != theirs and change_of(base, theirs, "a.txt").hunks:
        made = merge_change(change_of(base, theirs, "a.txt"), {"a.txt": File(ours)}.get, base)
        if isinstance(made, FileChange):
            file = changed([made], {"a.txt": File(ours)}.get).files["a.txt"]
            assert file
            assert "<<<<" not in file.text


# --- tokens ----------------------------------------------------------------------------------------------------------


def hunk(*rows: str) -> Hunk:
    return Hunk(1, 1, tuple((row[0], f"{row[1:]}\n") for row in rows))


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("f( a,b );\n", (" f(", "-  a, b", "+  a, c", " );"), "f( a, c );\n"),
        ("x;\n\ty;\nz;\n", (" x;", "-y;", " z;"), "x;\nz;\n"),
        ("x; y; z;\n", (" x;", "-y;", " z;"), "x;  z;\n"),
        ("x ;\nz;\n", (" x;", "+y;", " z;"), "x ;\ny;\nz;\n"),
        ("x; z;\n", (" x;", "+y;", " z;"), None),
        ("x;\nx;\n", ("-x;", "+y;"), None),
        ("x;\n", (" x;", "+// y"), None),
        ("x;\n", (" /*", "+y"), None),
        ("#if  A\nx;\n#endif\n", (" #if A", "-x;", "+y;", " #endif"), "#if  A\ny;\n#endif\n"),
        ("#if  A\nx;\n#endif\n", ("-#if A", "+#if B", " x;"), "#if B\nx;\n#endif\n"),
        ("x; #if\n", (" x;", "+#if A", " #"), None),
        ("", (" x;", "+y;"), None),
    ],
)
def test_a_hunk_goes_in_by_its_tokens(text: str, rows: tuple[str, ...], expected: str | None) -> None:
    assert by_tokens(text, hunk(*rows)) == expected


# --- bases -----------------------------------------------------------------------------------------------------------


def put_stack(folder: Path, diff: bytes, table: str = "") -> Path:
    folder.mkdir()
    (folder / "a.patch").write_bytes(diff)
    if table:
        (folder / "stack.toml").write_text(table)
    return folder


@pytest.mark.parametrize("how", ["blob", "commit"])
def test_the_base_is_a_blob_or_a_commit_of_a_clone(repository: Path, tmp_path: Path, how: str) -> None:
    before = commit(repository, {"a.h": (BASE.encode(), False)}, "before")
    commit(repository, {"a.h": (AFTER.encode(), False)}, "after")
    diff = git(repository, "diff", before, "HEAD")
    if how == "commit":
        diff = b"".join(line for line in diff.splitlines(True) if not line.startswith(b"index "))
    table = f'target = "mlx"\nbase = "{before}"\n' if how == "commit" else ""
    stack = read_stack(put_stack(tmp_path / "s", diff, table), load().targets)
    clone = Checkout.at(repository)
    assert clone
    release: Callable[[str], File | None] = {"a.h": File(BASE.replace("v18", "x"))}.get
    done = merge_stack(stack.outside, release, Bases(load().target("mlx"), (clone,)))
    assert (done.problems, done.merged, done.retired) == ((), ("a",), ())
    (patch,) = done.patches
    assert patch.origin.merged
    assert patch.origin.file_sha256 == stack.patches[0].sha256
    files = changed(patch.commit.changes, release).files
    assert files == {"a.h": File(AFTER.replace("v18", "x"))}
    has = {"a.h": File(AFTER.replace("v18", "x"))}.get
    assert merge_stack(stack.outside, has, Bases(load().target("mlx"), (clone,))).retired == ("a",)
    lost = merge_stack(stack.outside, release, Bases(load().target("mlx"), ()))
    assert [problem.patch for problem in lost.problems] == ["mlx/a" if how == "commit" else "/a"]


def test_the_base_is_a_pinned_release(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path, fp4patch: Callable[..., Said]
) -> None:
    """A diff without blob names, made on CUTLASS 4.2.1: ``base`` says so, and its file is of the pinned archive."""
    old, new = (small_cutlass(pristine_tree("cutlass", name), tmp_path / name) for name in ("4.2.1", "4.4.2"))
    path = "include/cutlass/version.h"
    before = (old / path).read_text()
    at = next(number for number, line in enumerate(before.split("\n")) if "define CUTLASS_PATCH" in line) + 3
    rows = before.splitlines(True)
    change = change_of(before, "".join([*rows[:at], "// carried\n", *rows[at:]]), path.rpartition("/")[2])
    diff = change.text.replace("version.h", path)
    diff = "".join(line for line in diff.splitlines(True) if not line.startswith("index "))
    was = (new / path).read_bytes()
    nobody = put_stack(tmp_path / "nobody", diff.encode())
    refused = fp4patch("apply", "--with", nobody, "--merge", new)
    assert refused.status == 1
    assert "`base` in stack.toml" in refused.err
    stack = put_stack(tmp_path / "stack", diff.encode(), 'target = "cutlass"\nbase = "4.2.1"\n')
    assert fp4patch("apply", "--with", stack, new).status == 1
    assert (new / path).read_bytes() == was
    assert fp4patch("apply", "--with", stack, "--merge", new).status == 0
    rows = was.decode().splitlines(True)
    at = next(number for number, line in enumerate(rows) if "define CUTLASS_PATCH" in line) + 3
    merged = "".join([*rows[:at], "// carried\n", *rows[at:]])
    assert (new / path).read_text().startswith(merged)
    assert fp4patch("revert", new).status == 0
    assert (new / path).read_bytes() == was
