"""The patch vllm/sm120-family on real releases: which site it edits where, and where upstream was first."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from vllm_edits import RELEASES, Edited, run

from fp4patch.catalog.manifest import load
from fp4patch.core.results import NothingToDo, Rewritten, State
from fp4patch.cxx.tokens import lex, words

pytestmark = pytest.mark.slow
PATCH = "vllm/sm120-family"

# Per edit, in the order of patch.toml: a word of what it finds, the releases that it edits and in how many files, and
# the first release that has the change from upstream. In releases before those it is not needed.
SITES = (
    (
        "__CUDA_ARCH__ == 1200",
        ("0.10.2", "0.11.0", "0.12.0", "0.13.0", "0.14.1"),
        1,
        "",
    ),  # the family has another gate since 0.16
    ("enable_sm120_only<", ("0.16.0", "0.18.0", "0.20.0"), 1, "0.25.1"),
    ("enable_sm120_only<", ("0.18.0", "0.20.0"), 1, "0.25.1"),
    ("minor_capability == 120", ("0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.18.0", "0.20.0"), 2, "0.25.1"),
    ("arch in [89, 120]", ("0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.18.0", "0.20.0"), 2, "0.25.1"),
    ("is_device_capability(120)", ("0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.18.0", "0.20.0"), 1, "0.25.1"),
    ("(major, minor) == (12, 0)", ("0.25.1",), 1, ""),
)


@dataclass(frozen=True)
class Release:
    """A release's tree, and what the patch makes of it."""

    version: str
    root: Path
    done: Edited


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, pristine_tree: Callable[[str, str], Path]) -> Release:
    root = pristine_tree("vllm", request.param)
    return Release(request.param, root, run(PATCH, root))


def test_each_site_is_edited_or_retires_itself(release: Release) -> None:
    for edit, outcomes, site in zip(load().patches[PATCH].edits, release.done.edits, SITES, strict=True):
        word, edited, files, upstreamed = site
        assert word in getattr(edit, "find", "")
        if release.version in edited:
            assert [type(outcome) for outcome in outcomes.values()] == [Rewritten] * files, (word, outcomes)
            continue
        upstream_has_it = upstreamed and RELEASES.index(release.version) >= RELEASES.index(upstreamed)
        expected = State.UPSTREAMED if upstream_has_it else State.NOT_NEEDED
        for outcome in outcomes.values():
            assert isinstance(outcome, NothingToDo), (word, outcome)
            assert outcome.state is expected, (word, outcome)
        assert outcomes or expected is State.NOT_NEEDED, word
        assert outcomes or edit.not_needed, word


def test_nothing_but_the_sites_changes(release: Release) -> None:
    """Exact tests that choose tuning stay: 0.30 and 0.33 have nothing else."""
    done = release.done.files
    changed = {path: fold.text for path, fold in done.items() if fold.text != path.read_bytes().decode()}
    expected = sum(files for _, edited, files, _ in SITES if release.version in edited)
    assert len(changed) == expected
    for path, text in changed.items():
        was, is_ = path.read_bytes().decode().splitlines(), text.splitlines()
        assert sum(a != b for a, b in zip(was, is_, strict=True)) == 1, path
        if path.suffix == ".py":
            ast.parse(text)


def test_no_kernel_or_host_code_is_left_that_takes_sm120_alone(release: Release) -> None:
    edited = {path: fold.text for path, fold in release.done.files.items()}
    gates = []
    for path in sorted((release.root / "csrc").rglob("*")):
        if path.suffix not in (".cu", ".cuh", ".h", ".hpp", ".cpp", ".inl") or "third_party" in path.parts:
            continue
        text = edited.get(path) or path.read_text(encoding="utf-8")
        if not re.search(r"==\s*120\b|==\s*1200\b|enable_sm120_only", text):
            continue
        source = lex(text)
        assert not source.find(words("minor_capability == 120")), path
        assert not (source.find(words("enable_sm120_only<")) and release.version >= "0.16"), path
        if source.find(words("__CUDA_ARCH__ == 1200")):
            gates.append(path.name)
    # What is left is the old gate's own definition, which no kernel uses, a list of all architectures, and a form of an
    # instruction whose other form compiles to the same (see patch.toml).
    assert set(gates) <= {"common.hpp", "launch_bounds_utils.h", "marlin_template.h"}
