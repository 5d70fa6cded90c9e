"""Disassemble a cubin with nvdisasm, and cache the output."""

import tempfile
from pathlib import Path

from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.core.store import key
from fp4patch.proof.cache import Cache, Stored
from fp4patch.proof.toolchain import Toolchain


def disassemble(cubin: bytes, *, toolchain: Toolchain, runner: Runner, cache: Cache | None) -> str:
    """Return the output of ``nvdisasm -c`` for a cubin; ProofError for unsupported code."""
    name = key("nvdisasm -c", toolchain.info.nvdisasm, toolchain.fingerprint, cubin)
    if cache and (found := cache.find(name, lambda _: None)):
        return found.log
    with tempfile.TemporaryDirectory(prefix="fp4patch-sass-") as scratch:
        file = Path(scratch) / "probe.cubin"
        file.write_bytes(cubin)
        status, text, said = runner.run([toolchain.nvdisasm, "-c", file], scratch=file.parent)
    if status != 0:
        raise ProofError(
            f"nvdisasm -c ended with status {status}: {said.strip()}",
            help=f"nvdisasm {toolchain.info.nvdisasm} may not support this code",
        )
    if cache:
        cache.store(name, [], Stored(b"", text))
    return text
