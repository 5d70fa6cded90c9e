"""Insertions of ``wrap-asm``: the encoder, and a software fallback beside each statement that converts."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fp4patch.cxx.edit import newline_of, set_off
from fp4patch.cxx.text import COMMENT
from fp4patch.cxx.tokens import Source, Token
from fp4patch.edits.asm import Binding, Statement, split
from fp4patch.edits.ptx import Brain, Encoded, Float, Packed, Product, Word, operands_of
from fp4patch.edits.refusal import Refusal

COLUMNS = 80
"""Width that generated lines keep to where they can: that of the trees' own clang-format."""

_CALLS = {1: "e2m1", 2: "e2m1_x2", 4: "e2m1_x4", 8: "e2m1_x8", 16: "e2m1_x16"}


OPERANDS = "operands"
"""The header with what statements do with their operands before they convert them."""

_PLAIN = re.compile(r"\*?\w[\w.:]*(?:(?:->\w|\[[^][]*\]|\([^()]*\))[\w.:]*)*")
_EFFECT = re.compile(r"[\w)\]>]\s*[({]|\+\+|--|(?<![=!<>])=(?!=)")  # a call, an increment, an assignment
_TYPES = {"f": "float", "h": "unsigned short", "r": "unsigned int", "l": "unsigned long long"}
"""C++ types of inputs by the letter of their constraint."""


@dataclass(frozen=True)
class Choice:
    """Choice of a variant for conversions of one kind."""

    guard: str
    """The condition under which software is compiled, on one line."""
    encoder: str
    """The encoder's name."""


@dataclass(frozen=True)
class Site:
    """One statement to be wrapped, what it packs, and what was chosen for its kind of conversion."""

    statement: Statement
    packed: tuple[Packed, ...]
    choice: Choice

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that its software fallback calls, in their order."""
        plain = all(
            isinstance(code.value, Word) and self.letter(code.value.operand) == "f"
            for output in self.packed
            for code in output.nibbles
            if code
        )
        return (*([] if plain else [OPERANDS]), self.choice.encoder)

    def letter(self, operand: int) -> str:
        """Return the letter of an input's constraint."""
        return self.statement.inputs[operand - len(self.statement.outputs)].operand.letter


def inserts_for(source: Source, site: Site) -> Iterable[tuple[int, str]]:
    """Return the lines to insert before and after the statement; the statement itself remains."""
    text = source.text
    statement = site.statement
    condition = f"!({site.choice.guard})"
    line_start = text.rfind("\n", 0, statement.start) + 1
    lead = text[line_start : statement.start]
    indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
    newline_at = text.find("\n", statement.end)
    line_end = len(text) if newline_at < 0 else newline_at
    newline = "\r\n" if text[line_end - 1 : line_end + 1] == "\r\n" else "\n"
    before = text[:line_start].rstrip("\r\n")
    if line_start and before.rstrip(" \t").endswith("\\"):
        raise Refusal("a statement that begins a line", "a continued line before it", statement.line)
    start, opening = line_start, f"{indent}#if {condition}{newline}"
    if lead.strip():  # code on the statement's line stays on a line of its own
        start, opening = statement.start, f"{newline}{indent}#if {condition}{newline}{indent}"
    fallback = _fallback(source, site, len(indent.expandtabs(8)))
    rest = "".join(f"{line}{newline}" for line in (f"{indent}#else", *textwrap.indent(fallback, indent).split("\n")))
    rest += f"{indent}#endif"
    tail = text[statement.end : line_end].strip()
    yield start, opening
    if not tail or COMMENT.fullmatch(tail):
        yield (line_end + 1, rest + newline) if newline_at >= 0 else (line_end, newline + rest)
    else:
        yield statement.end, newline + rest + newline


def _fallback(source: Source, site: Site, indent: int) -> str:
    """Return one C++ statement that does in software what the asm statement does."""
    statement = site.statement
    packed = site.packed
    namespace = f"fp4patch_{site.choice.encoder}"
    used = Counter(operand for output in packed for operand in _read(output))
    count = len(statement.outputs)
    room = COLUMNS - indent
    computes = OPERANDS in site.headers
    # An asm statement reads its operands in their order; a call may evaluate its arguments in any.
    ordered = sum(bool(_EFFECT.search(text_of(binding.expression))) for binding in statement.inputs) > 1
    expressions = {count + n: _argument(binding) for n, binding in enumerate(statement.inputs)}
    direct = not (ordered or computes) and all(used[number] == 1 for number in expressions)
    if len(packed) == 1 and direct:
        target = _target(statement.outputs[0])
        before = source.before(statement.first)
        if (before and before.text) != ")" or target[0].isalpha() or target[0] == "_":
            return _assignment(f"{target} = ", packed[0], _Values(site, expressions), namespace, room)
    lines = [f"namespace fp4patch = ::fp4patch_{OPERANDS};"] if computes else []
    if not direct:  # each expression is evaluated once, used or not
        for number, argument in expressions.items():
            name = f"fp4patch_in{number - count}"
            lines.append(f"const {_TYPES[site.letter(number)]} {name} = {argument};")
            if not used[number]:
                lines.append(f"static_cast<void>({name});")
            expressions[number] = name
    for output in packed:  # all inputs are read before any output is written
        declared = f"const auto fp4patch_out{output.operand} = "
        lines.append(_assignment(declared, output, _Values(site, expressions), namespace, room - 2))
    lines += [f"{_target(binding)} = fp4patch_out{n};" for n, binding in enumerate(statement.outputs)]
    return "{\n" + "\n".join(textwrap.indent(line, "  ") for line in lines) + "\n}"


def _read(output: Packed) -> Iterator[int]:
    """Yield the operands that the software fallback of an output reads, as often as it does; random bits once for four
    values."""
    for code in output.nibbles:
        if code:
            yield from operands_of(code.value)
            if code.rbits and code.lane == 0:
                yield code.rbits.operand


@dataclass(frozen=True)
class _Values:
    """C++ for what a statement computes of its inputs."""

    site: Site
    names: Mapping[int, str]
    """By operand."""

    def single(self, value: Float) -> str:
        """Return a float."""
        if isinstance(value, Product):
            function = "mul_plus_zero" if value.plus_zero else "mul"
            return f"fp4patch::{function}({self.single(value.a)}, {self.single(value.b)})"
        name, letter = self.names[value.operand], self.site.letter(value.operand)
        if isinstance(value, Brain):
            return f"fp4patch::bfloat16({name}, {value.nth})"
        return name if letter == "f" else f"fp4patch::single({name}, {value.nth})"

    def random(self, rbits: Word) -> str:
        """Return the random bits of four values."""
        name, letter = self.names[rbits.operand], self.site.letter(rbits.operand)
        if letter == "f":
            raise Refusal("random bits in an integer", f'"f"({name})', self.site.statement.line)
        return name if letter == "r" else f"static_cast<unsigned int>({name} >> {32 * rbits.nth})"


def _assignment(target: str, output: Packed, values: _Values, namespace: str, room: int) -> str:
    """Return ``target = ::fp4patch_x::e2m1_x8(…);``, broken into lines where it is long. Zeros are passed as 0.0f."""
    nibbles = list(output.nibbles)
    while nibbles and nibbles[-1] is None:
        nibbles.pop()
    if not nibbles:
        return f"{target}0;"
    size = next(size for size in _CALLS if size >= len(nibbles))
    nibbles += [None] * (size - len(nibbles))
    pieces = ["0.0f" if code is None else values.single(code.value) for code in nibbles]
    if output.stochastic:
        pieces += [values.random(word) for word in _random_words(nibbles, values.site.statement.line)]
    call = f"{target}::{namespace}::{_CALLS[size]}("
    one_line = f"{call}{', '.join(pieces)});"
    if len(one_line) <= room:
        return one_line
    # Only a blank between two arguments may become a line's end.
    arguments = " ".join(f"{piece},".replace(" ", "\0") for piece in pieces)[:-1] + ");"
    lines = textwrap.wrap(arguments, room - 4, break_long_words=False, break_on_hyphens=False)
    return "\n    ".join([call, *lines]).replace("\0", " ")


def _random_words(nibbles: Sequence[Encoded | None], line: int) -> Iterator[Word]:
    """Yield the random bits of each four values, which must be the four of one instruction in their order."""
    for at in range(0, len(nibbles), 4):
        four = nibbles[at : at + 4]
        words = {code.rbits for code in four if code}
        if len(nibbles) > 8 or [code and code.lane for code in four] != [0, 1, 2, 3] or len(words) != 1:
            raise Refusal("stochastic conversions packed as the instruction packs them", "another order", line)
        (word,) = words
        if word is None:
            raise Refusal("conversions of one kind in an output", "stochastic ones and others", line)
        yield word


def _argument(binding: Binding) -> str:
    text = text_of(binding.expression)
    return f"({text})" if len(split(binding.expression, ",")) > 1 else text


def _target(binding: Binding) -> str:
    """Return the output as the left side of an assignment: in parentheses unless it is names, members and elements."""
    text = text_of(binding.expression)
    return text if _PLAIN.fullmatch(text) else f"({text})"


def text_of(tokens: Sequence[Token]) -> str:
    """Return the tokens on one line, without comments; a blank where there was any space."""
    parts = [tokens[0].text]
    for before, token in pairwise(tokens):
        parts += [" " if before.end < token.start else "", token.text]
    return "".join(parts)


def encoder_text(text: str, at: int, helper: str) -> str:
    """Return the encoder's text, set off by blank lines, with the file's newlines."""
    newline = newline_of(text)
    return set_off(text, at, helper) + newline + ("" if text[at : at + 1] in ("", "\n", "\r") else newline)
