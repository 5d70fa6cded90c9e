"""Recipes that take SM121 out of CUTLASS's guard, in the forms that public projects use, and their opposites."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.binaries.findings import Level
from fp4patch.doctor import recipes

GUARD = "include/cutlass/float_subbyte.h"
REMOVES = [
    f"RUN sed -i 's/ || defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)//g' {GUARD}",
    f"RUN sed -i -e 's@defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)@0@' \\\n  -e 's@x@y@' /opt/cutlass/{GUARD}",
    f"RUN sed -i '/CUTLASS_ARCH_MMA_SM121F_ENABLED/d' {GUARD}",
    f"    sed -i -E 's/(defined\\(CUTLASS_ARCH_MMA_SM120A_ENABLED\\)) \\|\\| defined\\(.*SM121.*\\)/\\1/' {GUARD}",
    "RUN find / -name float_subbyte.h -exec perl -pi -e 's/defined\\(CUTLASS_ARCH_MMA_SM121A_ENABLED\\)/0/' {} +",
    "    text = text.replace('|| defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)', '')",
    'text = re.sub(r"\\s*\\|\\| defined\\(CUTLASS_ARCH_MMA_SM121[AF]_ENABLED\\)", "", text)',
]
KEEPS = [
    f"RUN sed -i 's/SM120A_ENABLED)/& || defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)/' {GUARD}",
    f"RUN grep -c CUTLASS_ARCH_MMA_SM121A_ENABLED {GUARD}",
    f"RUN sed -i 's/SM121A/SM121F/' {GUARD}",
    "# sed would remove SM121 from CUTLASS's guard",
    "text = text.replace('SM120A', 'CUTLASS_ARCH_MMA_SM121A_ENABLED')",
]


@pytest.mark.parametrize("line", REMOVES)
def test_names_the_line_that_removes(line: str) -> None:
    (finding,) = recipes.removals({"Dockerfile.gb10": f"FROM base\n{line}\nRUN make\n"})
    assert (finding.level, finding.subject) == (Level.YELLOW, "Dockerfile.gb10:2")
    assert finding.remedy


@pytest.mark.parametrize("line", KEEPS)
def test_leaves_alone_what_keeps_or_adds(line: str) -> None:
    assert recipes.removals({"Dockerfile": f"FROM base\n{line}\n"}) == []


def test_a_patch_file_is_named_and_its_inverse_is_not(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    before = pristine_tree("cutlass", "4.5.0") / GUARD
    after = tmp_path / "after.h"
    after.write_text(before.read_text().replace(" || defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)", ""))
    assert after.read_text() != before.read_text()
    for name, one, other in (("removes", before, after), ("restores", after, before)):
        diff = subprocess.run(["diff", "-u", str(one), str(other)], capture_output=True, text=True, check=False)
        (tmp_path / f"{name}.patch").write_text(diff.stdout)
    findings = recipes.removals({file.name: file.read_text() for file in tmp_path.glob("*.patch")})
    assert {finding.subject.partition(":")[0] for finding in findings} == {"removes.patch"}


def test_a_recipe_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Dockerfile").write_text(f"{REMOVES[0]} \x1b[2J\n")
    cli.run(["doctor", str(tmp_path)])
    assert "\x1b[2J" not in capsys.readouterr().out


def test_trees_and_directories_with_a_dockerfile_are_searched(
    tree_copy: Callable[[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/Dockerfile").write_text(f"FROM base\n{REMOVES[0]}\n")
    assert cli.run(["doctor", str(tmp_path / "build")]) == 1  # a line was found, and no GPU was judged
    assert "Dockerfile:2" in capsys.readouterr().out
    assert cli.run(["doctor", str(tmp_path / "build/Dockerfile")]) == 1
    assert "! Dockerfile" in capsys.readouterr().out
    (tmp_path / "build/Dockerfile").write_text("FROM nvidia/cuda:13.0.1-devel\nENV TORCH_CUDA_ARCH_LIST=12.1a\n")
    assert cli.run(["doctor", str(tmp_path / "build")]) == 1  # nothing was found, and nothing was judged
    assert "no line was found" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "build/Dockerfile").write_text("FROM base\n")
    assert cli.run(["doctor", str(tmp_path / "build")]) == 1
    assert "no line was found" not in " ".join(capsys.readouterr().out.split())
    tree = tree_copy("cutlass", "4.5.0")
    (tree / "fix.sh").write_text(f"{REMOVES[0].removeprefix('RUN ')}\n")
    cli.run(["doctor", str(tree)])
    assert "fix.sh:1" in capsys.readouterr().out


def test_a_known_tree_has_its_rewrites_named(
    tree_copy: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tree_copy("cutlass", "4.8.0")
    (tree / "Dockerfile").write_text("FROM a\nADD b c\nRUN sed -i 's/10.0a;10.3a/10.0a;10.3a;12.1a/' CMakeLists.txt\n")
    (tree / "fix.sh").write_text("perl -pi -e 's/SM100_ARCHS 10.0a/SM100_ARCHS 12.0a/' CMakeLists.txt\n")
    (tree / "other.sh").write_text("sed -i 's/1.2.3/1.2.4/' version\necho 's/10.0a/10.0a;12.1a/'\n")
    cli.run(["doctor", str(tree)])
    out = " ".join(capsys.readouterr().out.split())
    assert "! Dockerfile:3: puts 12.1a into a list of SM100's kernels" in out
    assert "! fix.sh:1: puts 12.0a into a list of SM100's kernels" in out
    assert "other.sh" not in out
