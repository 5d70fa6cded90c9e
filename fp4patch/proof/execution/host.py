"""Run what the host's compiler makes of a probe: conversions are functions of both, the host and the device.

The object file of a HOST probe that declares what it converts has ``fp4patch_host(values, packed, records)``, in C. Its
inputs and the expected bytes are those of a batch.
"""

import subprocess
from importlib import resources
from pathlib import Path

from fp4patch.catalog.probe import Executes
from fp4patch.core import process
from fp4patch.core.errors import ProofError
from fp4patch.proof.execution.result import Ran
from fp4patch.proof.toolchain import Toolchain


def run(does: Executes, content: bytes, folder: Path, toolchain: Toolchain) -> Ran:
    """Return the result of the host code in a probe's object file; ProofError if it does not link or run."""
    # NumPy and the reference are needed only for an execution.
    from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

    cases = list(chosen_inputs.conversion(does))
    (folder / "probe.o").write_bytes(content)
    main = (resources.files("fp4patch.proof.execution") / "host.c").read_text(encoding="utf-8")
    (folder / "host.c").write_text(main, encoding="utf-8")
    compiler = str(toolchain.host_compiler)
    command = [compiler, "-x", "c", "host.c", "-x", "none", "probe.o", "-lstdc++", "-lm", "-o", "host"]
    done = process.run(command, limit=None, folder=folder, environ=toolchain.environ)
    if done.status:
        raise ProofError("the host code of the probe cannot be linked", help=done.said[:2000])
    stored = []
    for case in cases:
        values, packed = (array.content for array in case.launch.arrays)
        count = len(case.inputs)
        arguments = [str(number) for number in (count, len(values) // count, len(packed) // count)]
        ended = subprocess.run([folder / "host", *arguments], input=values, capture_output=True, check=False)
        if ended.returncode:
            raise ProofError(f"the host code of the probe did not run to its end: status {ended.returncode}")
        stored.append(ended.stdout)
    return chosen_inputs.compare(f"records of {does.lanes} on the host", cases, stored)
