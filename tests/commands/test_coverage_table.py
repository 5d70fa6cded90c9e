"""The table of functions and checks calls executed only what ran."""

from __future__ import annotations

import pytest

from fp4patch.adapters.result import JitTargets
from fp4patch.catalog.coverage import Covered, How
from fp4patch.catalog.manifest import load
from fp4patch.catalog.patch import BuiltFor
from fp4patch.catalog.target import JitModule
from fp4patch.core.arch import Arch
from fp4patch.proof.builds import _without_absent
from fp4patch.proof.coverage import coverage
from fp4patch.proof.execution.result import Batch, Executed, Execution
from fp4patch.proof.result import ProbeResult
from fp4patch.proof.source_lines import SourceLines

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
    result = ProbeResult(probe.id, probe.title, GB10, probe.kind, None, None, None, ())
    function = probe.covers[0]
    touched = {"a.h": {function: (range(3, 5),)}}
    (row,) = coverage(touched, (), (probe,), (result,), {}, (), (), Executed((execution,)), (GB10,))
    assert [check.how for check in row.checks] == [how]
    assert row.missing == ()


@pytest.mark.parametrize(
    ("lines", "checked", "absent", "because"),
    [
        (SourceLines({"a.h": [3, 4]}, {"probe": {"a.h": [4]}}), True, False, ""),
        (SourceLines({"a.h": [3, 4]}, {"probe": {"a.h": [5]}}), False, False, "its code has no line of this function"),
        (SourceLines({"a.h": [2, 5]}, {"probe": {"a.h": [5]}}), False, True, ""),
        (SourceLines({"b.h": [3]}, {"probe": {"b.h": [3]}}), False, False, "its code has no line of this function"),
    ],
)
def test_a_probe_checks_only_functions_of_which_it_has_code(
    lines: SourceLines, checked: bool, absent: bool, because: str
) -> None:
    (probe,) = (p for one in load().patches.values() for p in one.probes if p.id == "cutlass/encode-float-x8")
    result = ProbeResult(probe.id, probe.title, GB10, probe.kind, None, None, None, ())
    touched = {"a.h": {probe.covers[0]: (range(3, 5),)}}
    (row,) = coverage(touched, (), (probe,), (result,), {(probe.id, GB10): lines}, (), (), None, (GB10,))
    assert bool(row.checks) is checked
    assert row.absent == ((GB10,) if absent else ())
    assert row.missing == (() if checked or absent else (GB10,))
    assert row.because == (f"{probe.id}: {because}" if because else "")


@pytest.mark.parametrize(("kernel", "how"), [("probe", How.EXECUTED), ("another", How.COUNTED)])
def test_a_function_of_a_kernel_that_did_not_run_is_not_executed(kernel: str, how: How) -> None:
    (probe,) = (p for one in load().patches.values() for p in one.probes if p.id == "cutlass/encode-float-x8")
    result = ProbeResult(probe.id, probe.title, GB10, probe.kind, None, None, None, ())
    execution = Execution(probe.id, GB10, "patched", None, batch=Batch("records", 8, 0))
    lines = SourceLines({"a.h": [3]}, {"probe": {}, "another": {}} | {kernel: {"a.h": [3]}})
    touched = {"a.h": {probe.covers[0]: (range(3, 5),)}}
    at = {(probe.id, GB10): lines}
    (row,) = coverage(touched, (), (probe,), (result,), at, (), (), Executed((execution,)), (GB10,))
    assert [check.how for check in row.checks] == [how]


@pytest.mark.parametrize(
    ("on_100", "on_90", "absent"),
    [
        (JitTargets({"m": ("10.0a",)}), JitTargets({}, "ValueError: not built for sm_90a"), True),
        (JitTargets({"m": ("10.0a",)}), JitTargets({"m": ("9.0a",)}), False),
        (JitTargets({"m": ("10.0a",)}), "an unknown value decides", False),
        (JitTargets({}, "ValueError: another name"), JitTargets({}, "ValueError: another name"), False),
    ],
)
def test_a_function_is_absent_only_where_the_build_shows_it(
    on_100: JitTargets | str, on_90: JitTargets | str, absent: bool
) -> None:
    module = JitModule(name="m", search=("jit.py",), function="gen")
    rule = BuiltFor(functions=("f(",), module=module, targets=("sm_100a",))
    one = Covered("f()", ("f.cu",), (), (Arch(9, 0),))
    found = _without_absent(one, rule, {(module, Arch(10, 0)): on_100, (module, Arch(9, 0)): on_90})
    assert (found.absent, found.missing) == (((Arch(9, 0),), ()) if absent else ((), (Arch(9, 0),)))
