"""The script that starts and ends an engine, after one that was killed."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_fixtures import SCRIPT, start_engine


@pytest.fixture
def home(engine: dict[str, str]) -> Iterator[Path]:
    """Return a directory for an engine that shares the packages of the other tests; short, for the sockets in it."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(engine.get("DOCKER_CONFIG", "/")).parent / "prefix"
        if unpacked.is_dir():
            (Path(folder) / "prefix").symlink_to(unpacked)
        yield Path(folder)


def test_an_engine_that_was_killed_is_in_nobodys_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FP4PATCH_ENGINE_DIR", str(home))
    pid_file = home / "overlay2" / "run" / "pid"
    try:
        for _ in range(2):
            client = os.environ | start_engine()
            assert subprocess.run(["docker", "version"], env=client, capture_output=True, check=False).returncode == 0
            kill(int(pid_file.read_text()))
        pid_file.write_text(str(os.getpid()))  # of another process by now
    finally:
        ended = subprocess.run([SCRIPT, "stop"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (home / "overlay2" / "run").exists()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
