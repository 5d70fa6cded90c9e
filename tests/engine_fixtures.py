"""A real container engine for tests, and the smallest image that something can run in."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.images import context
from fp4patch.verbs.build import Options, plan

SCRIPT = Path(__file__).parent / "engine" / "engine.sh"
TINY = "fp4patch-test-tiny"


@pytest.fixture(scope="session")
def engine() -> Iterator[dict[str, str]]:
    """The environment in which ``docker`` speaks to an engine: the one that is there, else one that the script starts.

    Skipped with the script's reason where none can run; with FP4PATCH_REQUIRE_ENGINE=1 that is a failure.
    """
    patch = pytest.MonkeyPatch()
    try:
        if not _answers():
            started = subprocess.run([str(SCRIPT), "start"], capture_output=True, text=True, check=False)
            if started.returncode == 77:
                reason = f"no container engine: {started.stderr.strip().splitlines()[-1:]}"
                if os.environ.get("FP4PATCH_REQUIRE_ENGINE"):
                    pytest.fail(reason)
                pytest.skip(reason)
            assert started.returncode == 0, started.stderr
            for name, value in re.findall(r"(\w+)=(\S+)", started.stdout):
                patch.setenv(name, value.replace("$PATH", os.environ["PATH"]))
        yield dict(os.environ)
    finally:
        patch.undo()


def _answers() -> bool:
    if shutil.which("docker") is None:
        return False
    run = subprocess.run(["docker", "version"], capture_output=True, check=False)
    return run.returncode == 0


@pytest.fixture(scope="session")
def tiny_base(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of busybox alone, 2 MB."""
    busybox = shutil.which("busybox") or _busybox(tmp_path_factory.mktemp("busybox"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in ("sh", "cat", "echo", "ls", "sleep", "mkdir", "cp", "true", "env"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    subprocess.run(["docker", "import", "-", TINY], input=packed.getvalue(), capture_output=True, check=True)
    return TINY


def _busybox(folder: Path) -> str:
    """Debian's static busybox, unpacked and not installed."""
    subprocess.run(["apt-get", "-qq", "download", "busybox-static"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["dpkg", "-x", next(folder.glob("*.deb")), folder], check=True)
    return str(next(folder.glob("*/busybox"), None) or next(folder.glob("usr/*/busybox")))


@pytest.fixture
def fp4patch_command() -> list[str]:
    """The command as a process of its own."""
    return [sys.executable, "-m", "fp4patch"]


@pytest.fixture(scope="session")
def real_proof(tmp_path_factory: pytest.TempPathFactory, pristine_tree: Callable[[str, str], Path]) -> Path:
    """``proof/`` and ``src/`` as the Dockerfile's stages make them, of a real CUTLASS 4.2.1 with next2, verified."""
    made = tmp_path_factory.mktemp("made")
    tree = made / "src" / "cutlass"
    source = pristine_tree("cutlass", "4.2.1")
    shutil.copytree(source / "include", tree / "include")
    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0
    receipts = made / "proof" / "receipts"
    receipts.mkdir(parents=True)
    shutil.copy(tree / ".fp4patch" / "receipt.json", receipts / "cutlass.json")
    verify = [
        "verify",
        "--no-execute",
        "--variant",
        "next2",
        "--arch",
        "sm_121a",
        "--json",
        str(made / "proof" / "verify.json"),
    ]
    assert cli.run([*verify, str(tree)]) == 0
    planned = plan(Options(variant="next2", archs=("12.1a",), cutlass="4.2.1"))
    pins = context.pins(planned.request, planned.torch, planned.cuda)
    (made / "proof" / "pins.json").write_text(json.dumps(pins))
    for path in (tree / "include").rglob("*"):  # the patched files alone: an image needs no more to be checked
        if path.is_file() and path.name not in ("float_subbyte.h", "numeric_conversion.h"):
            path.unlink()
    return made
