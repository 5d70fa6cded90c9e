"""Run nvcc step by step: what its compilers make of one preprocessed text is made once for several targets.

They take most of the time of a probe. Targets of one generation often have the same text for the device, for the macros
that differ decide the same; then their PTX differs in the ``.target`` line alone. ptxas runs for each of them. The text
for the host is the same for all; the object file has the device's code of the first one, which nothing reads there.
"""

import re
import shlex
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from fp4patch.core.process import Runner
from fp4patch.core.store import key

_STEP = "#$ "
"""Begins each line of ``nvcc --dryrun`` that sets a variable of the shell, or is a command."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
# Example: cicc -arch compute_120f "/tmp/probe.cpp1.ii"
_COMPILES = re.compile(r'(?!.* -E ).*"(?P<text>[^"]+\.(?:ii|cudafe1\.cpp))"')  # none of the preprocessor
_ARCH = re.compile(r" -arch compute_((\d+)\d([af]?)) ")
_OF_HOST = re.compile(r" -D__CUDA_ARCH\w*(=\w+)?")  # macros that nothing of a preprocessed text asks for
_TARGET = re.compile(rb"^(\.target sm_)\w+", re.MULTILINE)


@dataclass(frozen=True)
class _Made:
    """What a compiler came to: its status and messages, and the files that it wrote, by name."""

    scratch: Path
    target: str
    """``121a`` of ``sm_121a``; empty for the host."""
    status: int
    log: str
    files: Mapping[str, bytes]


class Nvcc:
    """Runs the commands that nvcc would run, and its compilers once for each text, and generation of targets."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._made: dict[str, Future[_Made]] = {}
        self._lock = threading.Lock()

    def run(self, command: Sequence[str | Path], scratch: Path) -> tuple[int, str]:
        """Return exit status and messages of an nvcc command that keeps its intermediate files in ``scratch``."""
        status, log, plan = self._runner.run([command[0], "--dryrun", *command[1:]], scratch=scratch)
        lines = plan.splitlines()
        steps = [line.removeprefix(_STEP) for line in lines if line.startswith(_STEP)]
        log += "".join(f"{line}\n" for line in lines if not line.startswith(_STEP))
        variables = [line.partition("=") for line in steps if _VARIABLE.match(line)]
        shell = "".join(f"{name}={shlex.quote(value)}\n" for name, _, value in variables)
        shell += "export PATH LD_LIBRARY_PATH\n"
        for step in steps:
            if status == 0 and not _VARIABLE.match(step):
                compiles = _COMPILES.match(step)
                run = self._compiler(shell, compiles, scratch) if compiles else self._shell(shell + step, scratch)
                status, log = run[0], log + run[1]
        return status, log

    def _shell(self, script: str, scratch: Path) -> tuple[int, str]:
        status, out, err = self._runner.run(["/bin/sh", "-c", script], scratch=scratch)
        return status, out + err

    def _compiler(self, shell: str, step: re.Match[str], scratch: Path) -> tuple[int, str]:
        arch, text = _ARCH.search(step.string), Path(step["text"])
        target, major, suffix = arch.groups() if arch else ("", "", "")
        # The host's text includes its stub, which has the kernels and includes the device's code.
        texts = (path.read_bytes() for path in (text, text.with_suffix(".stub.c")) if path.is_file())
        options = _OF_HOST.sub("", step.string.replace(str(scratch), "").replace(f" compute_{target} ", " "))
        name = key(options, major, str(bool(suffix)), *(text.replace(bytes(scratch), b"") for text in texts))
        ours: Future[_Made] = Future()
        with self._lock:
            made = self._made.setdefault(name, ours)
        if made is not ours:
            return self._moved(made.result(), scratch, target)
        try:
            before = set(scratch.iterdir())
            status, log = self._shell(shell + step.string, scratch)
            files = {path.name: path.read_bytes() for path in set(scratch.iterdir()) - before if path.is_file()}
            ours.set_result(_Made(scratch, target, status, log, files))
        except BaseException as error:
            ours.set_exception(error)
            raise
        return status, log

    def _moved(self, made: _Made, scratch: Path, target: str) -> tuple[int, str]:
        """Write the files as if they had been made for this target in this directory."""
        for name, content in made.files.items():
            here = content.replace(bytes(made.scratch), bytes(scratch))
            file = scratch / name.replace(f"compute_{made.target}", f"compute_{target}")
            file.write_bytes(_TARGET.sub(rb"\g<1>" + target.encode(), here) if target else here)
        return made.status, made.log.replace(str(made.scratch), str(scratch))
