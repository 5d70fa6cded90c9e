"""The patch vllm/cmake-sm121a, by running each release's own CMake functions before and after.

Tables are TORCH_CUDA_ARCH_LIST → architectures of the FP4 and FP8 (SCALED_MM) kernels for SM12x.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from vllm_edits import run

from fp4patch.adapters.result import BuildRow
from fp4patch.adapters.vllm import cmake, configure
from fp4patch.core.results import Drift

PATCH = "vllm/cmake-sm121a"

NEVER = ("0.10.2", "0.11.0")
"""Releases that do not support family targets."""
FAMILY = ("0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.18.0")
"""Releases that build 12.0f with CUDA 13, and drop every suffix."""
SUFFIX = ("0.20.0", "0.25.1", "0.30.0", "0.33.0")
"""Releases that keep a suffix; with CUDA 13 they do not support 12.1."""
RELEASES = NEVER + FAMILY + SUFFIX
CUDA = ("12.9", "13.0")

FP4 = r"nvfp4_scaled_mm_sm120_kernels\.cu$"
QUANT = r"nvfp4_quant_kernels\.cu$"
SCALED_MM = r"scaled_mm_sm120_fp8\.cu$"
BLOCKWISE = r"scaled_mm_blockwise_sm120_fp8\.cu$"

ASKED = {
    "12.1a": ("12.1a",),
    "12.0a;12.1a": ("12.0a", "12.1a"),
    "12.1f": ("12.1f",),
}
OTHERS = ("12.0", "12.0f", "8.0;9.0a;10.0a;12.0a")
"""Builds that do not name 12.1."""
MIXED = ("12.1", "12.0;12.1", "12.0f;12.1a", "9.0;10.0;12.1a")
"""Builds for which the choice of a suffix is left to the lists, in part."""

pytestmark = [
    pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake"),
    pytest.mark.slow,
]


@dataclass(frozen=True)
class Release:
    """A release's tree and its patched copy, which shares all but the CMake files."""

    version: str
    before: Path
    after: Path
    scratch: Path
    known: dict[tuple[str, str], tuple[BuildRow, BuildRow]] = field(default_factory=dict)

    def configure(self, cuda: str, arch_list: str) -> tuple[BuildRow, BuildRow]:
        if (cuda, arch_list) not in self.known:
            before = configure(self.before, cuda, arch_list, self.scratch)
            after = configure(self.after, cuda, arch_list, self.scratch)
            assert (before.error, after.error) == ("", "")
            self.known[cuda, arch_list] = before, after
        return self.known[cuda, arch_list]


@pytest.fixture(scope="module", params=RELEASES)
def release(
    request: pytest.FixtureRequest,
    pristine_tree: Callable[[str, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Release:
    before, root = pristine_tree("vllm", request.param), tmp_path_factory.mktemp("vllm")
    after = root / "tree"
    after.mkdir()
    shutil.copy(before / "CMakeLists.txt", after)
    shutil.copytree(before / "cmake", after / "cmake")
    for entry in before.iterdir():
        if not (after / entry.name).exists():
            (after / entry.name).symlink_to(entry)
    for file, done in run(PATCH, after).files.items():
        assert not any(isinstance(outcome, Drift) for outcome in done.outcomes)
        file.write_bytes(done.text.encode())
    (root / "scratch").mkdir()
    return Release(request.param, before, after, root / "scratch")


def archs_of(row: BuildRow, pattern: str) -> tuple[str, ...]:
    """Architectures of the sources whose path matches; all of those must agree."""
    (found,) = {archs for source, archs in row.code.items() if re.search(pattern, source)}
    return found


def unpatched(version: str, cuda: str, arch_list: str) -> tuple[str, ...]:
    """Architectures of upstream's FP4 kernels when the build names 12.1: measured, and the reason for this patch."""
    if version in SUFFIX and cuda == "12.9":
        return ASKED[arch_list]
    if version in SUFFIX and arch_list == "12.0a;12.1a":
        return ("12.0a",)  # nothing of this loads on GB10
    return ("12.0f",) if version not in NEVER and cuda == "13.0" else ("12.0a",)


@pytest.mark.parametrize("cuda", CUDA)
@pytest.mark.parametrize("arch_list", ASKED)
def test_12_1_reaches_the_kernels_with_the_suffix_that_was_asked_for(
    release: Release, cuda: str, arch_list: str
) -> None:
    before, after = release.configure(cuda, arch_list)
    assert archs_of(before, FP4) == unpatched(release.version, cuda, arch_list)
    for kernels in (FP4, QUANT, SCALED_MM, BLOCKWISE):
        assert archs_of(after, kernels) == ASKED[arch_list]


@pytest.mark.parametrize("cuda", CUDA)
@pytest.mark.parametrize("arch_list", OTHERS)
def test_builds_that_do_not_name_12_1_are_as_before(release: Release, cuda: str, arch_list: str) -> None:
    before, after = release.configure(cuda, arch_list)
    assert after == before


@pytest.mark.parametrize("cuda", CUDA)
@pytest.mark.parametrize("arch_list", [*ASKED, *MIXED])
def test_no_kernel_is_lost_or_compiled_twice_for_one_gpu(release: Release, cuda: str, arch_list: str) -> None:
    before, after = release.configure(cuda, arch_list)
    assert after.code.keys() >= before.code.keys()
    for source, archs in after.code.items():
        was = before.code.get(source, ())
        sm12x = [arch for arch in archs if arch.startswith("12.")]
        assert len({arch.rstrip("af") for arch in sm12x}) == len(sm12x), source  # nvcc refuses 120 with 120f
        assert set(archs) - set(sm12x) == {arch for arch in was if not arch.startswith("12.")}, source
        if any(arch.startswith("12.") for arch in was):
            assert any(arch.startswith("12.1") for arch in sm12x), source


@pytest.mark.parametrize("cuda", CUDA)
def test_a_bare_12_1_gets_the_suffix_that_fp4_needs(release: Release, cuda: str) -> None:
    _, after = release.configure(cuda, "12.1")
    assert archs_of(after, FP4) == archs_of(after, QUANT) == archs_of(after, SCALED_MM) == ("12.1a",)


def test_the_patch_leaves_what_it_made_alone(release: Release) -> None:
    for file, done in run(PATCH, release.after).files.items():
        assert done.text == file.read_bytes().decode()
