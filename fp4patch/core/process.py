"""Run programs, several at a time, each with a time limit, so that all of them can be ended at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from fp4patch.core.errors import ProofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LIMIT_VARIABLE = "FP4PATCH_COMPILE_TIMEOUT"
"""Environment variable: the time limit of each compiler or disassembler, in seconds."""

DEFAULT_LIMIT = 1800.0
"""Seconds. The longest known compilation, an NVFP4 GEMM, takes about two minutes on a quiet core."""


class Cancelled(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The run was stopped; no result is to be expected."""


class Runner:
    """Runs programs, each in a process group of its own, and can end all of them at once.

    ``limit`` is the time in seconds that each program may take; None: that of the environment, or the default.
    """

    def __init__(self, environ: Mapping[str, str], limit: float | None = None) -> None:
        self._environ = dict(environ)
        self._limit = time_limit() if limit is None else limit
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: Sequence[str | Path], *, scratch: Path) -> tuple[int, str, str]:
        """Exit status, stdout and stderr. Intermediate files go to ``scratch``, which is the working directory.

        An interrupt that comes meanwhile ends the program. ProofError if it runs longer than the limit: it is ended
        with its children.
        """
        with self._lock:
            if self._stopped:
                raise Cancelled
            try:
                process = subprocess.Popen(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    cwd=scratch,
                    env=self._environ | {"TMPDIR": str(scratch), "LC_ALL": "C"},
                    start_new_session=True,
                )
            except OSError as error:
                raise ProofError(
                    f"{command[0]} does not run: {error.strerror}", help="see `fp4patch doctor`"
                ) from error
            self._running.add(process)
        try:
            with process:
                try:
                    out, err = process.communicate(timeout=self._limit)
                except subprocess.TimeoutExpired as expired:
                    _end(process)
                    process.wait()
                    raise ProofError(
                        f"{command[0]} did not finish in {self._limit:g} s and was ended",
                        help=f"run verify again; {LIMIT_VARIABLE}=SECONDS sets another limit for a slow machine",
                    ) from expired
                except BaseException:
                    _end(process)
                    process.wait()
                    raise
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Cancelled
        return process.returncode, out, err

    def stop(self) -> None:
        """End every running program with its children, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process)


def time_limit() -> float:
    """Return the time limit of each program in seconds, from the environment; UsageError if it is no such number."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        seconds = float(text) if text else DEFAULT_LIMIT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:  # false for NaN too
        raise UsageError(f"{LIMIT_VARIABLE} is {text!r}", help="set it to a number of seconds above 0")
    return seconds


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def processors() -> int:
    """Return the number of processors that this process may use; a container's quota does not count."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
