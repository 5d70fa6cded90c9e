"""The Dockerfile lines of the page, built by a real engine on real sources.

Here no repository can be cloned and no base image pulled: a CUTLASS of the package index replaces the page's, and
Debian with Python replaces a CUDA image. `status` replaces `verify`, which takes minutes; the project's own Dockerfile
tests that verify runs in a container and ends a build.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration_page import block

from fp4patch.catalog.manifest import data_root
from fp4patch.images.context import wheel
from fp4patch.sources.index import index_config

ROOT = Path(__file__).parents[2]
VLLM, CUTLASS = "0.33.0", "4.2.1"

OUT = """
RUN --network=none test -f "$VLLM_CUTLASS_SRC_DIR/include/cutlass/cutlass.h"
FROM scratch AS out
COPY --from=0 {vllm} /vllm
COPY --from=0 /opt/cutlass /cutlass
"""


def as_here(text: str) -> str:
    """A block of the page, with what can be had on this machine."""
    text = re.sub(r" @ git\+https\S+(?=')", "", text)  # the wheel of this checkout has the name
    text, changed = re.subn(r"cutlass==[\d.]+", f"cutlass=={CUTLASS}", text)
    assert changed in {0, 1}
    return re.sub(r"fp4patch verify --variant \w+", "fp4patch status", text)


def build(environ: dict[str, str], context: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", "buildx", "build", "--progress=plain", "--network=host", *options, str(context)]
    return subprocess.run(command, env=environ, stderr=subprocess.PIPE, text=True, check=False)


@pytest.fixture
def user_base(engine: dict[str, str]) -> str:
    """Write the lines above ours in a third-party Dockerfile, for a context with ``ca.crt`` and fp4patch's wheel."""
    script = ROOT / "tests" / "engine" / "base.sh"
    debian = subprocess.run([script], env=engine, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    index = index_config()
    return f"""
FROM {debian}
RUN apt-get -qq update && apt-get -qq install -y --no-install-recommends python3-venv
COPY ca.crt /etc/ssl/certs/ca-certificates.crt
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_INDEX_URL={index.urls[0]} \\
    PIP_EXTRA_INDEX_URL="{" ".join(index.urls[1:])}" PIP_PROXY={index.proxy or ""} PIP_FIND_LINKS=/wheels \\
    PIP_NO_COMPILE=0
COPY fp4patch-*.whl /wheels/
COPY vllm /workspace/vllm
WORKDIR /workspace/vllm
"""


def test_three_instructions_bring_somebodys_vllm_and_its_cutlass_into_the_variants_state(
    engine: dict[str, str], user_base: str, vllm: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = block("dockerfile", "python3 -m venv")
    assert len(re.findall("(?m)^[A-Z]", lines)) == 3
    context = tmp_path / "context"
    context.mkdir()
    vllm(VLLM).rename(context / "vllm")
    name, content = wheel(data_root())
    (context / name).write_bytes(content)
    shutil.copy(index_config().cert or ssl.get_default_verify_paths().cafile or os.devnull, context / "ca.crt")
    (context / "Dockerfile").write_text(user_base + as_here(lines) + OUT.format(vllm="/workspace/vllm"))
    built = build(engine, context, f"--output={tmp_path / 'out'}")
    assert built.returncode == 0, built.stderr[-6000:]
    # Not the build's log: an engine that has these layers prints none of their output.
    for tree, version in (("vllm", VLLM), ("cutlass", CUTLASS)):
        receipt = json.loads((tmp_path / "out" / tree / ".fp4patch" / "receipt.json").read_text())
        assert (receipt["target"], receipt["version"], receipt["variant"]) == (tree, version, "next3")
        assert receipt["files"]


def test_vllms_own_dockerfile_takes_both_trees_from_a_context_that_was_patched_before(
    engine: dict[str, str],
    tiny_base: str,
    pristine_tree: Callable[[str, str], Path],
    vllm: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """The stage that compiles, with nothing left of it but its COPY lines and ours."""
    upstream, tree = pristine_tree("vllm", VLLM), vllm(VLLM)
    text = (upstream / "docker" / "Dockerfile").read_text(encoding="utf-8")
    (stage,) = re.findall(r"(?ms)^FROM base AS csrc-build\n(.*?)^FROM ", text)
    copies = re.findall(r"(?m)^COPY (?!--from).*$", stage)
    assert copies.count("COPY csrc csrc/") == 1
    below = copies.index("COPY csrc csrc/") + 1
    for source in (name for line in copies for name in line.split()[1:-1] if not (tree / name).exists()):
        (tree / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(upstream / source, tree / source)
    ours = block("dockerfile", "COPY --from=cutlass").splitlines()
    lines = [f"FROM {tiny_base}", "WORKDIR /workspace", *copies[:below], *ours, *copies[below:]]
    (tree / "docker").mkdir()
    (tree / "docker" / "Dockerfile").write_text("\n".join(lines) + OUT.format(vllm="/workspace"))

    commands = as_here(block("sh", "--build-context cutlass")).rstrip() + f" --output={tmp_path / 'out'}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{engine['PATH']}"
    ran = subprocess.run(
        ["bash", "-euc", commands], cwd=tree, env=engine | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-6000:]
    patched = re.findall(r"(?m)^    (\S+)$", ran.stdout)
    patched = [file for file in patched if (tree / file).exists()]  # the others are of the CUTLASS beside it
    assert patched
    for file in patched:
        assert (tmp_path / "out" / "vllm" / file).read_bytes() == (tree / file).read_bytes()
    receipt = json.loads((tmp_path / "out" / "cutlass" / ".fp4patch" / "receipt.json").read_text())
    assert receipt["variant"] == "next3"


@pytest.mark.parametrize("version", ["0.12.0", VLLM])
def test_the_page_names_lines_that_are_in_vllms_dockerfile(
    pristine_tree: Callable[[str, str], Path], version: str
) -> None:
    text = (pristine_tree("vllm", version) / "docker" / "Dockerfile").read_text(encoding="utf-8")
    line = "COPY csrc csrc/" if "AS csrc-build" in text else "COPY . ."
    assert (line == "COPY . .") == (version == "0.12.0")
    compiles = text.index("setup.py bdist_wheel")
    assert text.count(f"\n{line}\n", 0, compiles) == 1
    assert "CUTLASS_REVISION" in (pristine_tree("vllm", version) / "CMakeLists.txt").read_text(encoding="utf-8")
