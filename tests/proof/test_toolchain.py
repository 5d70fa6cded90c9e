"""Each way in which a toolkit can be missing or mixed, on small fake roots, and the real one of this environment."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.core.errors import ToolchainError
from fp4patch.proof.toolchain import Toolchain, find_toolchain


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def states(version: str) -> str:
    return f"echo 'Cuda compilation tools, release {version.rsplit('.', 1)[0]}, V{version}'"


class Machine:
    """A directory with a g++ on PATH, and toolkits whose programs only state their versions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        self.wheel = self.site / "nvidia/cu13"
        script(folder / "host/g++", "echo 12.2.0")
        self.path = str(folder / "host")

    def kit(self, root: Path | str = "cuda", *, newest_gcc: int = 99, **versions: str) -> Path:
        """Make a toolkit of 13.0.88; ``versions`` are those of other parts, an empty one for none."""
        root = self.folder / root
        programs = {"nvcc": "13.0.88", "ptxas": "13.0.88", "cicc": "13.0.88", "nvdisasm": "13.5.37"} | versions
        for name, version in programs.items():
            if version:
                script(root / ("nvvm/bin" if name == "cicc" else "bin") / name, states(version))
        header = root / "include/crt/host_config.h"
        header.parent.mkdir(parents=True)
        header.write_text(f"#if defined(__GNUC__)\n#if __GNUC__ > {newest_gcc}\n#error too new\n#endif\n#endif\n")
        (root / "lib").mkdir()
        return root

    def find(self, *, first: Path | None = None, **environ: str) -> Toolchain:
        """Find a toolchain; ``first`` is a directory that comes first on PATH."""
        path = f"{first}:{self.path}" if first else self.path
        usual = self.folder / "usr/local/cuda"
        return find_toolchain(environ={"PATH": path} | environ, site_packages=[self.site], usual=usual)

    def refusal(self, *, first: Path | None = None, **environ: str) -> str:
        with pytest.raises(ToolchainError) as caught:
            self.find(first=first, **environ)
        assert caught.value.help, "every refusal says what to do"
        return f"{caught.value.message}; {caught.value.help}"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_real_toolkit_is_found_whole(toolchain: Toolchain) -> None:
    assert toolchain.info.nvcc == toolchain.info.ptxas
    assert toolchain.root == Path(toolchain.info.cuda_root)
    for tool in (toolchain.nvcc, toolchain.nvdisasm, toolchain.host_compiler):
        subprocess.run([tool, "--version"], check=True, capture_output=True)


def test_without_any_toolkit_it_names_the_extra_to_install(machine: Machine) -> None:
    refused = machine.refusal()
    assert "there is no CUDA compiler" in refused
    assert "pip install 'fp4patch[cuda]'" in refused


def test_a_named_root_comes_before_the_wheels_these_before_path_and_the_usual_place_last(machine: Machine) -> None:
    usual = machine.kit("usr/local/cuda")
    assert machine.find().root == usual
    system = machine.kit("system")
    assert machine.find(first=system / "bin").root == system
    machine.kit("site/nvidia/cu9", nvcc="9.0.1", ptxas="9.0.1", cicc="9.0.1")
    wheel = machine.kit(machine.wheel)
    assert machine.find(first=system / "bin").root == wheel, "the newest of the wheels"
    home = machine.kit("home")
    assert machine.find(first=system / "bin", CUDA_HOME=str(home)).root == home
    assert machine.find(first=system / "bin", CUDA_PATH=str(home)).root == home


def test_a_link_or_a_script_on_path_leads_to_its_root(machine: Machine) -> None:
    root, links = machine.kit(), machine.folder / "links"
    links.mkdir()
    (links / "nvcc").symlink_to(root / "bin/nvcc")
    assert machine.find(first=links).root == root
    wrapped = script(machine.folder / "wrapped/nvcc", f"echo '#$ TOP={root}/bin/..'").parent
    assert machine.find(first=wrapped).root == root
    script(wrapped / "nvcc", "true")
    assert "no nvcc of a toolkit" in machine.refusal(first=wrapped)


def test_a_named_root_without_compiler_is_not_passed_over(machine: Machine) -> None:
    machine.kit(machine.wheel)
    refused = machine.refusal(CUDA_HOME=str(machine.folder))
    assert "CUDA_HOME is" in refused
    assert "unset CUDA_HOME" in refused


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"ptxas": ""}, ["has no bin/ptxas", "fp4patch[cuda]"]),
        ({"cicc": ""}, ["has no nvvm/bin/cicc"]),
        ({"nvdisasm": ""}, ["no nvdisasm"]),
        ({"nvdisasm": "12.9.88"}, ["no nvdisasm as new as ptxas 13.0.88"]),
        ({"newest_gcc": 11}, ["allows g++ 11 at most", "NVCC_CCBIN=g++-11"]),
    ],
)
def test_a_missing_part_and_parts_that_do_not_fit_are_refused(
    machine: Machine, parts: dict[str, str], said: list[str]
) -> None:
    refused = machine.refusal(CUDA_HOME=str(machine.kit(**parts)))  # type: ignore[arg-type]
    assert all(text in refused for text in said), refused


@pytest.mark.parametrize(
    ("of_toolkit", "taken"),
    [("", "site/nvidia/cu13"), ("13.0.85", "site/nvidia/cu13"), ("13.5.39", "cuda"), ("13.6.12", "cuda")],
)
def test_the_newest_disassembler_is_taken_and_of_equals_the_toolkits(
    machine: Machine, of_toolkit: str, taken: str
) -> None:
    script(machine.wheel / "bin/nvdisasm", states("13.5.37"))
    found = machine.find(CUDA_HOME=str(machine.kit(nvdisasm=of_toolkit)))
    assert found.nvdisasm == machine.folder / taken / "bin/nvdisasm"
    assert found.root == machine.folder / "cuda"


def test_the_host_compiler_asked_for_is_the_one_used(machine: Machine) -> None:
    home, other = str(machine.kit()), script(machine.folder / "other/g++-11", "echo 11.4.0")
    found = machine.find(CUDA_HOME=home, NVCC_CCBIN=str(other))
    assert (found.info.host_compiler, found.flags[:2]) == ("g++-11 11.4.0", ("-ccbin", str(other)))
    assert "there is no g++-7" in machine.refusal(CUDA_HOME=home, NVCC_CCBIN="g++-7")
    machine.path = str(machine.folder)
    assert "there is no g++" in machine.refusal(CUDA_HOME=home)


def test_libraries_are_named_where_the_profile_would_miss_them(machine: Machine) -> None:
    root = machine.kit()
    assert machine.find(CUDA_HOME=str(root)).flags[2:] == ("-L", str(root / "lib"))
    (root / "lib64").mkdir()
    assert machine.find(CUDA_HOME=str(root)).flags[2:] == ()


def test_flags_from_the_environment_reach_no_compilation(machine: Machine) -> None:
    found = machine.find(
        CUDA_HOME=str(machine.kit()),
        HOME="/here",
        TMPDIR="/there",
        NVCC_APPEND_FLAGS="-g",
        NVCC_CCBIN="g++",
        CPATH="/a",
        INCLUDES="-I/a",
        PTXAS_FLAGS="-O0",
    )
    assert dict(found.environ) == {"HOME": "/here", "TMPDIR": "/there", "PATH": machine.path}


@pytest.mark.parametrize("part", ["bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "nvvm/bin/cicc", "bin/nvdisasm"])
def test_another_program_of_the_same_version_is_told_apart_and_another_place_is_not(
    machine: Machine, part: str
) -> None:
    root = machine.kit()
    before = machine.find(CUDA_HOME=str(root)).fingerprint
    assert machine.find(CUDA_HOME=str(machine.kit("elsewhere"))).fingerprint == before
    with (root / part).open("a") as file:
        file.write("# -DFROB\n")
    assert machine.find(CUDA_HOME=str(root)).fingerprint != before
