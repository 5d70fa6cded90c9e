"""A stack on an installed FlashInfer: patches have the paths of upstream's repository, and the package has others."""

import difflib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from flashinfer_wheel import unpack
from small_cutlass import small_cutlass

from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import AS_UPSTREAM

Command = Callable[..., Said]
KERNEL = "csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh"
WHEEL = {
    f"data/{KERNEL}": KERNEL,
    "data/include/flashinfer/utils.cuh": "include/flashinfer/utils.cuh",
    "jit/core.py": "flashinfer/jit/core.py",
    "gemm/__init__.py": "flashinfer/gemm/__init__.py",
    "_build_meta.py": "flashinfer/_build_meta.py",
}
"""Files of the wheel, and what they are in the repository."""
NEW, MADE = "flashinfer/gemm/carried.py", "gemm/carried.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("0.6.17", tmp_path_factory.mktemp("site"), lambda name: name.removeprefix("flashinfer/") in WHEEL)


@pytest.fixture
def package(wheel: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(wheel, tmp_path / "site-packages/flashinfer"))


def change(package: Path, path: str, line: str, name: str) -> str:
    """Return the diff that puts a line behind the fourth one of a file of the package, by another name."""
    before = (package / path).read_text().splitlines(keepends=True)
    after = [*before[:4], f"{line}\n", *before[4:]]
    return "".join([f"diff --git a/{name} b/{name}\n", *difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")])


def created(name: str) -> str:
    return f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+one = 1\n"


@pytest.fixture
def stack(package: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "carried"
    folder.mkdir()
    gemm = change(package, "gemm/__init__.py", "# carried", "flashinfer/gemm/__init__.py")
    (folder / "0001-python.patch").write_text(gemm + created(NEW))
    (folder / "0002-kernel.patch").write_text(change(package, f"data/{KERNEL}", "// carried", KERNEL))
    renamed = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"
    (folder / "0003-move.patch").write_text(renamed.format(NEW, NEW.replace("carried", "moved")))
    return folder


def test_a_stack_goes_into_the_package_and_out_to_the_byte(fp4patch: Command, package: Path, stack: Path) -> None:
    before = snapshot(package)
    planned = fp4patch("plan", stack, package, "--json").document["steps"]
    assert [step["outcome"] for step in planned] == ["applies"] * 3
    applied = fp4patch("apply", "--with", stack, package)
    assert applied.status == 0, applied.err
    assert "# carried\n" in (package / "gemm/__init__.py").read_text()
    assert "// carried\n" in (package / "data" / KERNEL).read_text()
    assert (package / "gemm/moved.py").read_text().startswith("one = 1\n")
    assert not (package / MADE).exists()
    assert not (package / "flashinfer").exists()
    assert {file["state"] for file in fp4patch("status", "--json", package).tree["files"]} == {"applied"}
    planned = fp4patch("plan", stack, package, "--json").document["steps"]
    assert [step["outcome"] for step in planned] == ["applies"] * 3
    after = snapshot(package)
    assert fp4patch("apply", package).status == 0
    assert fp4patch("apply", "--with", stack, package).status == 0
    assert snapshot(package) == after
    assert fp4patch("revert", package).status == 0
    assert snapshot(package) == before


@pytest.mark.parametrize("name", ["flashinfer/gemm/__init__.py", "gemm/__init__.py"])
def test_a_diff_of_the_package_itself_is_taken_too(fp4patch: Command, package: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack/a.patch").write_text(change(package, "gemm/__init__.py", "# carried", name))
    assert fp4patch("apply", "--with", tmp_path / "stack", package).status == 0
    assert "# carried\n" in (package / "gemm/__init__.py").read_text()


@pytest.mark.parametrize("way", ["changes", "makes"])
def test_a_file_that_no_wheel_has_is_named_and_nothing_is_changed(
    fp4patch: Command, package: Path, stack: Path, way: str
) -> None:
    test = created("tests/gemm/test_x.py")
    if way == "changes":
        test = test.replace("new file mode 100644\n--- /dev/null", "--- a/tests/gemm/test_x.py")
        test = test.replace("@@ -0,0 +1 @@\n", "@@ -1 +1,2 @@\n two = 2\n")
    path = stack / "0002-kernel.patch"
    path.write_text(path.read_text() + test)
    before = snapshot(package)
    refused = fp4patch("apply", "--with", stack, package)
    assert refused.status == 1
    assert "flashinfer/0002-kernel" in refused.err
    assert "tests/gemm/test_x.py" in refused.err
    assert "new-patch" in refused.err
    assert snapshot(package) == before
    step = fp4patch("plan", stack, package, "--json").document["steps"][1]
    assert (step["outcome"], step["left_out"]) == ("applies", ["tests/gemm/test_x.py"])


def test_a_new_file_of_what_is_built_that_has_no_place_does_not_apply(
    fp4patch: Command, package: Path, tmp_path: Path
) -> None:
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack/a.patch").write_text(created("scripts/generate.py"))
    (step,) = fp4patch("plan", tmp_path / "stack", package, "--json").document["steps"]
    assert step["outcome"] == "conflicts"
    assert "no place" in step["places"][0]["reason"]


def test_a_merge_begins_with_the_wheel_of_the_base(fp4patch: Command, package: Path, tmp_path: Path) -> None:
    text = (package / "gemm/__init__.py").read_text()
    diff = change(package, "gemm/__init__.py", "# carried", "flashinfer/gemm/__init__.py")
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack/a.patch").write_text(diff)
    (tmp_path / "stack/stack.toml").write_text('target = "flashinfer"\nbase = "0.6.17"\n')
    lines = text.splitlines(keepends=True)
    (package / "gemm/__init__.py").write_text("".join([lines[0], "# moved on\n", *lines[2:]]))
    assert fp4patch("apply", "--with", tmp_path / "stack", package).status == 1
    assert fp4patch("apply", "--with", tmp_path / "stack", "--merge", package).status == 0
    merged = (package / "gemm/__init__.py").read_text()
    assert merged.startswith("".join([lines[0], "# moved on\n", *lines[2:4], "# carried\n", *lines[4:]]))


def test_a_new_patch_is_tried_on_the_package(
    fp4patch: Command, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("5.diff").write_text(change(package, f"data/{KERNEL}", "// carried", KERNEL))
    made = fp4patch("new-patch", "flashinfer", "5.diff", "--tree", package)
    assert made.status == 0, made.err
    assert fp4patch("apply", "--with", "pr-5", package).status == 0


def test_a_stack_without_a_target_is_for_the_tree_that_is_named(
    fp4patch: Command, package: Path, stack: Path, pristine_tree: Callable[[str, str], Path]
) -> None:
    """FlashInfer has a CUTLASS in it, which gets its own patches by the same command."""
    small_cutlass(pristine_tree("cutlass", "4.5.0"), package / "data/cutlass")
    applied = fp4patch("apply", "--with", stack, package)
    assert applied.status == 0, applied.err
    assert "data/cutlass: nothing to do" in applied.out


def test_the_names_of_both_layouts() -> None:
    target = load().target("flashinfer")
    layout = target.layout({*target.marks}.__contains__)
    assert {here: layout.in_repository(here) for here in WHEEL} == WHEEL
    assert {layout.place(there): there for there in WHEEL.values()} == WHEEL
    assert target.layout({*target.other_marks[0]}.__contains__) == AS_UPSTREAM
    for name, other in load().targets.items():
        if not other.repository:
            assert other.layout({*other.marks}.__contains__) == AS_UPSTREAM, name
