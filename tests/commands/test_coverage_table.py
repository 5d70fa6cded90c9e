"""The table of functions and checks calls executed only what ran."""

from __future__ import annotations

import pytest

from fp4patch.catalog.coverage import How
from fp4patch.catalog.manifest import load
from fp4patch.commands.verify.coverage import coverage
from fp4patch.core.arch import Arch
from fp4patch.core.verdict import Verdict
from fp4patch.proof.lift.result import Batch, Executed, Execution
from fp4patch.proof.result import ProbeResult

GB10 = Arch.parse("sm_121a")


@pytest.mark.parametrize(
    ("execution", "how"),
    [
        (Execution("cutlass/encode-float-x8", GB10, "patched", None, batch=Batch("records", 8, 0)), How.EXECUTED),
        (Execution("cutlass/encode-float-x8", GB10, "pristine", None, batch=Batch("records", 8, 0)), How.COUNTED),
        (
            Execution("cutlass/encode-float-x8", GB10, "patched", None, problem="F2FP.NEW", unsupported=True),
            How.COUNTED,
        ),
        (Execution("cutlass/encode-float-x8", GB10, "patched", None, problem="a store elsewhere"), How.COUNTED),
    ],
)
def test_a_function_is_executed_only_where_its_patched_code_ran(execution: Execution, how: How) -> None:
    (probe,) = (p for one in load().patches.values() for p in one.probes if p.id == execution.probe)
    result = ProbeResult(probe.id, probe.title, GB10, probe.kind, Verdict.PASS, None, None, None, ())
    function = probe.covers[0]
    (row,) = coverage({"a.h": (function,)}, (), (probe,), (result,), (), (), Executed((execution,)), (GB10,))
    assert [check.how for check in row.checks] == [how]
    assert row.missing == ()
