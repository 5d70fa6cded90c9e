"""Execute the machine code of probes on the host: every input, or chosen ones, against what it should give.

Results are kept by the code and all that decides about them: the same code is executed once, and a second look costs
nothing.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from fp4patch.catalog.probe import Executes
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import Store, key, source_hash
from fp4patch.proof.execution import stochastic
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.result import Execution, Ran
from fp4patch.proof.execution.scheduler import Scheduler
from fp4patch.proof.execution.strategies import Tools, strategy_for
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.error import SassError
from fp4patch.sass.translate import Unsupported

_LONGEST = 86_400.0
"""Seconds that a sweep may take: of code with loops, on one processor, it takes many minutes."""


def execute(
    codes: Sequence[ProbeCode],
    *,
    toolchain: Toolchain,
    store: Store,
    threads: int | None = None,
    progress: OnProgress = silent,
) -> tuple[Execution, ...]:
    """Return the executions of these kernels.

    ``threads`` at a time, by default one for each processor that this process may use. A kernel that is not understood
    is a failed result; so is one that does not compile, or leaves its own memory.
    """
    upstream = {code.probe: code for code in reversed(codes) if code.side == "pristine" and code.instruction}
    names = {code: _name(code, upstream.get(code.probe), toolchain) for code in codes}
    threads = threads or processors()
    results: dict[str, Ran | ProofError | SassError] = {}
    with (
        tempfile.TemporaryDirectory(prefix="fp4patch-execute-") as scratch,
        ThreadPoolExecutor(max_workers=threads) as pool,
    ):
        tools = Tools(toolchain, Runner(toolchain.environ, _LONGEST), store, Path(scratch), Scheduler(threads))
        different = {name: code for code, name in names.items()}  # the same code can be that of several probes
        pending = [
            (name, code, pool.submit(_result, name, code, upstream.get(code.probe), tools))
            for name, code in different.items()
        ]
        try:
            for number, (name, code, future) in enumerate(pending):
                progress(Step(number, len(pending), f"executing {code.probe} {code.side} {code.arch}"))
                results[name] = future.result()
        except BaseException:
            tools.runner.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(_execution(code, results[name]) for code, name in names.items())


def _result(name: str, code: ProbeCode, upstream: ProbeCode | None, tools: Tools) -> Ran | ProofError | SassError:
    """Return the result that is kept under a name, or work it out; an error, which must not hide other results."""
    if kept := tools.store.get(name):
        return Ran(**kept)
    try:
        ran = strategy_for(code, upstream, tools).run()
    except (ProofError, SassError) as error:
        return error
    tools.store.put(name, asdict(ran))
    return ran


def _execution(code: ProbeCode, result: Ran | ProofError | SassError) -> Execution:
    known = Execution(code.probe, code.arch, code.side, code.promise, instruction=code.instruction)
    if isinstance(result, Ran):
        return replace(known, ran=result)
    if isinstance(result, Unsupported):
        return replace(known, problem=result.message, unsupported=True)
    return replace(known, problem=f"{result.message}\n{result.help}".strip())


def _name(code: ProbeCode, upstream: ProbeCode | None, toolchain: Toolchain) -> str:
    """Return the name of a result: a hash of all that decides it."""
    compared = upstream.listing if upstream and not isinstance(code.does, Executes) else None
    content = code.listing.code_sha256 if code.listing else hashlib.sha256(code.content).hexdigest()
    made_by = source_hash("fp4patch.sass", "fp4patch.proof.execution", "fp4patch.reference")
    info = toolchain.info
    return key(
        "execute",
        made_by,
        toolchain.fingerprint,
        info.nvdisasm,
        info.host_compiler,
        content,
        repr(code.does),
        compared.code_sha256 if compared else "",
        str(code.arch.major),
        str(code.capability >= stochastic.FROM),
        str(bool(code.swept)),
        str(code.in_order),
    )
