"""One ptxas: its supported targets and PTX versions, its result for a file, and the class of its messages."""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fp4patch.catalog.feature import Refusal
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.cache import sha256
from fp4patch.core.errors import ToolchainError
from fp4patch.core.extra import install
from fp4patch.proof.toolchain import version_of

OLDEST = Arch(9, 0)
"""The first architecture that is worth a column: sm_90 has FP8 in its tensor cores, and nothing smaller."""

_NEWEST_ISA = re.compile(r"Unsupported \.version .*; current version is '(\d+\.\d+)'")
_TARGET = re.compile(r"'sm_(\d{2,3}[af]?)'")
# ptxas x.ptx, line 14; error   : Feature 'cvt.e2m1x2.f32' not supported on .target 'sm_120'
# ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'
_ERROR = re.compile(r"^ptxas (?:.*, line (?P<line>\d+); )?(?:error|fatal)\s*: (?P<words>.*)$", re.MULTILINE)

# Parts of the wording that no release from 12.8 to 13.5 has changed: 13.1 turned "Instruction … not supported on
# .target" into "Feature … not supported on .target" for the conversions.
_REFUSALS = (
    (Refusal.TARGET, re.compile(r"not supported on \.target|requires \.target")),
    (
        Refusal.PTX_VERSION,
        re.compile(r"requires PTX ISA \.version|PTX \.version \S+ does not support|^Unsupported \.v"),
    ),
    (Refusal.MODIFIER, re.compile(r"(?:[Uu]nknown|[Ii]llegal) (?:rounding )?modifier")),
    (Refusal.TYPES, re.compile(r"Unexpected instruction types|Arguments mismatch")),
    (Refusal.INSTRUCTION, re.compile(r"Not a name of any known instruction")),
    (Refusal.UNKNOWN_TARGET, re.compile(r"is not defined for option 'gpu-name'")),
)


def classify(words: str) -> Refusal:
    """Return the class of a ptxas error."""
    return next((refusal for refusal, pattern in _REFUSALS if pattern.search(words)), Refusal.OTHER)


@dataclass(frozen=True)
class Error:
    """One error in ptxas's words, and the line of the file that it is about; 0 where it names none."""

    line: int
    words: str


@dataclass(frozen=True)
class Assembler:
    """A ptxas, and the disassembler that reads what it writes, if there is one."""

    path: Path
    nvdisasm: Path | None

    @cached_property
    def release(self) -> str:
        """``13.0.88``."""
        return version_of(self.path)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the program itself."""
        return sha256(self.path)

    @cached_property
    def nvdisasm_release(self) -> str:
        """``13.5.37``, or nothing."""
        return version_of(self.nvdisasm) if self.nvdisasm else ""

    @cached_property
    def nvdisasm_sha256(self) -> str:
        """SHA-256 of the disassembler; empty if there is none."""
        return sha256(self.nvdisasm) if self.nvdisasm else ""

    @cached_property
    def newest_isa(self) -> str:
        """The newest PTX version that it accepts: its error for a future version names it."""
        done = _run([str(self.path), "-arch", str(OLDEST), "-o", os.devnull, "-ias", ".version 99.9"])
        found = _NEWEST_ISA.search(done.err + done.out)
        if found is None:
            raise ToolchainError(
                f"{self.path} does not state which PTX versions it supports", help="is it a ptxas of CUDA 12 or 13?"
            )
        return found[1]

    @cached_property
    def targets(self) -> tuple[Arch, ...]:
        """The architectures that it knows, from sm_90 on, as its own help lists them."""
        known = {Arch.parse(number) for number in _TARGET.findall(_run([str(self.path), "--help"]).out)}
        return tuple(sorted(arch for arch in known if arch >= OLDEST))

    def assemble(self, text: str, target: Arch, work: Path) -> tuple[Error, ...]:
        """Write ``work``.cubin; every error where it refuses, else nothing."""
        source, cubin = work.with_suffix(".ptx"), work.with_suffix(".cubin")
        source.write_text(text, encoding="utf-8")
        done = _run([str(self.path), "-arch", str(target), "-o", str(cubin), str(source)])
        if not done.status:
            return ()
        found = _ERROR.finditer(done.err + done.out)
        errors = tuple(Error(int(error["line"] or 0), error["words"].strip()) for error in found)
        return errors or (Error(0, f"exit status {done.status} without an error"),)

    def disassemble(self, work: Path) -> str:
        """Return the listing of ``work``.cubin; ToolchainError where the disassembler is too old for it."""
        done = _run([str(self.nvdisasm), "-c", str(work.with_suffix(".cubin"))])
        if done.status:
            raise ToolchainError(
                f"nvdisasm {self.nvdisasm_release} cannot read what ptxas {self.release} wrote: {done.err.strip()}",
                help=f"take a disassembler as new as the assembler: {install('cuda')}",
            )
        return done.out


def _run(command: list[str]) -> process.Done:
    try:
        return process.run(command, limit=600)
    except OSError as error:
        raise ToolchainError(f"{command[0]} {error.strerror}", help="is it made for this machine?") from error
