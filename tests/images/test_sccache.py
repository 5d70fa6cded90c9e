"""Support of the compiler cache sccache for this nvcc: its local storage, and the same version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fp4patch.proof.toolchain import Toolchain

SCCACHE = str(Path(sys.executable).parent / "sccache")
DOCKERFILE = Path(__file__).parents[2] / "dockerfiles" / "Dockerfile"


@pytest.fixture
def environ(toolchain: Toolchain, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server of its own with an empty storage; the path of a socket must be short."""
    with tempfile.TemporaryDirectory() as short:
        own = dict(toolchain.environ) | {"SCCACHE_DIR": str(tmp_path / "storage"), "SCCACHE_SERVER_UDS": f"{short}/s"}
        yield own
        subprocess.run([SCCACHE, "--stop-server"], env=own, capture_output=True, check=False)


def stats(environ: dict[str, str], *options: str) -> dict[str, Any]:
    words = [SCCACHE, *options, "--stats-format", "json"]
    return dict(json.loads(subprocess.run(words, env=environ, capture_output=True, check=True).stdout)["stats"])


def test_what_nvcc_has_compiled_for_both_gpus_comes_out_of_the_storage_of_another_server(
    toolchain: Toolchain, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { *p = 1; }\n")
    codes = [f"-gencode=arch=compute_{gpu},code=sm_{gpu}" for gpu in ("120a", "121a")]
    host = ["-ccbin", str(toolchain.host_compiler)]
    found, objects = [], []
    for _ in range(2):
        command = [SCCACHE, str(toolchain.nvcc), *toolchain.flags, *host, *codes, "-c", "k.cu", "-o", "k.o"]
        subprocess.run(command, cwd=tmp_path, env=environ, check=True)
        found.append(stats(environ, "--show-stats"))
        objects.append((tmp_path / "k.o").read_bytes())
        (tmp_path / "k.o").unlink()
        subprocess.run([SCCACHE, "--stop-server"], env=environ, capture_output=True, check=True)
    assert objects[0] == objects[1]
    misses, hits = (found[0]["cache_misses"]["counts"], found[1]["cache_hits"]["counts"])
    assert misses.get("CUBIN") == 2  # one a GPU: the part that takes the time
    assert hits == misses
    assert found[1]["cache_misses"]["counts"] == {}


def test_it_is_the_version_that_the_image_gets() -> None:
    said = subprocess.run([SCCACHE, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"ARG SCCACHE_VERSION=(.*)", DOCKERFILE.read_text()) == [said.removeprefix("sccache ").strip()]
