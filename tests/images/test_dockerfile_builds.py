"""The Dockerfile built for real: a Debian that has nothing, the compiler of the package index, real trees.

The proof stage is that of the real patches with a few probes. The stages behind it have a vLLM of four kernels; the
workflow image.yml builds the real one, which takes hours. FP4PATCH_TEST_MACHINE=arm64 builds all of it for that
machine in emulation (`make arm64`).
"""

import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from few_probes import few_probes
from outside import diff_of, outside

from fp4patch import cli
from fp4patch.catalog.manifest import data_root
from fp4patch.images.context import wheel
from fp4patch.sources.index import index_config

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "dockerfiles" / "Dockerfile"
ARCH = "sm_121a"
PROBES = {"float-to-e2m1-x8": "cutlass", "encode-float-x8": "cutlass", "float8-to-e2m1": "vllm"}
# Both releases are on the package index; next2 is made for 4.3.5, which is not.
CUTLASS = {"next2": "4.4.2", "next3": "4.5.0"}
VLLM = "0.18.1"
MACHINES = {"amd64": 62, "arm64": 183}
"""``e_machine`` of an ELF file for each."""
OWN = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
MACHINE = os.environ.get("FP4PATCH_TEST_MACHINE", OWN)
TORCH = "torch==2.14.0"  # what vLLM 0.33.0 asks for; for CUDA 13.0 on the package index


@dataclass(frozen=True)
class Built:
    """Result of a build, and its plain log."""

    status: int
    log: str


Build = Callable[..., Built]


@pytest.fixture(scope="session")
def debian(engine: dict[str, str]) -> dict[str, str]:
    """The arguments that name a base image of Debian: of the machine that is built for, and of the engine's own."""
    script = ROOT / "tests" / "engine" / "base.sh"
    base, own = (
        subprocess.run([script, machine], env=engine, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        for machine in (MACHINE, OWN)
    )
    return {"BASE_IMAGE": base, "RUNTIME_IMAGE": base, "COMPILER_IMAGE": own}


@pytest.fixture
def build(engine: dict[str, str], debian: dict[str, str], tmp_path: Path) -> Build:
    """``build(data, target, out, VARIANT="next2")``: one stage of the Dockerfile, by an fp4patch with these data."""

    def run(
        data: Path,
        target: str,
        out: Path | None = None,
        contexts: Mapping[str, Path | str] = MappingProxyType({}),
        torch: str = TORCH,
        dockerfile: str = "",
        outside: Path | None = None,
        **arguments: str,
    ) -> Built:
        context = tmp_path / "context"
        shutil.rmtree(context, ignore_errors=True)
        context.mkdir()
        name, content = wheel(data)
        (context / name).write_bytes(content)
        shutil.copy2(data / "dockerfiles" / "fp4_objects.py", context)
        pins = json.dumps({"judged": ARCH.split(",")})
        (context / "with").mkdir()
        if outside:
            shutil.copytree(outside, context / "with" / outside.name)
        for file, text in {"constraints.txt": TORCH, "torch.txt": torch, "pins.json": pins}.items():
            (context / file).write_text(f"{text}\n")
        arguments = debian | {"FP4_ARCH": ARCH, "VLLM_VERSION": VLLM} | arguments
        done = subprocess.run(
            [
                "docker",
                "buildx",
                "build",
                "--progress=plain",
                "--network=host",
                f"--platform=linux/{MACHINE}",
                f"--target={target}",
                "--no-cache-filter=sources,proof,used",  # what an earlier run left in the engine's cache proves nothing
                *(f"--build-arg={argument}={value}" for argument, value in arguments.items()),
                *secrets(tmp_path),
                f"--output={out or 'type=cacheonly'}",
                *(f"--build-context={name}={source}" for name, source in contexts.items()),
                "-f",
                "-",
                str(context),
            ],
            env=engine,
            input=dockerfile or DOCKERFILE.read_text(),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        return Built(done.returncode, done.stderr)

    return run


def secrets(folder: Path) -> list[str]:
    """This machine's certificates and pip's index, for the build to reach the same."""
    index = index_config()
    config = folder / "pip.conf"
    lines = ["[global]", f"index-url = {index.urls[0]}", f"extra-index-url = {' '.join(index.urls[1:])}"]
    lines += [f"proxy = {index.proxy}" if index.proxy else "", "[install]", "no-compile = false"]  # pip's word for yes
    config.write_text("\n".join(lines) + "\n")
    given = [f"--secret=id=pip,src={config}"]
    if certificates := index.cert or ssl.get_default_verify_paths().cafile:
        given.append(f"--secret=id=ca,src={certificates}")
    return given


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of the image's fp4patch: the real patches, few probes, and samples of inputs."""
    copy = few_probes(tmp_path_factory.mktemp("data"), PROBES, sampled=True)  # other tests execute all inputs
    shutil.copytree(data_root() / "dockerfiles", copy / "dockerfiles")
    return copy


def test_the_proof_stage_patches_compiles_and_judges_and_its_files_come_out(
    build: Build, data: Path, tmp_path: Path, vllm: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out, tree = tmp_path / "proof", vllm(VLLM)
    pull_request = outside(
        tmp_path / "pr-1", "vllm", diff_of(tree, {"setup.py": (tree / "setup.py").read_text() + "#\n"})
    )
    built = build(data, "proof-export", out, outside=pull_request, VARIANT="next3", CUTLASS_VERSION=CUTLASS["next3"])
    assert built.status == 0, built.log
    verified = json.loads((out / "verify.json").read_text())
    assert [tree["target"] for tree in verified["trees"]] == ["vllm", "cutlass"]
    assert set(re.findall(r'"verdict": "(\w+)"', json.dumps(verified))) == {"pass"}
    assert "13.0.88" in json.dumps(verified)
    for target, version in (("cutlass", CUTLASS["next3"]), ("vllm", VLLM)):
        receipt = json.loads((out / "receipts" / f"{target}.json").read_text())
        assert (receipt["variant"], receipt["version"]) == ("next3", version)
        assert receipt["files"]
        assert ("setup.py" in receipt["files"]) is (target == "vllm")
    components = {
        c["name"]: c["version"] for c in json.loads((out / "sbom.toolkit.cdx.json").read_text())["components"]
    }
    assert components["nvidia-cuda-nvcc"] == "13.0.88"
    assert "fp4patch" in components
    assert "<html" in (out / "report.html").read_text()[:1000].lower()
    assert (out / "pins.json").is_file()
    assert cli.run(["doctor", str(out)]) == 0, capsys.readouterr().out


def test_a_patch_whose_code_breaks_a_rule_ends_the_build_at_the_proof(build: Build, data: Path, tmp_path: Path) -> None:
    """Its encoder goes through double, which is slow on GB10: only the machine code shows it.

    Its fp4patch is that of the other tests, with other data: the stage with the compiler is built once.
    """
    # The rule that breaks is on this probe; all others would be compiled and executed only to pass.
    broken = few_probes(tmp_path / "broken", {"float-to-e2m1-x8": "cutlass"}, sampled=True)
    template = broken / "patches/cutlass/e2m1-converter/converter.cuh"
    right = "uint32_t const bits = detail::copy_bits<float, uint32_t>(s);"
    assert template.read_text().count(right) == 1
    slow = right.replace("(s)", "(static_cast<float>(static_cast<double>(s) * 1.0000000001))")
    template.write_text(template.read_text().replace(right, slow))

    out = tmp_path / "proof"
    before, stage, after = DOCKERFILE.read_text().partition("FROM toolkit AS sources\n")
    assert stage
    given = {
        "contexts": {"broken": broken},
        "dockerfile": f"{before}{stage}COPY --from=broken / /broken\nENV FP4PATCH_DATA=/broken\n{after}",
    }
    built = build(data, "proof-export", out, VARIANT="next2", CUTLASS_VERSION=CUTLASS["next2"], **given)
    assert built.status != 0
    assert re.search(r"\[proof \d+/\d+\] RUN", built.log)
    assert "next2 applied to cutlass" in built.log
    said = re.search(r"fail: cutlass/float-to-e2m1-x8 on sm_121a\n(?:#\d+ [\d.]+   .*\n)+", built.log)
    assert said, built.log[-6000:]
    assert re.search(r"rule +without f64\n", said[0])
    assert not out.exists()  # nor the stages that begin with what proof copies out: kernels, wheel, runtime


# --- the wheel, and the look into it ---------------------------------------------------------------------------------

# A PyTorch that has a version alone, and a toolkit that its wheel would complete.
SMALL_TORCH = r"""
FROM toolkit AS small-torch
ARG COMPILER_CACHE=ccache
ENV PATH=/opt/vllm/venv/bin:${PATH}
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip,target=/etc/pip.conf <<'EOF'
#!/bin/bash
set -euo pipefail
python3 -m venv /opt/vllm/venv
python -m pip install -q setuptools cmake wheel
echo '{"diffs": []}' >/opt/fp4patch/proof/receipts/vllm.json
packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$packages/torch" "$packages/nvidia/cu13/lib" /src
echo '__version__ = "2.14.0"' >"$packages/torch/__init__.py"
EOF

"""
KERNEL = """
#include <cuda_fp4.h>
extern "C" __global__ void {name}(float2 *in, __nv_fp4x2_e2m1 *out) {{ out[{salt}] = __nv_fp4x2_e2m1(in[0]); }}
"""
NAMES = ("scaled_fp4_quant", "silu_and_mul", "experts", "entry")
SMALL_VLLM = {
    "CMakeLists.txt": f"""
cmake_minimum_required(VERSION 3.26)
project(small LANGUAGES CXX CUDA)
add_library(_C SHARED {" ".join(f"{name}.cu" for name in NAMES)})
""",
    "vllm/__init__.py": "",
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
""",
    "setup.py": """
import glob, os, shutil, subprocess
from setuptools import setup
from setuptools.command.build_py import build_py

class Build(build_py):
    def run(self):
        (folder,) = glob.glob("build/temp.*")
        subprocess.run(["cmake", "--build", folder, "--", "-k", "0"], check=True)
        shutil.copy(folder + "/lib_C.so", "vllm/_C.abi3.so")
        super().run()

data = {"vllm": ["*.so"]}
version = os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]  # as setuptools-scm does
setup(name="vllm", version=version, packages=["vllm"], package_data=data, cmdclass={"build_py": Build})
""",
}


def small_kernels() -> str:
    """Return the Dockerfile with a vLLM of four kernels, without the commands that look for patches in it."""
    text = DOCKERFILE.read_text()
    before, stage, after = text.partition("FROM torch AS kernels\n")
    kernels, part, rest = after.partition("FROM kernels AS part\n")
    kernels, patched = re.subn(r"COPY --from=proof .* /opt/fp4patch\nCOPY --from=proof .*\n", "", kernels)
    kernels, looks = re.subn(r'^fp4=.*\n(?:(?:"\$fp4|xargs| ).*\n)+', "", kernels, flags=re.MULTILINE)
    assert stage
    assert part
    assert (patched, looks) == (1, 1)
    stage = "FROM small-torch AS kernels\nCOPY --from=small-vllm / /src/vllm\n"
    return f"{before}{SMALL_TORCH}{stage}{kernels}{part}{rest}"


@pytest.fixture
def small(build: Build, data: Path, tmp_path: Path) -> Callable[..., Built]:
    """``small(target, out, arch="sm_120f", contexts={})``: a stage of that Dockerfile, for GB10."""
    tree = tmp_path / "vllm"
    salt = uuid.uuid4().int % 1_000_000  # a kernel that no compiler cache has
    kernels = {f"{name}.cu": KERNEL.format(name=name, salt=salt) for name in NAMES}
    for name, text in (SMALL_VLLM | kernels).items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)

    def run(target: str, out: Path | None = None, *, arch: str = "sm_120f", dockerfile: str = "", **more: Any) -> Built:
        contexts = {"small-vllm": tree} | more.pop("contexts", {})
        virtual = arch.replace("sm", "compute")
        flags = f"-DCMAKE_CUDA_ARCHITECTURES=OFF -DCMAKE_CUDA_FLAGS=-gencode=arch={virtual},code={arch}"
        arguments = {"FP4_FOR": "sm_121", "TORCH_CUDA_ARCH_LIST": "12.1a", "TORCH_VERSION": "", "CMAKE_ARGS": flags}
        dockerfile = dockerfile or small_kernels()
        return build(data, target, out, contexts=contexts, dockerfile=dockerfile, **(arguments | more))

    return run


def test_a_build_goes_on_from_what_was_compiled_before_it_failed_and_on_another_machine(
    small: Callable[..., Built], tmp_path: Path
) -> None:
    broken = tmp_path / "vllm" / "entry.cu"
    right = broken.read_text()
    broken.write_text("#error not yet\n")
    failed = small("wheel-export", tmp_path / "none")
    assert failed.status != 0
    assert "#error not yet" in failed.log
    assert not (tmp_path / "none").exists()

    broken.write_text(right)
    part = small("part-export", tmp_path / "cache", PART="1/2")
    assert part.status == 0, part.log[-6000:]
    assert re.findall(r"Building CUDA object \S+?/(\w+)\.cu\.o", part.log) == ["scaled_fp4_quant", "entry"]
    assert compiled(part.log) == (2, 1)  # entry.cu alone is compiled: scaled_fp4_quant.cu was, before the other failed

    # A machine that has nothing but these files: a cache mount is known by its path.
    elsewhere = small_kernels().replace("/var/cache/compiler", "/var/cache/elsewhere")
    given = {"compiler-cache": tmp_path / "cache"}
    built = small("wheel-export", tmp_path / "out", dockerfile=elsewhere, contexts=given)
    assert built.status == 0, built.log[-6000:]
    assert compiled(built.log) == (4, 4)
    assert json.loads((tmp_path / "out" / "proof" / "binaries.json").read_text())["verdict"] == "green"
    (made,) = (tmp_path / "out").glob("*.whl")
    assert made.name == f"vllm-{VLLM}+fp4patch.next3-py3-none-any.whl"
    with zipfile.ZipFile(made) as packed:
        assert int.from_bytes(packed.read("vllm/_C.abi3.so")[18:20], "little") == MACHINES[MACHINE]
        info = f"vllm-{VLLM}+fp4patch.next3.dist-info"
        assert packed.read(f"{info}/fp4patch/vllm.json") == b'{"diffs": []}\n'
        assert f"{info}/fp4patch/vllm.json,sha256=" in packed.read(f"{info}/RECORD").decode()


def compiled(log: str) -> tuple[int, int]:
    """Return how many compilations the last stage of a log requested from the compiler cache, and how many it had."""
    counts = re.findall(r"Cacheable calls: +(\d+) /.*\n.*  Hits: +(\d+) /", log)
    (calls, hits), (all_calls, all_hits) = ((int(one), int(other)) for one, other in counts[-2:])
    return all_calls - calls, all_hits - hits


def test_a_wheel_that_converts_in_software_for_the_gpu_asked_for_ends_the_build(
    small: Callable[..., Built], tmp_path: Path
) -> None:
    built = small("wheel-export", tmp_path / "out", arch="sm_121", VARIANT="native")
    assert built.status != 0
    assert '"verdict": "red"' in built.log
    assert "native does not convert in software for sm_121" in built.log
    assert not (tmp_path / "out").exists()


# --- the runtime image -----------------------------------------------------------------------------------------------

# As FlashInfer does when a kernel is first used: compile for the present GPU, link with the toolkit's directories.
FIRST_USE = r"""
FROM runtime AS used
RUN <<'EOF'
#!/bin/bash
set -euo pipefail
cd "$(mktemp -d)"
cat >kernel.cu <<'CUDA'
#include <cub/version.cuh>
#include <cuda.h>
#include <cuda_fp4.h>
__global__ void encode(float2 *in, __nv_fp4x2_e2m1 *out) { out[0] = __nv_fp4x2_e2m1(in[0]); }
extern "C" int encode_once() { return cuInit(0) + cudaGetLastError() + (encode<<<1, 1>>>(nullptr, nullptr), 0); }
CUDA
"$CUDA_HOME/bin/nvcc" -arch=sm_121a -shared -Xcompiler -fPIC kernel.cu -o kernel.so \
  -L"$CUDA_HOME/lib64" -L"$CUDA_HOME/lib64/stubs" -lcudart -lcuda
"$CUDA_HOME/bin/nvcc" --version
id -u
touch ~/.cache/kept
vllm serve
cat /opt/fp4patch/proof/receipts/vllm.json
EOF
"""


def test_the_runtime_image_compiles_what_is_compiled_at_first_use_and_not_as_root(
    build: Build, data: Path, tmp_path: Path
) -> None:
    """Small wheels replace torch and vLLM, whose real ones take hours and 10 GB."""
    stage = tmp_path / "wheel"
    dist, proof = stage / "opt" / "vllm" / "dist", stage / "opt" / "fp4patch" / "proof" / "receipts"
    dist.mkdir(parents=True)
    proof.mkdir(parents=True, mode=0o700)
    (proof / "vllm.json").write_text('{"diffs": []}')
    version = "cuda: Optional[str] = '13.0'\n"
    torch = stand_in(dist, "torch", "2.14.0", {"torch/version.py": f"from typing import Optional\n{version}"}, [])
    main = "import sys\ndef main():\n    print('vllm', *sys.argv[1:])\n"
    stand_in(dist, "vllm", VLLM, {"vllm.py": main}, ["torch==2.14.0"])

    used = DOCKERFILE.read_text() + FIRST_USE
    built = build(data, "used", contexts={"wheel": stage}, torch=f"/dist/{torch}", dockerfile=used)
    assert built.status == 0, built.log[-6000:]
    said = "\n".join(re.findall(r"^#\d+ [\d.]+ (.*)$", built.log[built.log.index("[used 1/1]") :], re.MULTILINE))
    assert re.search(r'release 13\.0, V13\.0\.88\n.*\n10001\nvllm serve\n\{"diffs": \[\]\}$', said), said


def test_a_torch_without_cuda_is_no_runtime_image(build: Build, data: Path, tmp_path: Path) -> None:
    dist, proof = tmp_path / "wheel" / "opt" / "vllm" / "dist", tmp_path / "wheel" / "opt" / "fp4patch" / "proof"
    dist.mkdir(parents=True)
    proof.mkdir(parents=True)
    version = "from typing import Optional\ncuda: Optional[str] = None\n"
    torch = stand_in(dist, "torch", "2.14.0", {"torch/version.py": version}, [])
    built = build(data, "runtime", contexts={"wheel": tmp_path / "wheel"}, torch=f"/dist/{torch}")
    assert built.status != 0
    assert "torch is a CPU build: name the index that has it for CUDA" in built.log


def stand_in(folder: Path, name: str, version: str, files: dict[str, str], requires: list[str]) -> str:
    """A wheel with these files, and a command of its name if it has a module of its name; its file's name."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    written = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    if f"{name}.py" in files:
        written[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}:main\n"
    file = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(folder / file, "w") as archive:
        for path, text in written.items():
            archive.writestr(path, text)
    return file
