"""Disassemble a cubin with nvdisasm, and keep the output."""

import tempfile
from pathlib import Path

from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.core.store import Store, key
from fp4patch.proof.machine_code import check_whole, disassembled
from fp4patch.proof.toolchain import Toolchain


def disassemble(cubin: bytes, *, toolchain: Toolchain, runner: Runner, store: Store) -> str:
    """Return the output of ``nvdisasm -c`` for a cubin; ProofError for unsupported code, or if it was cut off.

    It takes a third of a second to start: it runs once for the targets of a generation that have the same code.
    """
    name = key("nvdisasm -c", toolchain.info.nvdisasm, toolchain.fingerprint, *disassembled(cubin))
    if kept := store.get(name):
        return str(kept)
    with tempfile.TemporaryDirectory(prefix="fp4patch-sass-") as scratch:
        file = Path(scratch) / "probe.cubin"
        file.write_bytes(cubin)
        status, text, messages = runner.run([toolchain.nvdisasm, "-c", file], scratch=file.parent)
    if status != 0:
        raise ProofError(
            f"nvdisasm -c ended with status {status}: {messages.strip()}",
            help=f"nvdisasm {toolchain.info.nvdisasm} may not support this code",
        )
    check_whole(text, cubin)
    store.put(name, text)
    return text
