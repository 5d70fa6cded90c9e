"""Seeded mutations of sources with E2M1 assembly, and an independent judgement of the output of ``wrap-asm``.

A source becomes text and statement models. Mutations change both. The models give the expected output, by a direct
interpreter of their PTX. The result is read back with regular expressions. Nothing here uses the code under test. What
PTX itself may look like is varied in statements made by ``concrete_ptx.Program``, one of the mutations.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from concrete_ptx import Program, e2m1, run

GUARD = "defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210"
OPTIONS = {"encoder": "threshold", "guard": GUARD}
ENCODER = """\
// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif
"""

_STATEMENT = re.compile(
    r'asm(?P<volatile> volatile)?\((?P<template>(?:\s*"(?:[^"\\]|\\.)*")+)\s*:(?P<outputs>[^:;]*):(?P<inputs>[^:;]*)\);'
)
_OPERAND = re.compile(r'"([^"]+)"\(([^()]*)\)')
_VALUES = (0.1, 0.5, -0.8, 1.0, 1.6, -2.0, 2.9, 4.1, 9.0, -0.4, -1.1, -6.0, -2.8, -4.0)


@dataclass
class Asm:
    """A model of one encode statement."""

    template: str
    outputs: list[tuple[str, str]]
    """Constraint and expression."""
    inputs: list[tuple[str, str]]
    indent: str = "  "
    keyword: str = "asm volatile"
    names: dict[int, str] = field(default_factory=dict)
    joints: Callable[[], str] = lambda: "\n"
    """Factory of the separators between literals and between operands."""
    raw: bool = False
    pieces: int = 0
    """Number of literals that the template is split into; 0: one per line."""
    lead: str = ""
    trail: str = ""
    text: str = ""
    """The statement as it was rendered last."""

    def render(self, rng: random.Random) -> str:
        """Return the statement as C++."""
        operands = [*self.outputs, *self.inputs]
        listed = [
            (f"[{self.names[n]}] " if n in self.names else "") + f'"{constraint}"({expression})'
            for n, (constraint, expression) in enumerate(operands)
        ]
        outputs, inputs = listed[: len(self.outputs)], listed[len(self.outputs) :]
        comma = "," + self.joints()
        self.text = (
            f"{self.keyword}({self.literals(rng)}{self.joints()}: {comma.join(outputs)}{self.joints()}: "
            f"{comma.join(inputs)});"
        )
        return f"{self.lead}{self.text}{self.trail}"

    def literals(self, rng: random.Random) -> str:
        if self.raw:
            return f'R"ptx({self.template})ptx"'
        if self.pieces:
            # Not within the name of the format: only the compiler sees an opcode that is cut there.
            names = [range(found.start() + 1, found.end()) for found in re.finditer(r"e2m1x\d", self.template)]
            places = [at for at in range(1, len(self.template)) if not any(at in name for name in names)]
            cuts = sorted(rng.sample(places, min(self.pieces, len(places))))
            parts = [self.template[a:b] for a, b in zip([0, *cuts], [*cuts, len(self.template)], strict=True)]
        else:
            parts = self.template.splitlines(keepends=True)
        escape = str.maketrans({"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"})
        return self.joints().join(f'"{part.translate(escape)}"' for part in parts)

    def expected(self, values: dict[str, float]) -> dict[str, int]:
        """Return the value of each output if the expressions have these values."""
        numbers = {name: n for n, name in self.names.items()}
        numbered = re.sub(r"%\[(\w+)\]", lambda m: f"%{numbers[m[1]]}", self.template)
        done = run(numbered, "".join(c[-1] for c, _ in self.outputs), [values[squeeze(e)] for _, e in self.inputs])
        return {squeeze(expression): value for (_, expression), value in zip(self.outputs, done, strict=True)}


@dataclass
class Document:
    """A source: text and statement models in turn."""

    parts: list[str | Asm]
    crlf: bool = False

    @classmethod
    def read(cls, text: str) -> Document:
        parts: list[str | Asm] = []
        done = 0
        for found in _STATEMENT.finditer(text):
            if "e2m1x2.f32" not in found["template"]:
                continue
            template = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found["template"])).replace("\\n", "\n")
            outputs, inputs = (_OPERAND.findall(found[part]) for part in ("outputs", "inputs"))
            indent = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
            keyword = f"asm{found['volatile'] or ''}"
            parts += [text[done : found.start()], Asm(template, outputs, inputs, indent, keyword)]
            done = found.end()
        return cls([*parts, text[done:]])

    @property
    def statements(self) -> list[Asm]:
        return [part for part in self.parts if isinstance(part, Asm)]

    def render(self, rng: random.Random) -> str:
        text = "".join(part if isinstance(part, str) else part.render(rng) for part in self.parts)
        if self.crlf:
            for statement in self.statements:
                statement.text = statement.text.replace("\n", "\r\n")
        return text.replace("\n", "\r\n") if self.crlf else text

    def texts(self, change: Callable[[str], str]) -> None:
        self.parts = [change(part) if isinstance(part, str) else part for part in self.parts]

    def at_a_blank_line(self, rng: random.Random, new: Sequence[str | Asm]) -> None:
        """Put parts on lines of their own, where the source has a blank line; none: at its end."""
        texts = [(n, part) for n, part in enumerate(self.parts) if isinstance(part, str)]
        places = [(n, found.start()) for n, part in texts for found in re.finditer(r"\n(?=\n)", part)]
        if not places:
            self.parts += new
            return
        n, at = rng.choice(places)
        part = self.parts[n]
        assert isinstance(part, str)
        self.parts[n : n + 1] = [part[: at + 1], *new, part[at + 1 :]]


def squeeze(expression: str) -> str:
    """Return the text without white space and comments."""
    return re.sub(r"\s+", "", re.sub(r"//[^\n]*|/\*.*?\*/", "", expression, flags=re.DOTALL))


# --- mutations that change nothing that matters, or that the models follow -------------------------------------------


TEXTS = (
    "// cvt.rn.satfinite.e2m1x2.f32 d, a, b puts a in the high nibble",
    '/* asm volatile("cvt.rn.satfinite.e2m1x2.f32 b, %1, %2;" : "=r"(x) : "f"(y)); */',
    "// fp4patch_threshold::e2m1_x8, FP4PATCH_THRESHOLD_CUH: done already",
    "/* #if __CUDA_ARCH__ == 1210\n#else\n#endif */",
    '// an open " quote, an open { and an open (',
    "/* asm( */ // __CUDA_ARCH__ == 1210 \\\n   and so on",
    'static const char* const note@ = "asm volatile(\\"cvt\\") #if";',
    'static const char* const note@ = "} // not a comment { float4_e2m1f";',
    'static const char* const note@ = R"(asm("x");)";',
    '__device__ void other@(float a, float& b) { asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a)); }',
    '__device__ void other@(float a, float& b) { asm("{.reg .b8 x;" "cvt.rn.f16x2" ".e2m1x2 %0, x;}" : "=r"(b)); }',
    '__device__ void other@(float a, float& b) { asm volatile("bar.sync 0;" ::: "memory"); }',
    '__device__ void other@(float a, float& b) { asm("" : : "n"(sizeof(float) == 4 ? 1 : 0)); }',
)
"""Comments, strings and other assembly, each on lines of its own; ``@`` is a number."""


def something_else(doc: Document, rng: random.Random) -> None:
    doc.at_a_blank_line(rng, [f"{rng.choice(TEXTS).replace('@', str(rng.randrange(10**6)))}\n"])


def crlf(doc: Document, rng: random.Random) -> None:
    doc.crlf = True


def reindent(doc: Document, rng: random.Random) -> None:
    unit = rng.choice(["\t", "    ", "", " "])
    doc.texts(lambda text: re.sub(r"(?m)^(?:  )+", lambda m: unit * (len(m[0]) // 2), text))


def another_statement(doc: Document, rng: random.Random) -> None:
    program = Program(rng)
    outputs = [(f"={letter}", f"o[{n}].{letter}") for n, letter in enumerate(program.outputs)]
    inputs = [("f", rng.choice(["v[{}]", "v[{}].x", "*v{}", "at(v, {})"]).format(n)) for n in range(program.count)]
    head = f"__device__ void another{rng.randrange(10**6)}(float* v, Out* o) {{\n"
    doc.at_a_blank_line(rng, [head + "  ", Asm(program.template, outputs, inputs), "\n}\n"])


def without_braces(doc: Document, rng: random.Random) -> None:
    statement = rng.choice(doc.statements)
    condition = rng.choice(["if (threadIdx.x < n)", "for (int k = 0; k < n; ++k)", "else", "do", "case 3:"])
    condition = f"if (n) {{}} {condition}" if condition == "else" else condition
    statement.lead = condition + rng.choice([" ", "\n" + statement.indent])
    if condition == "do":
        statement.trail = " while (false);"


def code_beside(doc: Document, rng: random.Random) -> None:
    statement = rng.choice(doc.statements)
    statement.lead = rng.choice(["int k = 0; ", "{ ", "/* here */ ", "k += 1; /* ; */"])
    closing = " }" if statement.lead == "{ " else ""
    statement.trail = closing + rng.choice(["  // asm", " /* #else */", " k = 1;", " /* over\n two lines */", "   "])


def spell(doc: Document, rng: random.Random) -> None:
    ways = ["asm", "asm volatile", "asm  volatile\n ", "__asm__ __volatile__", "__asm__", "asm /* ; */ volatile"]
    for statement in doc.statements:
        statement.keyword = rng.choice(ways)


def split_literals(doc: Document, rng: random.Random) -> None:
    for statement in doc.statements:
        statement.pieces, statement.raw = rng.choice([1, 2, 7, 40]), False


def one_literal(doc: Document, rng: random.Random) -> None:
    for statement in doc.statements:
        if "//" not in statement.template:
            statement.template = statement.template.replace("\n", " ")
        statement.raw = rng.random() < 0.5


def lay_out(doc: Document, rng: random.Random) -> None:
    between = rng.choice([[" "], ["\n\n\t"], [" ", "\n      ", ' /* "f"(x), ) */ ', " // : ) ;\n"], ["  \\\n  ", " "]])
    for statement in doc.statements:
        statement.joints = lambda: rng.choice(between)


def symbolic_names(doc: Document, rng: random.Random) -> None:
    for statement in doc.statements:
        for n in range(len(statement.outputs) + len(statement.inputs)):
            if rng.random() < 0.5 and n not in statement.names:
                statement.names[n] = f"name{n}_{rng.randrange(99)}"
                statement.template = re.sub(rf"%{n}\b", f"%[{statement.names[n]}]", statement.template)


def side_effects(doc: Document, rng: random.Random) -> None:
    statement = rng.choice(doc.statements)
    calls = ["next({})", "v[i++ + {}]", "({}, w)", "f<1, 2>({})", "[&] {{ return {}; }}()"]
    change = rng.choice([*calls, "/* : */ v[{}] // ,\n", "a, b[{}]"])
    statement.inputs = [(c, change.format(n)) for n, (c, _) in enumerate(statement.inputs)]


MUTATIONS: dict[str, Callable[[Document, random.Random], None]] = {
    mutation.__name__: mutation
    for mutation in (
        something_else,
        crlf,
        reindent,
        another_statement,
        without_braces,
        code_beside,
        spell,
        split_literals,
        one_literal,
        lay_out,
        symbolic_names,
        side_effects,
    )
}


def mutate(text: str, rng: random.Random) -> tuple[Document, str, list[str]]:
    """Return a mutated document, its text, and what was done to it."""
    doc = Document.read(text)
    done = rng.sample(list(MUTATIONS), rng.randint(1, 6))
    for name in done:
        MUTATIONS[name](doc, rng)
    return doc, doc.render(rng), done


# --- judgement -------------------------------------------------------------------------------------------------------


def judge(doc: Document, before: str, after: str, rng: random.Random) -> None:
    """Assert that ``after`` keeps every statement under the guard and has software fallbacks that compute the same."""
    newline = "\r\n" if doc.crlf else "\n"
    helper = ENCODER.strip("\n").replace("\n", newline)
    assert after.count(helper) == 1
    without = after.replace(helper, "")
    opening = rf"[ \t]*#if !\({re.escape(GUARD)}\)\r?\n"
    wrapped = re.compile(opening + r"(.*?)\r?\n[ \t]*#else\r?\n(.*?)\r?\n[ \t]*#endif", re.DOTALL)
    found = wrapped.findall(without)
    assert len(found) == len(doc.statements)
    assert squeeze_space(wrapped.sub(lambda m: m[1], without)) == squeeze_space(before)
    assert after.index(helper) < after.index(f"#if !({GUARD})")
    no_code = r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\""
    assert "{" not in re.sub(no_code, "", after[: after.index(helper)], flags=re.DOTALL), "the encoder is at file scope"
    if doc.crlf:
        assert after.count("\n") == after.count("\r\n")
    for statement, (hardware, software) in zip(doc.statements, found, strict=True):
        assert statement.text in hardware
        expressions = [squeeze(expression) for _, expression in statement.inputs]
        for _ in range(2):
            values = {expression: rng.choice(_VALUES) for expression in expressions}
            seen: Counter[str] = Counter()
            assert twin(software, values, seen) == statement.expected(values)
            assert seen == Counter(expressions), "every expression is evaluated once"


def squeeze_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


def twin(software: str, values: dict[str, float], seen: Counter[str]) -> dict[str, int]:
    """Evaluate the generated C++: calls, temporaries and assignments, nothing else."""
    body = squeeze(software.strip())
    body = body[1:-1] if body.startswith("{") else body
    known = {"0.0f": 0}
    assigned: dict[str, int] = {}

    def code(argument: str) -> int:
        if argument in known:
            return known[argument]
        plain = argument[1:-1] if argument not in values else argument
        seen[plain] += 1
        return e2m1(values[plain])

    for statement in cut(body, ";"):
        if not statement or statement.startswith("static_cast<void>(fp4patch_in"):
            continue
        target, expression = statement.split("=", 1)
        if target.startswith("constfloatfp4patch_in"):
            known[target.removeprefix("constfloat")] = code(expression)
            continue
        if call := re.fullmatch(r"::fp4patch_threshold::e2m1(?:_x(\d+))?\((.*)\)", expression):
            arguments = cut(call[2], ",")
            assert len(arguments) == int(call[1] or 1)
            value = sum(code(argument) << 4 * n for n, argument in enumerate(arguments))
        else:
            value = assigned[f"constauto{expression}"] if expression != "0" else 0
        assigned[target] = value
    return {target.strip("()"): value for target, value in assigned.items() if not target.startswith("constauto")}


def cut(text: str, separator: str) -> list[str]:
    """Split at separators outside brackets; a ``<`` before digits is one too."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
