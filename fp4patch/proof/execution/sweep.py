"""The program that runs translated machine code on the host: its files, its compilation, and what it writes.

One kernel is compared with the specification, or with another kernel. The C is the same for both.
"""

import platform
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from fp4patch.catalog.probe import BITS, Executes, stored_bits
from fp4patch.catalog.rule import Promise
from fp4patch.core.errors import ProofError
from fp4patch.proof.specification import interval_lines
from fp4patch.proof.sweep_result import InputClass, NumericsRow, row_of
from fp4patch.sass.program import STRAY, Kernel, compile_host
from fp4patch.sass.translate import RUNTIME, runtime

# A loop over threads becomes vectors where no jump is left in it and every operation has a vector form: without the
# threading of jumps predicated instructions stay selections, and the runtime's own conversions replace the host's.
# The exceptions that a comparison raises are not used. Code with jumps of its own never becomes vectors.
_FAST = ("-O3", "-march=native", "-fno-trapping-math", "-DLIFT_PORTABLE")
_STRAIGHT = ("-fno-thread-jumps",)
_WIDE = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
_INPUTS = {"float32": 32, "float16": 16, "bfloat16": 8}
EVERY_CLASS = (1 << len(InputClass)) - 1
"""A bit for each class of inputs."""
_ON = {None: "-1", Promise.EXACT: "0", Promise.EXACT_BUT_NAN_SIGN: "1"}


@dataclass(frozen=True)
class Swept:
    """Output of a program."""

    corners: tuple[NumericsRow, ...]
    """Inputs at the boundaries, each through every lane."""
    rows: tuple[NumericsRow, ...]
    """The sweep."""
    digest: str = ""
    """Order-independent digest of all stored values: 16 hex digits; empty if it was not requested."""
    passes: int = 1
    """Number of lanes that each input went through."""
    alike: bool = True
    """True if the lanes that an input did not go through are the same function of their values."""
    stray: str = ""
    """Memory access of the kernel outside its own data; then nothing else was run."""


def files(kernel: Kernel, executes: Executes, reference: Kernel | None = None) -> dict[str, str]:
    """Return the texts of the program, by file name. With a reference the kernel is compared with that one."""
    here = resources.files("fp4patch.proof.execution")
    texts = {"sweep.c": (here / "sweep.c").read_text(encoding="utf-8"), RUNTIME: runtime()}
    words = [word for one in (kernel, reference) if one for word in one.immediates]
    texts |= {"immediates.inc": "".join(f"{word:#x}u,\n" for word in dict.fromkeys(words))}
    texts |= {"intervals.inc": interval_lines(executes.output), "kernel.inc": kernel.c}
    return texts | ({"reference.inc": reference.c} if reference else {})


def defines(kernel: Kernel, executes: Executes, reference: Kernel | None = None) -> tuple[str, ...]:
    """Compiler flags that define the kernel's arguments."""
    flags = (
        f"-DFP4PATCH_LANES={executes.lanes}",
        f"-DFP4PATCH_INPUT={_INPUTS[executes.input]}",
        f"-DFP4PATCH_BITS={stored_bits(executes.output)}",
        f"-DFP4PATCH_SIGN={1 << BITS[executes.output] - 1}",
        f"-DFP4PATCH_PARAMETERS={kernel.parameters}",
        f"-DFP4PATCH_BLOCK_SIZE={kernel.block_size}",
    )
    if reference is None:
        return flags
    return (
        *flags,
        f"-DFP4PATCH_REFERENCE_PARAMETERS={reference.parameters}",
        f"-DFP4PATCH_REFERENCE_BLOCK_SIZE={reference.block_size}",
    )


def build(
    folder: Path,
    kernel: Kernel,
    executes: Executes,
    reference: Kernel | None = None,
    *,
    compiler: Path | str = "gcc",
    environ: Mapping[str, str] | None = None,
    quick: bool = False,
) -> Path:
    """Write the program to ``folder`` and compile it; ProofError with the compiler's words where it does not.

    ``quick`` compiles in less time what runs in more: for a few inputs.
    """
    for name, text in files(kernel, executes, reference).items():
        (folder / name).write_text(text, encoding="utf-8")
    jumps = any("goto " in one.c for one in (kernel, reference) if one)
    how = ("-O1",) if quick else (*_FAST, *_WIDE, *(() if jumps else _STRAIGHT))
    command = [*how, *defines(kernel, executes, reference), "sweep.c", "-o", "sweep", "-lm"]
    compile_host(folder, command, compiler=compiler, environ=environ)
    return folder / "sweep"


def run(
    program: Path,
    *,
    threads: int = 1,
    stride: int = 1,
    until: Promise | None = None,
    digest: bool = False,
    turns: Sequence[int] = (0,),
    classes: int = EVERY_CLASS,
    seconds: float | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> str:
    """Return its output, for :func:`read`, over all inputs or every so many blocks of 1024 threads.

    ``until`` ends it at the first mismatch that the promise does not allow. ``progress`` gets the part that is done, 0
    to 1, in this thread. Inputs run once for each of ``turns``, rotated by so many lanes. Those of classes whose bit is
    not in ``classes`` are counted as matching. ProofError if it crashes, or takes longer than ``seconds`` of processor
    time.
    """
    numbers = (threads, stride, _ON[until], int(digest), ",".join(map(str, turns)), classes)
    command = [str(program), *map(str, numbers)]
    if seconds is not None:
        command = ["/bin/sh", "-c", f'ulimit -t {int(seconds) or 1}; exec "$0" "$@"', *command]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=program.parent) as running:
        assert running.stdout
        try:
            for line in running.stdout:
                if line.startswith("progress "):
                    _, done, total = line.split()
                    progress(int(done) / int(total))
                else:
                    lines.append(line.rstrip("\n"))
        except BaseException:
            running.kill()
            raise
    if running.returncode == STRAY:
        return lines[-1]
    if running.returncode != 0 or not lines or lines[-1] != "end":
        ended = f"status {running.returncode}"
        if running.returncode < 0:
            ended = signal.Signals(-running.returncode).name
        raise ProofError(f"the translated machine code did not run to its end: {ended}")
    return "\n".join(lines)


def read(text: str) -> Swept:
    """Parse the program's output: ``corner …`` and ``row …``, one line per class of inputs; or ``stray …``."""
    if text.startswith("stray "):
        return Swept((), (), stray=text)
    lines = [line.partition(" ") for line in text.splitlines()]
    return Swept(
        corners=tuple(row_of(rest) for word, _, rest in lines if word == "corner"),
        rows=tuple(row_of(rest) for word, _, rest in lines if word == "row"),
        digest=next((rest for word, _, rest in lines if word == "digest"), ""),
    )
