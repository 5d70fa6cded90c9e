"""The launcher that compiles once, and the order of compilations of a whole build."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.whole_build import prefetch

HERE = Path(prefetch.__file__).parent


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A compiler that writes its object file a moment later, counts its runs, and fails on a source named ``bad``."""
    script = tmp_path / "compiler"
    script.write_text(
        '#!/bin/sh\necho >>"$0.runs"\nsleep 0.2\ncase $2 in *bad*) exit 3 ;; esac\n'
        'echo "object of $2" >"$4"\necho "$4: $2" >"$6"\n'
    )
    script.chmod(0o755)
    return script


def compile_once(compiler: Path, source: str, **environ: str) -> int:
    command = [str(HERE / "once.py"), str(compiler), "-c", source, "-o", "a.o", "-MF", "a.d"]
    variables = {"PATH": os.environ["PATH"], "ONCE": str(compiler.parent / "once"), **environ}
    return subprocess.run(command, cwd=compiler.parent, env=variables, check=False).returncode


def test_two_builds_that_ask_at_the_same_time_compile_once(compiler: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: compile_once(compiler, "a.cu"), range(2))) == [0, 0]
    (compiler.parent / "a.o").unlink()
    assert compile_once(compiler, "a.cu") == 0
    assert (compiler.parent / "a.o").read_text() == "object of a.cu\n"
    assert (compiler.parent / "a.d").read_text() == "a.o: a.cu\n"
    assert len((compiler.parent / "compiler.runs").read_text()) == 1
    (line,) = (compiler.parent / "once" / "times.jsonl").read_text().splitlines()
    assert json.loads(line)["wall"] >= 0.2


def test_a_compilation_that_fails_is_tried_again(compiler: Path) -> None:
    assert [compile_once(compiler, "bad.cu"), compile_once(compiler, "bad.cu")] == [3, 3]
    assert len((compiler.parent / "compiler.runs").read_text()) == 2


def test_a_trial_writes_empty_object_files(compiler: Path) -> None:
    assert compile_once(compiler, "a.cu", ONCE_EMPTY="1") == 0
    assert (compiler.parent / "a.o").read_bytes().startswith(b"\x7fELF")
    assert not (compiler.parent / "compiler.runs").exists()


def test_the_longest_compilation_starts_first_and_the_others_follow(tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    listing = [
        {
            "directory": str(build),
            "file": f"/src/{name}.cu",
            "command": f"echo {name} >>order; : -c /src/{name}.cu -o CMakeFiles/x.dir/{name}.o",
        }
        for name in ("short", "long", "unknown", "hopper/left_out")
    ]
    ninja = tmp_path / "ninja"
    ninja.write_text(f"#!/bin/sh\ncat <<'END'\nninja: Entering directory\n{json.dumps(listing)}\nEND\n")
    ninja.chmod(0o755)
    for name in ("build.ninja", "compile_commands.json"):
        (build / name).touch()
    (tmp_path / "seconds.json").write_text('{"x.dir/short.o": 5, "x.dir/long.o": 900}')
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, str(HERE / "prefetch.py"), f"{tmp_path}/bui*", "1", f"{tmp_path}/seconds.json"]
    command.append(f"{tmp_path}/end")
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (build / "order").read_text().split() == ["long", "unknown", "short"]
    assert (tmp_path / "end").exists()
    assert (tmp_path / "end.total").read_text() == "3"


def test_the_script_is_clean_and_says_that_nothing_was_started(tmp_path: Path) -> None:
    script = HERE / "build.sh"
    shellcheck = Path(sys.executable).parent / "shellcheck"
    assert subprocess.run([shellcheck, script], check=False).returncode == 0
    environ = {"PATH": os.environ["PATH"], "WHOLE_BUILD": str(tmp_path)}
    for words in (["wait", "1"], ["part", "0"]):
        run = subprocess.run([script, *words], env=environ, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (7, "nothing was started here\n")
    usage = subprocess.run([script], env=environ, capture_output=True, text=True, check=False)
    assert usage.returncode == 2
    assert re.findall(r"build\.sh (\w+)", usage.stdout) == ["pack", "start", "wait", "part"]
