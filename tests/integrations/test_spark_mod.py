"""The mod for spark-vllm-docker: its run.sh in an environment like that image's, with a real FlashInfer from its wheel.

A virtual environment replaces the container's Python, the toolkit of the test environment its CUDA, and a package with
one compiled kernel replaces vLLM.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cubins import CONVERTS, compile_cuda, targets
from few_probes import few_probes

from fp4patch import cli
from fp4patch.catalog.manifest import data_root, load
from fp4patch.core import progress
from fp4patch.core.store import cache_dir
from fp4patch.images.context import wheel
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sources.index import download

MOD = Path(__file__).parents[2] / "integrations" / "spark-vllm-docker" / "mods" / "fp4patch"
RELEASE = "0.6.6"
PROBES = {"float2x4-to-e2m1": "flashinfer", "encode-float-x8": "cutlass"}
QUANTIZATION = "data/csrc/nv_internal/tensorrt_llm/kernels/quantization_utils.cuh"


@dataclass(frozen=True)
class Container:
    """A Python with packages, and the directory that the launcher copies the mod to."""

    packages: Path
    mod: Path
    environ: dict[str, str]

    def launch(self, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the container steps of launch-cluster.sh."""
        command = f"export WORKSPACE_DIR=$PWD && cd {self.mod} && chmod +x run.sh && ./run.sh"
        return subprocess.run(
            ["bash", "-c", command], env=self.environ | environ, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Container:
    """A Python with FlashInfer, as its package manager installs it, in which the mod has installed fp4patch."""
    home = tmp_path_factory.mktemp("container")
    subprocess.run([sys.executable, "-m", "venv", str(home / "python")], check=True)
    bin_ = home / "python" / "bin"
    archive = load().target("flashinfer").archive(RELEASE)
    assert archive
    file = download(archive, progress.silent)
    install = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", "--no-deps", str(file)]
    subprocess.run(install, check=True)
    mod = home / "workspace" / "mods" / "fp4patch"
    shutil.copytree(MOD, mod)
    name, content = wheel(data_root())
    (mod / name).write_bytes(content)
    kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "FP4PATCH_"))}
    path = os.pathsep.join([str(bin_), str(toolchain.root / "bin"), "/usr/bin", "/bin"])
    data = few_probes(home / "data", PROBES)
    environ = kept | {"PATH": path, "HOME": str(home / "root"), "FP4PATCH_DATA": str(data)}
    environ["FP4PATCH_CACHE"] = str(cache_dir())  # the same code as in other tests: compiled once a machine
    packages = next((home / "python" / "lib").glob("python3*/site-packages"))
    return Container(packages, mod, environ)


@pytest.fixture
def container(installed: Container) -> Container:
    """The same, pristine: no cache of compiled modules, no vLLM, no patch."""
    assert cli.run(["revert", str(installed.packages / "flashinfer")]) == 0
    for package in ("vllm", "flashinfer_jit_cache", "flashinfer_jit_cache-0.6.12.dist-info"):
        shutil.rmtree(installed.packages / package, ignore_errors=True)
    return installed


def jit_cache(container: Container, module: Path) -> Path:
    """flashinfer-jit-cache with one module, and a record by which pip can take it away."""
    package = container.packages / "flashinfer_jit_cache"
    (package / "jit_cache" / "fp4").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(module, package / "jit_cache" / "fp4" / "fp4.so")
    info = container.packages / "flashinfer_jit_cache-0.6.12.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flashinfer-jit-cache\nVersion: 0.6.12\n")
    (info / "INSTALLER").write_text("pip\n")
    files = [*package.rglob("*.*"), info / "METADATA", info / "INSTALLER", info / "RECORD"]
    (info / "RECORD").write_text("".join(f"{file.relative_to(container.packages)},,\n" for file in files))
    return package


@pytest.fixture(scope="module")
def module(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``module("120f")``: a compiled file that converts to E2M1 there."""
    folder = tmp_path_factory.mktemp("modules")
    return lambda name: compile_cuda(toolchain, CONVERTS, folder / f"{name}.so", "-c", *targets(name))


def install_vllm(container: Container, module: Path) -> None:
    (container.packages / "vllm").mkdir()
    (container.packages / "vllm" / "__init__.py").write_text("raise ImportError('the mod must not import vLLM')\n")
    shutil.copy(module, container.packages / "vllm" / "_C.abi3.so")


def test_flashinfers_sources_are_patched_and_proven_and_vllms_compiled_code_is_judged(
    container: Container, module: Callable[[str], Path]
) -> None:
    install_vllm(container, module("120f"))
    before = sorted(path.name for path in container.packages.iterdir())
    ran = container.launch()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"next3 applied to flashinfer {RELEASE}" in ran.stdout
    assert "next3 applied to cutlass 4.2.1" in ran.stdout
    assert ran.stdout.count("\nPASS ") == 2
    assert "✗" not in ran.stdout
    assert ran.stderr == ""
    assert "fp4patch" in (container.packages / "flashinfer" / QUANTIZATION).read_text()
    assert sorted(path.name for path in container.packages.iterdir()) == before  # nothing of ours among vLLM's packages

    again = container.launch()
    assert again.returncode == 0
    assert "installing" not in again.stdout
    assert "nothing to do" in again.stdout


def test_compiled_modules_that_flashinfer_takes_instead_are_judged_and_its_sources_left(
    container: Container, module: Callable[[str], Path]
) -> None:
    package = jit_cache(container, module("120f"))
    ran = container.launch()
    assert ran.returncode == 0, ran.stderr
    assert "flashinfer-jit-cache is what runs" in ran.stdout
    assert not (container.packages / "flashinfer" / ".fp4patch").exists()

    ran = container.launch(FP4PATCH_JIT="1", FP4PATCH_VARIANT="next4")
    assert not package.exists()
    assert ran.returncode == 2
    assert "next4" in ran.stderr  # the requested variant is applied, and a refusal stops the launch


def test_compiled_code_that_gb10_does_not_load_stops_the_launch(
    container: Container, module: Callable[[str], Path]
) -> None:
    install_vllm(container, module("120a"))
    jit_cache(container, module("120f"))
    ran = container.launch()
    assert ran.returncode == 1
    assert "compiled code is not right for GB10, and no mod changes that" in ran.stderr
