"""What is common to the programs that run translated machine code on the host: the kernel, and the compiler's flags."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fp4patch.sass.error import SassError
from fp4patch.sass.listing import Listing
from fp4patch.sass.operands import Layout

_LANGUAGE = ("-x", "c", "-std=gnu11", "-pthread", "-w", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-fast-math")
STRAY = 3
"""The program's exit status where a kernel leaves its memory."""
STUCK = 4
"""Its exit status where all threads wait for one another."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Kernel:
    """A kernel as C.

    It defines ``static void SASS_KERNEL(const struct launch *launch)``, after an ``#include`` of the runtime; of a
    grid ``static void SASS_KERNEL(const struct launch *launch, struct lane *lane)``, and ``SASS_REGISTERS``, for
    ``grid.c``.
    """

    c: str
    layout: Layout
    listing: Listing
    """Its source."""
    shared: int = 48 << 10
    """Bytes of its own shared memory."""


def compile_host(
    folder: Path, texts: Mapping[str, str], command: Sequence[str], environ: Mapping[str, str] | None
) -> None:
    """Write a program to ``folder`` and compile it; SassError with the compiler's words where it does not."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    status, _, messages = run_program([command[0], *_LANGUAGE, *command[1:]], folder=folder, environ=environ)
    if status:
        said = "\n".join(messages.strip().splitlines()[:20])
        raise SassError("the translated machine code does not compile for the host", help=said)


@cache
def for_this_processor(compiler: str) -> tuple[str, ...]:
    """Return the option to compile for this machine's processor; none if the compiler, a cross compiler, has none."""
    status, _, _ = run_program([compiler, "-march=native", "-E", "-x", "c", "/dev/null"])
    return () if status else ("-march=native",)


def run_program(
    command: Sequence[str | Path], *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a program to its end: exit status, stdout and stderr. SassError if it does not start."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise SassError(f"there is no {command[0]} to compile the translation with", help="install g++") from error
    except OSError as error:
        remedy = "set TMPDIR to a directory that is not mounted noexec"
        raise SassError(f"{command[0]} does not run: {error.strerror}", help=remedy) from error
    return done.returncode, done.stdout, done.stderr
