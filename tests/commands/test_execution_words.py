"""A row of the table never has "pass" beside an execution that is wrong, in all inputs or at the corners alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from verify_reports import REPORTS, SM121A, text

from fp4patch.catalog.rule import Promise
from fp4patch.commands import verify_execution_words as execution
from fp4patch.commands.verify_text import VerifyTable
from fp4patch.core.verdict import Verdict
from fp4patch.proof.execute import checks_of, with_checks
from fp4patch.proof.execution.result import Executed, Execution, summary
from fp4patch.proof.sweep_result import InputClass, Mismatch, NumericsReport, NumericsRow


def ran(rows: tuple[NumericsRow, ...], corners: tuple[NumericsRow, ...], **more: object) -> Execution:
    sweep = NumericsReport("x", "y", 2, rows, Promise.EXACT, 1.0, passes=1)
    return Execution("cutlass/e2m1-x2", SM121A, "patched", sweep, corners, **more)  # type: ignore[arg-type]


RIGHT = NumericsRow(InputClass.FINITE, 1 << 32, 0, 0)
WRONG = NumericsRow(InputClass.FINITE, 1 << 32, 1, 1, (Mismatch(0x3E800000, 0, 1),))
CORNER = NumericsRow(InputClass.FINITE, 5000, 2, 2, (Mismatch(0x40A00000, 6, 7),))


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (ran((WRONG,), ()), "1 of 2^32 inputs differ (finite, first 0x3e800000: 0x1, not 0x0)"),
        (ran((RIGHT,), (CORNER,)), "2 of the inputs at the boundaries differ (finite, first 0x40a00000: 0x7, not 0x6)"),
        (
            Execution("cutlass/e2m1-x2", SM121A, "patched", None, problem="F2FP.NEW at 0x120", unsupported=True),
            "unsupported: F2FP.NEW at 0x120",
        ),
    ],
)
def test_a_row_whose_execution_fails_never_says_pass(one: Execution, said: str) -> None:
    executed = Executed((one,))
    results = tuple(with_checks(REPORTS["pass"].results, checks_of(executed)))
    report = replace(REPORTS["pass"], results=results, executed=executed)
    (row,) = [result for result in results if result.arch == SM121A]
    assert row.verdict is Verdict.FAIL
    assert said in (summary(one), row.checks[-1].detail)
    shown = text(VerifyTable(report), 240)
    assert said in shown
    assert not [line for line in shown.splitlines() if "sm_121a" in line and line.rstrip().endswith("pass")]
    assert "0 mismatches" not in execution.sentence(one)
