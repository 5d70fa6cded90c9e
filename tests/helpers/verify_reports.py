"""Reports of verify made by hand: each verdict, and listings that differ in every way."""

import hashlib
import io

from rich.console import Console, RenderableType

from fp4patch.catalog.probe import ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem, State, Verdict
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check, ProbeResult, ToolchainInfo, VerifyReport
from fp4patch.sass.instruction import Instruction, InstructionClass
from fp4patch.sass.text import classify

SM120A, SM121A = Arch(12, 0, "a"), Arch(12, 1, "a")
F2FP = "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"
HOSTILE = "</script></style><script>alert('x')</script>\"onload=\"alert(2)&amp;"


def instruction(index: int, opcode: str, operands: str = "", predicate: str = "") -> Instruction:
    return Instruction(16 * index, predicate, opcode, operands, classify(opcode) or InstructionClass.OTHER)


def listing(*instructions: Instruction, labels: dict[int, str] | None = None) -> SassListing:
    return SassListing(instructions, labels or {}, hashlib.sha256(repr(instructions).encode()).hexdigest())


def hardware() -> SassListing:
    return listing(
        instruction(0, "LDG.E", "R2, desc[UR4][R2.64]"),
        instruction(1, F2FP, "R0, R2, R3, RZ"),
        instruction(2, "EXIT"),
    )


def software() -> SassListing:
    """Return a load from elsewhere, and a branch over a selection, in place of the conversion."""
    return listing(
        instruction(0, "LDG.E", "R2, desc[UR4][R2.64+0x10]"),
        instruction(1, "BRA", "`(.L_x_0)", "@!P0"),
        instruction(2, "FSEL", "R1, R2, RZ, P1"),
        instruction(3, "EXIT"),
        labels={48: ".L_x_0", 64: ".L_x_9"},
    )


def on_120() -> ProbeResult:
    code = hardware()
    check = Check("identical", "SM120 must not change", Verdict.PASS, "no byte differs")
    return ProbeResult(
        "cutlass/e2m1-x2",
        "two values",
        SM120A,
        ProbeKind.SASS,
        code,
        code,
        (check,),
        cached=True,
    )


def on_121(verdict: Verdict = Verdict.PASS) -> ProbeResult:
    checks = (
        Check(f"forbids {F2FP}", "SM121 leaves the conversion", Verdict.PASS, "none"),
        Check("without branches", "both sides would be paid for", verdict, "1 branch: BRA"),
    )
    return ProbeResult(
        "cutlass/e2m1-x2",
        "two values",
        SM121A,
        ProbeKind.SASS,
        hardware(),
        software(),
        checks,
    )


def host(verdict: Verdict = Verdict.PASS, error: str = "") -> ProbeResult:
    check = Check("compiles", "host code includes it", verdict, "nvcc -c")
    return ProbeResult("cutlass/include-only", "host pass", SM120A, ProbeKind.HOST, None, None, (check,), error)


def unsupported() -> ProbeResult:
    return ProbeResult(
        "cutlass/e2m1-x4",
        "four",
        SM121A,
        ProbeKind.SASS,
        None,
        None,
        (Check("this compiler supports the architecture", "nothing can be judged", Verdict.UNSUPPORTED, "no"),),
        "nvcc fatal : unsupported",
    )


def report(*results: ProbeResult, problems: tuple[Problem, ...] = (), tree: str = "./cutlass") -> VerifyReport:
    tools = ToolchainInfo("13.0.88", "13.0.88", "13.5.37", "g++ 12.2.0", "/opt/cuda", "/opt/cuda/bin/nvdisasm")
    return VerifyReport(
        variant="next2",
        target="cutlass",
        version="4.2.1",
        tree=tree,
        patches=("cutlass/e2m1-guard 1",),
        arch=(SM120A, SM121A),
        toolchain=tools,
        results=results,
        problems=problems,
        seconds=1.25,
        fp4patch="0.1.0",
        finished="2026-01-02T03:04:05Z",
    )


DRIFT = Problem(
    expected="1 site",
    found="0",
    help="see `fp4patch show e2m1-guard`",
    patch="cutlass/e2m1-guard",
    file="include/cutlass/float_subbyte.h",
    line=47,
    nearest="`SM121B_ENABLED`",
    state=State.DRIFTED,
)

REPORTS = {
    "pass": report(on_120(), on_121(), host()),
    "fail": report(on_120(), on_121(Verdict.FAIL), host(Verdict.FAIL, "a.h(3): error: no\n1 error")),
    "unsupported": report(on_120(), unsupported()),
    "problems": report(on_120(), problems=(DRIFT,)),
    "empty": report(),
}


def text(renderable: RenderableType, width: int = 80, *, pipe: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, soft_wrap=pipe, color_system=None).print(renderable)
    return out.getvalue()
