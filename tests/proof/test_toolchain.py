"""Each way in which a toolkit can be missing or mixed, on small fake roots, and the real one of this environment."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.core.errors import ToolchainError
from fp4patch.proof.toolchain import Toolchain, find_toolchain

Fake = Callable[..., Path]


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def states(version: str) -> str:
    return f"echo 'Cuda compilation tools, release {version.rsplit('.', 1)[0]}, V{version}'"


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A root whose programs only state their versions."""

    def make(
        root: Path | None = None,
        *,
        nvcc: str = "13.0.88",
        ptxas: str = "13.0.88",
        cicc: str = "13.0.88",
        nvdisasm: str | None = "13.5.37",
        newest_gcc: int = 99,
    ) -> Path:
        root = root or tmp_path / "cuda"
        script(root / "bin/nvcc", states(nvcc))
        script(root / "bin/ptxas", states(ptxas))
        script(root / "nvvm/bin/cicc", states(cicc))
        if nvdisasm:
            script(root / "bin/nvdisasm", states(nvdisasm))
        header = root / "include/crt/host_config.h"
        header.parent.mkdir(parents=True)
        header.write_text(f"#if defined(__GNUC__)\n#if __GNUC__ > {newest_gcc}\n#error too new\n#endif\n#endif\n")
        (root / "lib").mkdir()
        return root

    return make


@pytest.fixture
def no_toolkit(tmp_path: Path) -> dict[str, str]:
    """An environment with a g++ and nothing of CUDA."""
    script(tmp_path / "host/g++", "echo 12.2.0")
    return {"PATH": str(tmp_path / "host")}


def refusal(**arguments: object) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        find_toolchain(**arguments)  # type: ignore[arg-type]
    assert caught.value.help, "every refusal says what to do"
    return caught.value


def test_the_real_toolkit_is_found_whole(toolchain: Toolchain) -> None:
    assert toolchain.info.nvcc == toolchain.info.ptxas == toolchain.info.cicc
    assert toolchain.root == Path(toolchain.info.cuda_root)
    for tool in (toolchain.nvcc, toolchain.nvdisasm, toolchain.host_compiler):
        subprocess.run([tool, "--version"], check=True, capture_output=True)


def test_without_any_toolkit_it_names_the_extra_to_install(no_toolkit: dict[str, str]) -> None:
    refused = refusal(environ=no_toolkit, site_packages=[], usual=Path("/nowhere"))
    assert "there is no CUDA compiler" in refused.message
    assert "pip install 'fp4patch[cuda]'" in refused.help


def test_an_explicit_root_wins_over_everything(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    asked = fake()
    environ = no_toolkit | {"CUDA_HOME": str(fake(tmp_path / "home"))}
    fake(tmp_path / "site/nvidia/cu13")
    assert find_toolchain(asked, environ=environ, site_packages=[tmp_path / "site"]).root == asked


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH"])
def test_the_environment_wins_over_wheels(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path, name: str) -> None:
    home = fake()
    fake(tmp_path / "site/nvidia/cu13")
    found = find_toolchain(environ=no_toolkit | {name: str(home)}, site_packages=[tmp_path / "site"])
    assert found.root == home


def test_pinned_wheels_win_over_path(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    system = fake()
    wheels = fake(tmp_path / "site/nvidia/cu13")
    environ = {"PATH": f"{system / 'bin'}:{no_toolkit['PATH']}"}
    assert find_toolchain(environ=environ, site_packages=[tmp_path / "site"]).root == wheels
    assert find_toolchain(environ=environ, site_packages=[]).root == system


def test_the_usual_place_comes_last(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    usual, system = fake(tmp_path / "usr/local/cuda"), fake(tmp_path / "system")
    assert find_toolchain(environ=no_toolkit, site_packages=[], usual=usual).root == usual
    environ = {"PATH": f"{system / 'bin'}:{no_toolkit['PATH']}"}
    assert find_toolchain(environ=environ, site_packages=[], usual=usual).root == system


def test_the_newest_toolkit_among_the_wheels_is_taken(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    fake(tmp_path / "site/nvidia/cu9", nvcc="9.0.1", ptxas="9.0.1", cicc="9.0.1")
    newer = fake(tmp_path / "site/nvidia/cu13")
    assert find_toolchain(environ=no_toolkit, site_packages=[tmp_path / "site"]).root == newer


def test_a_symlink_on_path_leads_to_its_root(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    root = fake()
    (tmp_path / "links").mkdir()
    (tmp_path / "links/nvcc").symlink_to(root / "bin/nvcc")
    environ = {"PATH": f"{tmp_path / 'links'}:{no_toolkit['PATH']}"}
    assert find_toolchain(environ=environ, site_packages=[]).root == root


def test_a_script_on_path_is_asked_where_its_root_is(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    root = fake()
    script(tmp_path / "wrapped/nvcc", f"echo '#$ TOP={root}/bin/..'")
    environ = {"PATH": f"{tmp_path / 'wrapped'}:{no_toolkit['PATH']}"}
    assert find_toolchain(environ=environ, site_packages=[]).root == root


def test_a_script_on_path_that_says_nothing_is_refused(no_toolkit: dict[str, str], tmp_path: Path) -> None:
    script(tmp_path / "wrapped/nvcc", "true")
    environ = {"PATH": f"{tmp_path / 'wrapped'}:{no_toolkit['PATH']}"}
    assert "does not state the path of its toolkit" in refusal(environ=environ, site_packages=[]).message


def test_a_named_root_without_compiler_is_not_passed_over(
    fake: Fake, no_toolkit: dict[str, str], tmp_path: Path
) -> None:
    fake(tmp_path / "site/nvidia/cu13")
    site = [tmp_path / "site"]
    assert "--cuda-root is" in refusal(cuda_root=tmp_path, environ=no_toolkit, site_packages=site).message
    refused = refusal(environ=no_toolkit | {"CUDA_HOME": str(tmp_path)}, site_packages=site)
    assert "CUDA_HOME is" in refused.message
    assert "unset CUDA_HOME" in refused.help


@pytest.mark.parametrize("part", ["bin/ptxas", "nvvm/bin/cicc"])
def test_a_missing_part_is_named_with_its_package(fake: Fake, no_toolkit: dict[str, str], part: str) -> None:
    root = fake()
    (root / part).unlink()
    refused = refusal(cuda_root=root, environ=no_toolkit, site_packages=[])
    assert f"has no {part}" in refused.message
    assert "nvidia-" in refused.help


def test_parts_of_two_releases_are_refused(fake: Fake, no_toolkit: dict[str, str]) -> None:
    refused = refusal(cuda_root=fake(cicc="13.5.37"), environ=no_toolkit, site_packages=[])
    assert "mixed: nvcc 13.0.88, cicc 13.5.37, ptxas 13.0.88" in refused.message


def test_parts_of_one_release_may_differ_in_build(fake: Fake, no_toolkit: dict[str, str]) -> None:
    found = find_toolchain(fake(cicc="13.0.48"), environ=no_toolkit, site_packages=[])
    assert found.info.cicc == "13.0.48"


def test_the_disassembler_may_come_from_the_wheels(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    root = fake(nvdisasm=None)
    assert "no nvdisasm" in refusal(cuda_root=root, environ=no_toolkit, site_packages=[]).message
    script(tmp_path / "site/nvidia/cu13/bin/nvdisasm", states("13.5.37"))
    found = find_toolchain(root, environ=no_toolkit, site_packages=[tmp_path / "site"])
    assert found.root == root
    assert found.info.disassembler == str(tmp_path / "site/nvidia/cu13/bin/nvdisasm")


@pytest.mark.parametrize(
    ("of_toolkit", "taken"),
    [("13.0.85", "site/nvidia/cu13"), ("13.5.39", "cuda"), ("13.6.12", "cuda")],
)
def test_the_newest_disassembler_is_taken_and_of_equals_the_toolkits(
    fake: Fake, no_toolkit: dict[str, str], tmp_path: Path, of_toolkit: str, taken: str
) -> None:
    script(tmp_path / "site/nvidia/cu13/bin/nvdisasm", states("13.5.37"))
    found = find_toolchain(fake(nvdisasm=of_toolkit), environ=no_toolkit, site_packages=[tmp_path / "site"])
    assert found.nvdisasm == tmp_path / taken / "bin/nvdisasm"


def test_a_disassembler_older_than_the_assembler_is_refused(fake: Fake, no_toolkit: dict[str, str]) -> None:
    refused = refusal(cuda_root=fake(nvdisasm="12.9.88"), environ=no_toolkit, site_packages=[])
    assert "nvdisasm 12.9.88 is older than ptxas 13.0.88" in refused.message


def test_a_host_compiler_that_is_too_new_is_refused(fake: Fake, no_toolkit: dict[str, str]) -> None:
    refused = refusal(cuda_root=fake(newest_gcc=11), environ=no_toolkit, site_packages=[])
    assert "allows g++ 11 at most" in refused.message
    assert "NVCC_CCBIN=g++-11" in refused.help


def test_no_host_compiler_is_refused(fake: Fake, tmp_path: Path) -> None:
    refused = refusal(cuda_root=fake(), environ={"PATH": str(tmp_path)}, site_packages=[])
    assert "there is no g++ on PATH" in refused.message


def test_the_host_compiler_asked_for_is_the_one_used(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    script(tmp_path / "other/g++-11", "echo 11.4.0")
    environ = no_toolkit | {"NVCC_CCBIN": str(tmp_path / "other/g++-11")}
    found = find_toolchain(fake(), environ=environ, site_packages=[])
    assert found.info.host_compiler == "g++-11 11.4.0"
    assert found.flags[:2] == ("-ccbin", str(tmp_path / "other/g++-11"))
    missing = refusal(cuda_root=found.root, environ=no_toolkit | {"NVCC_CCBIN": "g++-7"}, site_packages=[])
    assert "NVCC_CCBIN is g++-7" in missing.message


def test_libraries_are_named_where_the_profile_would_miss_them(fake: Fake, no_toolkit: dict[str, str]) -> None:
    root = fake()
    assert find_toolchain(root, environ=no_toolkit, site_packages=[]).flags[2:] == ("-L", str(root / "lib"))
    (root / "lib64").mkdir()
    assert find_toolchain(root, environ=no_toolkit, site_packages=[]).flags[2:] == ()


@pytest.mark.parametrize(
    "name",
    [
        *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH"),
        *("INCLUDES", "SYSTEM_INCLUDES", "PTXAS_FLAGS", "CUDAFE_FLAGS", "NVVM_FLAGS", "OCG_FLAGS"),
    ],
)
def test_flags_from_the_environment_reach_no_compilation(fake: Fake, no_toolkit: dict[str, str], name: str) -> None:
    wanted = no_toolkit | {"HOME": "/here", "TMPDIR": "/there"}
    found = find_toolchain(fake(), environ=wanted | ({name: "g++"}), site_packages=[])
    assert dict(found.environ) == wanted


@pytest.mark.parametrize("part", ["bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "nvvm/bin/cicc", "bin/nvdisasm"])
def test_another_program_of_the_same_version_is_told_apart(fake: Fake, no_toolkit: dict[str, str], part: str) -> None:
    root = fake()
    before = find_toolchain(root, environ=no_toolkit, site_packages=[]).fingerprint
    assert find_toolchain(root, environ=no_toolkit, site_packages=[]).fingerprint == before
    with (root / part).open("a") as file:
        file.write("# -DFROB\n")
    assert find_toolchain(root, environ=no_toolkit, site_packages=[]).fingerprint != before


def test_a_toolkit_in_another_place_is_the_same(fake: Fake, no_toolkit: dict[str, str], tmp_path: Path) -> None:
    one, other = (fake(tmp_path / name) for name in ("one", "other"))
    fingerprints = {find_toolchain(root, environ=no_toolkit, site_packages=[]).fingerprint for root in (one, other)}
    assert len(fingerprints) == 1
