"""Run what the host's compiler makes of a probe: conversions are functions of both, the host and the device.

The object file of a HOST probe that declares what it converts has ``fp4patch_host(values, packed, records)``, in C. Its
inputs and the expected bytes are those of a batch.
"""

import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from fp4patch.catalog.probe import Executes
from fp4patch.catalog.rule import Promise
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.store import key
from fp4patch.proof.cache import Cache
from fp4patch.proof.execution.executor import kept, made_by
from fp4patch.proof.execution.result import Batch, Execution
from fp4patch.proof.toolchain import Toolchain


def execute(
    probe: str, arch: Arch, does: Executes, promise: Promise, content: bytes, *, toolchain: Toolchain, cache: Cache
) -> Execution:
    """Return the result of the host code in a probe's object file."""
    main = (resources.files("fp4patch.proof.execution") / "host.c").read_text(encoding="utf-8")
    name = key("host", content, main, repr(does), promise, made_by())
    result, cached = kept(cache, name, lambda: _run(does, promise, content, main, toolchain))
    problem, batch = (result, None) if isinstance(result, str) else ("", result)
    return Execution(probe, arch, "patched", None, batch=batch, problem=problem, cached=cached)


def _run(does: Executes, promise: Promise, content: bytes, main: str, toolchain: Toolchain) -> Batch:
    # NumPy and the reference are needed only for an execution.
    from fp4patch.proof.execution import chosen_inputs  # noqa: PLC0415

    plan = chosen_inputs.conversion(does, promise)
    with tempfile.TemporaryDirectory(prefix="fp4patch-host-") as folder:
        work = Path(folder)
        (work / "probe.o").write_bytes(content)
        (work / "host.c").write_text(main, encoding="utf-8")
        compiler = str(toolchain.host_compiler)
        for command in (
            [compiler, "-x", "c", "-c", "host.c", "-o", "host.o"],
            [compiler, "host.o", "probe.o", "-lstdc++", "-lm", "-o", "host"],
        ):
            done = process.run(command, limit=None, folder=work, environ=toolchain.environ)
            if done.status:
                raise ProofError("the host code of the probe cannot be linked", help=done.said[:2000])
        stored = []
        for case in plan.cases:
            values, packed = (array.content for array in case.launch.arrays)
            arguments = [str(number // case.inputs) for number in (len(values), len(packed))]
            ended = subprocess.run(
                [work / "host", str(case.inputs), *arguments], input=values, capture_output=True, check=False
            )
            if ended.returncode:
                raise ProofError(f"the host code of the probe did not run to its end: status {ended.returncode}")
            stored.append([ended.stdout])
        return chosen_inputs.compare(plan, stored)
