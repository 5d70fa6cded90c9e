"""Run programs, several at a time, each with a time limit, so that all of them can be ended at once."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch.core import sandbox
from fp4patch.core.errors import ProofError, ToolchainError

LIMIT = 1800.0
"""Seconds that a compiler or disassembler may take. The longest known compilation, an NVFP4 GEMM, takes two minutes."""


class Cancelled(Exception):  # noqa: N818 - not an error: the user requested it
    """The run was stopped; no result is to be expected."""


class Runner:
    """Runs programs, each in a process group of its own, and can end all of them at once."""

    def __init__(self, environ: Mapping[str, str], limit: float = LIMIT) -> None:
        self._environ = dict(environ)
        self._limit = limit
        self._started: list[subprocess.Popen[str]] = []
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: Sequence[str | Path], *, scratch: Path) -> tuple[int, str, str]:
        """Exit status, stdout and stderr. Intermediate files go to ``scratch``, which is the working directory.

        An interrupt that comes meanwhile ends the program. ProofError if it does not start, or runs longer than the
        limit: it is ended with its children.
        """
        environ = self._environ | {"TMPDIR": str(scratch), "LC_ALL": "C"}
        try:
            with self._lock:
                if self._stopped:
                    raise Cancelled
                process = _start(command, scratch, environ)
                self._started.append(process)
            out, err = _finish(process, self._limit)
        except OSError as error:
            raise ProofError(f"{command[0]} {error.strerror}", help="see `fp4patch doctor`") from error
        if self._stopped:
            raise Cancelled
        return process.returncode, out, err

    def stop(self) -> None:
        """End every running program with its children, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._started:
                if process.returncode is None:
                    _end(process)


@dataclass(frozen=True)
class Done:
    """A program that ended: its exit status and its output, where a byte that is no UTF-8 is replaced."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Last 20 lines of its messages, or of its output if there are none."""
        return "\n".join((self.err or self.out).strip().splitlines()[-20:])


def located(program: str) -> str | None:
    """Return the path of a program beside this Python, where pip installs it, or on PATH; None if there is none."""
    return shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")


def run(
    command: Sequence[str | Path],
    *,
    limit: float | None = 60,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    text: str = "",
) -> Done:
    """Run a program with ``text`` as its input, and end it with its children after ``limit`` seconds (None: never).

    OSError is raised if it does not start, and TimeoutError, which is one, if it does not finish. Both have a
    ``strerror`` that fits behind the program's name.
    """
    process = _start(command, folder, environ)
    out, err = _finish(process, limit, text)
    return Done(process.returncode, out, err)


class Trust:
    """Whether what a tree's own code does is run as a build would run it, or in a sandbox."""

    trees = False


def run_confined(
    command: Sequence[str | Path],
    scratch: Path,
    *,
    limit: float,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    text: str = "",
) -> Done:
    """Run a program that does what a source tree says, in the sandbox of ``sandbox.py``: it writes below ``scratch``.

    The program is named by an absolute path. OSError is raised as by :func:`run`, and ToolchainError where this machine
    has no sandbox and :class:`Trust` does not do without.
    """
    if Trust.trees:
        return run(command, limit=limit, folder=folder, environ=environ, text=text)
    lack = sandbox.missing()
    if not lack:
        confined = [sys.executable, "-I", "-S", "-B", sandbox.__file__, scratch.resolve(), *command]
        done = run(confined, limit=limit, folder=folder, environ=environ, text=text)
        if done.status == sandbox.NOT_STARTED and done.err.startswith(f"{command[0]}: "):
            reason = done.err.strip().removeprefix(f"{command[0]}: ")
            raise OSError(errno.ENOEXEC, f"does not run: {reason}")
        if done.status != sandbox.NOT_CONFINED or not done.err.startswith(sandbox.NAME):
            return done
        lack = done.err.strip().removeprefix(f"{sandbox.NAME}: ")
    raise ToolchainError(
        f"a tree's own code is run in a sandbox, and there is none: {lack}",
        help="--trust-tree runs it with your rights, as a build would; SECURITY.md says what that is",
    )


def _start(
    command: Sequence[str | Path], folder: Path | None, environ: Mapping[str, str] | None
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
    except OSError as error:
        error.strerror = f"does not run: {error.strerror}"
        raise


def _finish(process: subprocess.Popen[str], limit: float | None, text: str = "") -> tuple[str, str]:
    """Return the output of a program. It is ended with its children after the limit, or by an interrupt."""
    with process:
        try:
            return process.communicate(text, timeout=limit)
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, f"did not finish in {limit:g} s and was ended") from None
        finally:
            if process.returncode is None:
                _end(process)
                process.wait()


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def processors() -> int:
    """Return the number of processors that this process may use; a container's quota does not count."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
