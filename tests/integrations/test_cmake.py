"""The CMake line of the page: a real FetchContent of a real CUTLASS, from a repository on this machine."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration_page import block
from small_cutlass import checkout, git

from fp4patch import cli

HEADER = "include/cutlass/numeric_conversion.h"


@pytest.fixture
def project(tree_copy: Callable[[str, str], Path], tmp_path: Path) -> Path:
    """A project that fetches CUTLASS 4.5.0 as on the page, with only the repository's address inserted."""
    repository = checkout(tree_copy("cutlass", "4.5.0"))
    git(repository, "tag", "v4.5.0")
    text, changed = re.subn(r"(?<=GIT_REPOSITORY )\S+", repository.as_uri(), block("cmake", "PATCH_COMMAND"))
    assert changed == 1
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.28)\nproject(user LANGUAGES NONE)\n{text}"
    )
    return folder


def configure(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    tools = Path(sys.executable).parent
    environ = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = [str(tools / "cmake"), "-S", str(project), "-B", str(project / "build"), *options]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def fetched(project: Path) -> Path:
    return project / "build/_deps/cutlass-src"


def test_what_is_fetched_is_patched_and_a_second_configure_changes_nothing(project: Path) -> None:
    first = configure(project)
    assert first.returncode == 0, first.stderr
    assert cli.run(["apply", "--check", "--variant", "next3", str(fetched(project))]) == 0
    header = fetched(project) / HEADER
    assert "fp4patch" in header.read_text()
    changed = header.stat().st_mtime_ns
    assert configure(project).returncode == 0
    assert header.stat().st_mtime_ns == changed  # so that nothing is compiled again


def upstream_changes_the_patched_lines(project: Path) -> None:
    """A tag `next` in the repository."""
    repository = Path(re.findall(r"GIT_REPOSITORY file://(\S+)", (project / "CMakeLists.txt").read_text())[0])
    header = repository / HEADER
    changed = [f"{line} // upstream's" if "float_e2m1_t" in line else line for line in header.read_text().split("\n")]
    header.write_text("\n".join(changed))
    git(repository, "commit", "-qam", "next")
    git(repository, "tag", "next")


def updating(project: Path, tag: str) -> None:
    """The project's lines become those of the page on upgrades, for a tag."""
    lists = project / "CMakeLists.txt"
    (address,) = re.findall(r"GIT_REPOSITORY (\S+)", lists.read_text())
    page = (Path(__file__).parents[2] / "docs/upgrade.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```cmake\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?<=GIT_REPOSITORY )\S+", address, text)
    text, changed = re.subn(r"(?<=set\(CUTLASS_TAG )[^)]+", tag, text)
    assert changed == 1
    lists.write_text(
        "cmake_minimum_required(VERSION 3.28)\nproject(user LANGUAGES NONE)\ninclude(FetchContent)\n"
        f"{text}FetchContent_MakeAvailable(cutlass)\n"
    )


@pytest.mark.parametrize("before", ["the page's lines", "a failed update"])
def test_another_tag_in_an_old_build_directory_takes_one_configure(project: Path, before: str) -> None:
    """CMake's own update stashes the patches, and cannot put them back: upstream changed the patched lines."""
    if before == "the page's lines":
        updating(project, "v4.5.0")
    assert configure(project).returncode == 0
    upstream_changes_the_patched_lines(project)
    if before == "a failed update":
        lists = project / "CMakeLists.txt"
        lists.write_text(lists.read_text().replace("GIT_TAG v4.5.0", "GIT_TAG next"))
        failed = configure(project)
        assert failed.returncode != 0
        assert "Failed to unstash changes" in failed.stdout + failed.stderr
    updating(project, "next")
    again = configure(project)
    assert again.returncode == 0, again.stderr
    assert cli.run(["apply", "--check", "--variant", "next3", str(fetched(project))]) == 0
    header = fetched(project) / HEADER
    assert "// upstream's" in header.read_text()
    assert "fp4patch" in header.read_text()
    changed = header.stat().st_mtime_ns
    assert configure(project).returncode == 0
    assert header.stat().st_mtime_ns == changed


def test_an_edit_in_a_patched_line_ends_the_update_in_fp4patchs_words(project: Path) -> None:
    updating(project, "v4.5.0")
    assert configure(project).returncode == 0
    upstream_changes_the_patched_lines(project)
    header = fetched(project) / HEADER
    mine = header.read_text() + "// mine\n"
    header.write_text(mine)
    updating(project, "next")
    refused = configure(project)
    assert refused.returncode != 0
    assert HEADER in refused.stdout + refused.stderr
    assert header.read_text() == mine


def test_a_source_that_the_patches_do_not_fit_ends_the_configure_in_fp4patchs_words(project: Path) -> None:
    assert configure(project).returncode == 0
    header = fetched(project) / HEADER
    header.write_text(header.read_text() + "// mine\n")
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("next3", "next2"))
    refused = configure(project)
    assert refused.returncode != 0
    assert HEADER in refused.stdout + refused.stderr
