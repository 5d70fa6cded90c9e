"""Real trees for tests: downloaded and unpacked once a machine, copied for each test that edits one."""

import gc
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command import Said
from few_probes import few_probes
from filelock import FileLock
from processes import becomes, running
from share import SEED, seed

from fp4patch.catalog.manifest import load
from fp4patch.core import progress
from fp4patch.core.store import cache_dir
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.sources.fetch import fetch

# A shell starts what it runs in the background deaf to SIGINT, nohup to SIGHUP, and the deafness is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Trees of tokens are no cycles: to look for these as often as Python does by default is an eighth of the suite's time.
gc.set_threshold(100_000, 50, 100)

# Tests make and remove hundreds of thousands of files. On a file system in memory that takes a fifth of the time off;
# an engine's images, gigabytes, stay on the disk.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    room = os.statvfs(MEMORY)
    if room.f_bavail * room.f_frsize >= 8 << 30 and not room.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("FP4PATCH_ENGINE_DIR", f"{tempfile.gettempdir()}/fp4patch-engine")
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What tests install is started once or twice: pip compiles none of it. Set to 1, this option would mean the opposite.
os.environ["PIP_NO_COMPILE"] = "0"

# The workers of a run choose the same shares as the process that starts them.
os.environ[SEED] = seed()

pytest_plugins = ["arm64", "browser", "engine_fixtures"]

SLOW_FIXTURES = {"pristine_tree", "toolchain", "engine", "browser"}
"""Fixtures that no fast test uses: trees of releases, compilers, containers, browsers."""
LONGEST = ("images", "integrations", "sabotage", "proof", "commands", "tools", "patches")
"""Directories of the longest tests, which come first, so that all workers end together."""
TREES = cache_dir() / "tests" / "trees"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of several workers that leaves processes behind: what they start inherits the run's number."""
    workers = session.config.pluginmanager.get_plugin("dsession")
    mark = f"PYTEST_XDIST_TESTRUNUID={workers.nodemanager.testrunuid}".encode() if workers else b""
    if mark and not becomes(lambda: not running(mark, "environ"), 10):  # a browser's helpers take their time
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        left = "; ".join(running(mark, "environ").values())
        session.config.get_terminal_writer().line(f"\nThis run left processes behind: {left}", red=True)


def pytest_report_header() -> str:
    return f"shares of the longest tests by {SEED}={seed()}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out what compiles, unpacks a release or is marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, or begin with the directories that take longest."""
    if config.getoption("--fast"):
        slow = [i for i in items if i.get_closest_marker("slow") or SLOW_FIXTURES & {*getattr(i, "fixturenames", ())}]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    else:
        items.sort(key=lambda item: (*LONGEST, part := item.nodeid.split("/")[1]).index(part))


@pytest.fixture(scope="session")
def pristine_tree() -> Callable[[str, str], Path]:
    """``pristine_tree("cutlass", "4.2.1")``: the real tree, by the project's own fetch. Read only: copy it to edit.

    Trees stay in the user's cache: to unpack all of them takes a minute. One that somebody wrote to is unpacked anew.
    """

    @cache
    def get(name: str, version: str) -> Path:
        target = load().target(name)
        archive = target.archive(version)
        assert archive
        tree = TREES / f"{name}-{version}-{archive.sha256[:16]}"
        TREES.mkdir(parents=True, exist_ok=True)
        listed = tree.with_name(f"{tree.name}.listed")
        with FileLock(f"{tree}.lock"):
            if not listed.exists() or listed.read_text() != _listing(tree):
                shutil.rmtree(tree, ignore_errors=True)
                fetch(target, version, tree, progress=progress.silent)
                listed.write_text(_listing(tree))
        return tree

    return get


def _listing(tree: Path) -> str:
    """Return a hash of the names, sizes and times of all files."""
    listed = hashlib.sha256()
    for folder, below, names in os.walk(tree):
        below[:] = sorted(name for name in below if name != "__pycache__")
        for name in sorted(names):
            found = os.lstat(f"{folder}/{name}")
            listed.update(f"{folder}/{name} {found.st_mode} {found.st_size} {found.st_mtime_ns}\n".encode())
    return listed.hexdigest()


@pytest.fixture
def tree_copy(pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """A writable copy of a real tree, without the directories that no patch changes."""
    left_out = shutil.ignore_patterns("cute", "conv", "gemm", "examples", "python", "test", "tools")

    def get(target: str, version: str) -> Path:
        copy = tmp_path / f"{target}-{version}"
        shutil.copytree(pristine_tree(target, version), copy, symlinks=True, ignore=left_out)
        return copy

    return get


@pytest.fixture
def whole_tree(pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """A copy of a real tree with everything that compiling needs."""

    def get(target: str, version: str) -> Path:
        source = pristine_tree(target, version)
        for folder in ("include", "tools/util/include"):
            shutil.copytree(source / folder, tmp_path / version / folder)
        return tmp_path / version

    return get


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The real compiler of the test environment's wheels, found as a user's would be."""
    return find_toolchain()


@pytest.fixture
def vllm(pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a real vLLM with what the patches edit and the probes compile.

    Directories of Python files in which no release has anything that a patch changes or names are left out.
    """
    left_out = (
        "vllm/benchmarks",
        "vllm/compilation",
        "vllm/distributed",
        "vllm/entrypoints",
        "vllm/lora",
        "vllm/multimodal",
        "vllm/reasoning",
        "vllm/tool_parsers",
        "vllm/transformers_utils",
        "model_executor/models",
        "v1/core",
        "v1/engine",
        "v1/kv_offload",
        "v1/spec_decode",
        "v1/worker",
    )

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if f"{folder}/{name}".endswith((".json", ".so", *left_out))}

    def get(version: str) -> Path:
        source, copy = pristine_tree("vllm", version), tmp_path / f"vllm-{version}"
        copy.mkdir()
        for folder in ("csrc", "cmake"):
            shutil.copytree(source / folder, copy / folder)
        shutil.copytree(source / "vllm", copy / "vllm", ignore=ignored)
        for file in ("CMakeLists.txt", "PKG-INFO", "setup.py"):
            shutil.copy2(source / file, copy)
        return copy

    return get


@pytest.fixture
def fp4patch(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Function that runs the command line and returns its output: ``fp4patch("apply", "--variant", "next2", tree)``."""
    return lambda *arguments: Said(capsys, *arguments)


@pytest.fixture
def probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """``probes("cutlass", "encode-float-x8", sampled=True)``: the data for this test, which have no other probes."""

    def only(target: str, *names: str, **options: bool) -> Path:
        data = few_probes(tmp_path / "data", dict.fromkeys(names, target), **options)
        monkeypatch.setenv("FP4PATCH_DATA", str(data))
        return data

    return only


@pytest.fixture
def doctor(fp4patch: Callable[..., Said]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Function that returns exit status and document of ``fp4patch doctor``."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        said = fp4patch("doctor", "--json", *arguments)
        return said.status, said.document

    return run
