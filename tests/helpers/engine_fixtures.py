"""A real container engine for tests, and the smallest image that something can run in."""

import fcntl
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from fp4patch import cli
from fp4patch.catalog.manifest import data_root
from fp4patch.images import context
from fp4patch.images.plan import plan

SCRIPT = Path(__file__).parents[1] / "engine" / "engine.sh"
TINY = "fp4patch-test-tiny"


@pytest.fixture(scope="session")
def engine() -> Iterator[dict[str, str]]:
    """Return the environment for ``docker`` with an engine: the running one, else one that the script starts.

    It ends with the last of the processes that use it. The test is skipped with the script's reason if none can run;
    with FP4PATCH_REQUIRE_ENGINE=1 it fails.
    """
    if (
        shutil.which("docker")
        and subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0
    ):
        yield dict(os.environ)
        return
    home = Path(os.environ.get("FP4PATCH_ENGINE_DIR") or Path(tempfile.gettempdir(), "fp4patch-engine"))
    home.mkdir(parents=True, exist_ok=True)
    with (home / "engine.users").open("w") as users, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(users, fcntl.LOCK_SH)
        for name, value in start_engine().items():
            patch.setenv(name, value)
        yield dict(os.environ)
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        subprocess.run([SCRIPT, "stop"], check=True)


def start_engine() -> dict[str, str]:
    """Return the client's environment for the engine that the script starts, or finds running."""
    started = subprocess.run([SCRIPT, "start"], capture_output=True, text=True, check=False)
    if started.returncode == 77:
        without(f"no container engine: {started.stderr.strip().splitlines()[-1:]}")
    assert started.returncode == 0, started.stderr
    return {
        name: value.replace("$PATH", os.environ["PATH"]) for name, value in re.findall(r"(\w+)=(\S+)", started.stdout)
    }


def without(reason: str) -> NoReturn:
    """Skip the test; with FP4PATCH_REQUIRE_ENGINE=1 it fails."""
    if os.environ.get("FP4PATCH_REQUIRE_ENGINE"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address ``127.0.0.1:PORT`` of a registry, Debian's, for the time of the tests; empty when they begin."""
    folder = tmp_path_factory.mktemp("registry")
    program = shutil.which("docker-registry")
    if not program:
        try:
            program = str(debian_package("docker-registry", folder) / "usr/bin/docker-registry")
        except (OSError, subprocess.CalledProcessError):
            without("no docker-registry: apt install docker-registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "config.yml").write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
        f"http: {{addr: {address}}}\n"
    )
    command = [program, "serve", str(folder / "config.yml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://{address}/v2/"):
                break
            time.sleep(0.05)
        assert process.poll() is None, f"the registry ended with status {process.returncode}"
        yield address
        process.terminate()


def debian_package(name: str, folder: Path) -> Path:
    """Return the directory of an unpacked Debian package that is not installed."""
    subprocess.run(["apt-get", "-qq", "download", name], cwd=folder, check=True, capture_output=True)
    subprocess.run(["dpkg", "-x", next(folder.glob("*.deb")), folder / "unpacked"], check=True)
    return folder / "unpacked"


@pytest.fixture(scope="session")
def tiny_base(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of busybox alone, 2 MB."""
    busybox = shutil.which("busybox")
    if not busybox:
        unpacked = debian_package("busybox-static", tmp_path_factory.mktemp("busybox"))
        busybox = str(next(path for path in unpacked.rglob("bin/busybox")))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in ("sh", "cat", "echo", "ls", "sleep", "mkdir", "cp", "true", "env"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    subprocess.run(["docker", "import", "-", TINY], input=packed.getvalue(), capture_output=True, check=True)
    return TINY


@pytest.fixture(scope="session")
def real_proof(tmp_path_factory: pytest.TempPathFactory, pristine_tree: Callable[[str, str], Path]) -> Path:
    """Directories ``proof/`` and ``src/`` as the Dockerfile's stages make them, of a real CUTLASS 4.2.1 with next2,
    verified."""
    made = tmp_path_factory.mktemp("made")
    tree = made / "src" / "cutlass"
    source = pristine_tree("cutlass", "4.2.1")
    shutil.copytree(source / "include", tree / "include")
    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0
    receipts = made / "proof" / "receipts"
    receipts.mkdir(parents=True)
    shutil.copy(tree / ".fp4patch" / "receipt.json", receipts / "cutlass.json")
    verify = ["verify", "--no-execute", "--variant", "next2", "--arch", "sm_121a", "--json"]
    assert cli.run([*verify, str(made / "proof" / "verify.json"), str(tree)]) == 0
    pins = context.pins(plan("next2", ["12.1a"], "proof", trees={"cutlass": "4.2.1"}))
    (made / "proof" / "pins.json").write_text(json.dumps(pins))
    dockerfile = (data_root() / "dockerfiles" / "Dockerfile").read_text()
    (line,) = (line for line in dockerfile.splitlines() if "sha256sum verify.json" in line)
    subprocess.run(["bash", "-euc", line], cwd=made / "proof", env={**os.environ, "proof": "."}, check=True)
    for path in (tree / "include").rglob("*"):  # the patched files alone: an image needs no more to be checked
        if path.is_file() and path.name not in ("float_subbyte.h", "numeric_conversion.h"):
            path.unlink()
    return made
