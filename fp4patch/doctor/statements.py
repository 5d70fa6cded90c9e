"""FP4 statements in CUDA sources, and what the preprocessor leaves of each for one target of a build.

What the files of a project do not decide is unknown, and never a guess.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from fp4patch.core.arch import Arch
from fp4patch.core.wording import counted
from fp4patch.cxx.preprocessor import EvaluatedConditional, Preprocessor, SourceText


class StatementKind(StrEnum):
    """Kind of statement. Closed."""

    CONVERSION = "conversion to E2M1"
    STOCHASTIC = "stochastic conversion to E2M1"
    DECODING = "conversion from E2M1"
    MATRIX = "mma on E2M1"
    SPARSE = "sparse mma on E2M1"
    TENSOR_MEMORY = "tcgen05.mma on E2M1"
    INTRINSIC = "cuda_fp4.h conversion"

    def supported(self, target: Arch) -> bool:
        """Return whether a target has the instruction.

        The table is that of docs/features.md: what each ptxas from CUDA 12.9 on accepts.
        """
        if not target.suffix:
            return False
        if self in (StatementKind.STOCHASTIC, StatementKind.TENSOR_MEMORY):
            return target.major in (10, 11)
        if self is StatementKind.MATRIX:
            return target.major == 12
        if self is StatementKind.SPARSE:
            return target.major == 12 and target.suffix == "a"
        return target.major in (10, 11, 12)

    def compiles(self, target: Arch) -> bool:
        """Return whether it can be compiled for a target: an intrinsic for all, to software on those without it."""
        return self is StatementKind.INTRINSIC or self.supported(target)


_PATTERNS = (
    (StatementKind.STOCHASTIC, r"\bcvt\.rs[\w.]*\.e2m1x4"),
    (StatementKind.CONVERSION, r"\bcvt\.rn[\w.]*\.e2m1x2\.(?:f32|f16x2|bf16x2)"),
    (StatementKind.DECODING, r"\bcvt\.rn[\w.]*\.(?:f16x2|bf16x2)\.e2m1x2"),
    (
        StatementKind.MATRIX,
        r"kind::mxf4(?:nvf4)?\b|kind::mxf8f6f4\b[^;]{0,200}?\.e2m1|kind::f8f6f4\b[^;]{0,200}?\.e2m1",
    ),
    (StatementKind.INTRINSIC, r"\b__nv_cvt_\w*fp4x?\d?\w*(?=\s*\()"),
)
# The beginnings first: without them each letter of a source is compared with every pattern, ten times as long.
# Example: cvt.rn.satfinite.e2m1x2.f32
_STATEMENTS = re.compile(f"(?=cvt|kind::|__nv_)(?:{'|'.join(f'(?P<{kind.name}>{text})' for kind, text in _PATTERNS)})")
# Example: return make_float2(0.0f)
# Example: CUDA_ERROR("no FP4 here")
_NOTHING_OF_USE = re.compile(
    r"(return\s*(\(?[\w:<>]*\)?\s*[({]?\s*(0[xX]?[\da-fA-F.]*[uUlLfF]*|false|nullptr)?\s*[)}]?)|[*\w.\[\]>-]+\s*=\s*[({]?\s*0[\w.]*\s*[)}]?"
    r"|(std::)?(printf|assert|__trap|abort|__assert_fail|static_assert|\w+_(ERROR|TRAP|UNREACHABLE)|\(void\)\s*\w+)\b.*|\(\s*void\s*\)\s*[\w.]+|[{}\s]*)",
    re.DOTALL,
)
"""A statement that computes nothing: a constant, a message, a trap."""
# Example: __device__ uint32_t to_fp4(float2 v)
_HEAD = re.compile(r"(?!.*\b(?:if|for|while|switch|else)\b)[^()=]+\(.*\)\s*(?:const|noexcept)?", re.DOTALL)
"""The head of a function, in the place of another with its body."""
# Example: if constexpr (__CUDA_ARCH__ < 1000) { return; }
_EARLY = re.compile(
    r"\bif\s*(?:constexpr\s*)?\(((?:[^()]|\([^()]*\))*?__CUDA_ARCH__(?:[^()]|\([^()]*\))*)\)\s*"
    r"(?:\{\s*(return\b[^;{}]*;)\s*\}|(return\b[^;{}]*;))"
)
"""An ``if`` of the language on the target, with nothing but a return."""
_RETURN = re.compile(r"\s*return\b[^;{}]*;")
# Example: "a literal; with }"
_BLOCKS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|[{};]")


class Left(StrEnum):
    """What the preprocessor leaves of a statement for one target. Closed."""

    COMPILED = "compiled"
    CONSTANT = "a constant, a message or nothing in its place"
    OTHER = "other code in its place"
    UNKNOWN = "not decided by the files that were read"


@dataclass(frozen=True)
class Statement:
    """An FP4 statement outside of comments."""

    path: str
    line: int
    kind: StatementKind
    offset: int

    @property
    def place(self) -> str:
        """``csrc/quant.cu:12``."""
        return f"{self.path}:{self.line}"


class SourceFile(SourceText):
    """A source, with its FP4 statements."""

    @cached_property
    def statements(self) -> list[Statement]:
        """FP4 statements in the order of the file."""
        found = []
        for match in _STATEMENTS.finditer(self.text):
            kind = StatementKind[match.lastgroup or ""]
            if kind is StatementKind.MATRIX:
                before = self.text[max(0, match.start() - 200) : match.start()].rpartition(";")[2]
                if "tcgen05" in before:
                    kind = StatementKind.TENSOR_MEMORY
                elif "mma.sp" in before:
                    kind = StatementKind.SPARSE
                elif "mma" not in before:
                    continue
            found.append(Statement(self.path, self.line(match.start()), kind, match.start()))
        return found


def may_have_statements(content: bytes) -> bool:
    """Pass each file that can have FP4 statements. One expression for all of it takes five times as long."""
    return b"e2m1" in content or b"kind::mxf4" in content or (b"__nv_cvt_" in content and b"fp4" in content)


def what_is_left(file: SourceFile, preprocessor: Preprocessor) -> dict[Statement, tuple[Left, str]]:
    """Return what is left of each statement of a file, and the name that decides if that is not known."""
    conditionals = preprocessor.run(file)

    def without_condition(found: re.Match[str]) -> str:
        """Return the ``return`` of an ``if`` on the target that holds; any other ``if`` as it is."""
        text = f";{found[2] or found[3]}"
        return text.ljust(len(found[0])) if preprocessor.condition("if", found[1])[0] else found[0]

    @cache
    def left(*out: bool | None) -> tuple[str, list[tuple[int, int]]]:
        text = _live_text(file, conditionals, out)
        text = _EARLY.sub(without_condition, text) if "__CUDA_ARCH__" in text else text
        return text, _unreachable(text)

    (live, after_return), fates = left(False), {}
    for one in file.statements:
        fate, why = _of(one, conditionals, live)
        if fate is Left.COMPILED and _within(one, after_return):
            undecided = next((c.why for c in conditionals if any(b.live is None for b in c.branches)), "")
            fate, why = (Left.CONSTANT, "") if _within(one, left(False, None)[1]) else (Left.UNKNOWN, undecided)
        fates[one] = fate, why
    return fates


def _of(statement: Statement, conditionals: Sequence[EvaluatedConditional], live: str) -> tuple[Left, str]:
    around = [(c, b) for c in conditionals for b in c.branches if b.begin <= statement.offset < b.end]
    gone = next((conditional for conditional, branch in around if branch.live is False), None)
    if gone is None:
        unknown = next((conditional.why for conditional, branch in around if branch.live is None), "")
        return (Left.UNKNOWN if unknown else Left.COMPILED), unknown
    if taken := next((branch for branch in gone.branches if branch.live), None):
        return (Left.CONSTANT if _computes_nothing(live[taken.begin : taken.end]) else Left.OTHER), ""
    undecided = any(branch.live is None for branch in gone.branches)
    return (Left.UNKNOWN, gone.why) if undecided else (Left.CONSTANT, "")


def _live_text(file: SourceFile, conditionals: Sequence[EvaluatedConditional], out: Collection[bool | None]) -> str:
    """Return the text with blanks in the place of directives and of the branches in these states."""
    cuts = [(b.begin, b.end) for conditional in conditionals for b in conditional.branches if b.live in out]
    cuts = sorted([*cuts, *((begin, end) for begin, end, *_ in file.directives)])
    parts, at = [], 0
    for begin, end in cuts:
        if end > at:
            parts += [file.text[at:begin], " " * (end - max(begin, at))]
            at = end
    return "".join([*parts, file.text[at:]])


def _within(statement: Statement, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(begin <= statement.offset < end for begin, end in ranges)


def _unreachable(text: str) -> list[tuple[int, int]]:
    """Return what follows a return in the same block, up to the end of that block."""
    found = list[tuple[int, int]]()
    returned = [-1]
    at = 0
    for token in _BLOCKS.finditer(text):
        letter, before = token[0], at
        at = token.end() if letter in "{};" else at
        if letter == "{":
            returned.append(-1)
        elif letter == "}":
            begin = returned.pop() if len(returned) > 1 else -1
            if begin >= 0:
                found.append((begin, token.start()))
        elif letter == ";" and returned[-1] < 0 and _RETURN.fullmatch(text, before, at):
            returned[-1] = at
    return found


def _computes_nothing(text: str) -> bool:
    # Example: asm volatile("trap;")
    text = re.sub(r'\basm\b[^;"]*\(\s*"\s*(?:trap|exit|brkpt)\s*;?\s*"[^;]*\)', "__trap()", text)
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    parts = [(part.strip(), end) for part, end in re.findall(r"([^;{}]*)([;{}]|\Z)", bare)]
    return all(_NOTHING_OF_USE.fullmatch(part) or (end == "{" and _HEAD.fullmatch(part)) for part, end in parts)


def summary(kinds: Mapping[str, int]) -> str:
    """Return ``3 conversions to E2M1, 2 mma on E2M1``."""
    names = ((n, kind, kind.replace("conversion", "conversions", 1)) for kind, n in kinds.items())
    return ", ".join(counted(*name) for name in names)
