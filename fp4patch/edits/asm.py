"""Inline-assembly statements in C++ and CUDA: their position, template and operands.

``asm``, ``__asm__`` or ``__asm``, any qualifiers, any split of the template into literals. Nothing inside comments,
strings or preprocessor directives is a statement.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fp4patch.edits.cxx import Kind, Source, Token
from fp4patch.edits.ptx import Operand, conversions, is_decode, is_encode, unexplained

KEYWORDS = frozenset({"asm", "__asm__", "__asm"})
_QUALIFIERS = frozenset({"volatile", "__volatile__", "__volatile", "inline", "__inline__", "goto"})
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_RAW = re.compile(r'R"([^()\\\s]{0,16})\((.*)\)\1"', re.DOTALL)
_MENTION = re.compile(r"e2m1x[0-9]")
CUT = r"(?:[\"\s\\()RLuU8]|//[^\n]*+|/\*.*?\*/)*+"
"""Text that may be within a word that is cut into several literals, raw ones and those with a prefix too."""
_SPOT = re.compile(rf"{CUT.join('e2m1x')}|\\[xuU0-7]", re.DOTALL)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class Malformed(ValueError):  # noqa: N818 - named after the statement
    """An ``asm`` that does not have the form of a statement with operands."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Binding:
    """One operand: ``[name] "constraint"(expression)``."""

    operand: Operand
    expression: tuple[Token, ...]
    """The tokens of the C++ expression, without its parentheses."""

    @property
    def start(self) -> int:
        """Offset of the expression."""
        return self.expression[0].start

    @property
    def end(self) -> int:
        """Offset behind the expression."""
        return self.expression[-1].end


@dataclass(frozen=True)
class Statement:
    """One ``asm`` statement, from its keyword to its semicolon."""

    first: int
    """Index of its first token."""
    last: int
    """Index of its last token, the semicolon."""
    start: int
    end: int
    line: int
    volatile: bool
    literals: tuple[Token, ...]
    outputs: tuple[Binding, ...]
    inputs: tuple[Binding, ...]
    clobbers: tuple[str, ...]

    @cached_property
    def template(self) -> str:
        """The PTX, as the compiler sees it."""
        return "".join(literal(token) for token in self.literals)

    def line_at(self, offset: int) -> int:
        """Return the line in the file of an offset into the template."""
        lengths = accumulate(len(literal(token)) for token in self.literals)
        begin = 0
        for token, end in zip(self.literals, lengths, strict=True):
            if offset < end or token is self.literals[-1]:
                raw = "R" in token.text.partition('"')[0]
                return token.line + (literal(token).count("\n", 0, offset - begin) if raw else 0)
            begin = end
        return self.line

    @property
    def encodes(self) -> bool:
        """True if it converts to E2M1."""
        return any(is_encode(opcode) for opcode in conversions(self.template))

    @property
    def decodes(self) -> bool:
        """True if it converts from E2M1."""
        return any(is_decode(opcode) for opcode in conversions(self.template))


@dataclass(frozen=True)
class Scan:
    """E2M1 statements in the assembly of a file."""

    encodes: tuple[Statement, ...]
    decodes: tuple[Statement, ...]
    """Statements that only convert back; never touched."""
    strange: tuple[Malformed, ...]
    """Mentions of the format that no statement explains: in macros, in ``#define``, as a bare word."""


def scan(source: Source) -> Scan:
    """Return every statement of a file that has to do with E2M1, and every mention of it that might and is in none."""
    tokens, spots = source.tokens, _spots(source)
    encodes, decodes, strange = [], [], []
    explained: list[range] = []
    broken: list[tuple[int, int, Malformed]] = []
    for at in _keywords(tokens, spots):
        token = tokens[at]
        if token.directive >= 0 or not source.is_live(token.start):
            continue
        try:
            statement = parse(source, at)
        except Malformed as malformed:  # its literals remain unexplained: they are looked at below
            broken.append((token.start, _reach(tokens, at), malformed))
            continue
        if statement is None:
            continue
        explained.append(range(statement.first, statement.last + 1))
        if statement.encodes:
            encodes.append(statement)
        elif format_ := unexplained(statement.template):
            strange.append(Malformed(f"{format_} in an instruction that is no cvt", statement.line))
        elif statement.decodes:
            decodes.append(statement)
    for token in (tokens[at] for at in spots):
        # A macro could make a literal of it.
        if token.kind is Kind.NAME and _MENTION.fullmatch(token.text) and source.is_live(token.start):
            strange.append(Malformed(f"{token.text} outside a string", token.line))
    for run in _literal_runs(tokens, [at for at in spots if not any(at in span for span in explained)]):
        text = "".join(literal(token) for token in run)
        opcodes = [opcode for opcode in conversions(text) if _MENTION.search(opcode)]
        decoded = opcodes and all(is_decode(opcode) for opcode in opcodes)
        if _MENTION.search(text) and not decoded and source.is_live(run[0].start):
            mention, begin = _MENTION.findall(text)[0], run[0].start
            reason = next((f"in {m.message}" for start, end, m in broken if start < begin < end), "")
            where = "in a preprocessor directive" if run[0].directive >= 0 else reason or "outside any asm statement"
            strange.append(Malformed(f"{mention} {where}", run[0].line))
    return Scan(tuple(encodes), tuple(decodes), tuple(strange))


def _spots(source: Source) -> list[int]:
    """Return the indices of the tokens in which a mention of the format may begin; an escape sequence may hide one."""
    starts = source.starts
    found = (bisect_right(starts, spot.start()) - 1 for spot in _SPOT.finditer(source.text))
    return list(dict.fromkeys(at for at in found if at >= 0))


def _keywords(tokens: Sequence[Token], spots: Iterable[int]) -> list[int]:
    """Return the last ``asm`` in front of each spot."""
    found, done = [], -1
    for spot in spots:
        at = spot
        while at > done and (tokens[at].text not in KEYWORDS or tokens[at].kind is not Kind.NAME):
            at -= 1
        if at > done:
            found.append(at)
        done = spot
    return found


def parse(source: Source, at: int) -> Statement | None:
    """Return the statement whose keyword is token ``at``; None if no statement begins so. Malformed: see there."""
    tokens = source.tokens
    keyword, volatile, here = tokens[at], False, at + 1
    while here < len(tokens) and tokens[here].text in _QUALIFIERS:
        if tokens[here].text == "goto":
            raise Malformed("asm goto", keyword.line)
        volatile = volatile or "volatile" in tokens[here].text
        here += 1
    if here >= len(tokens) or tokens[here].text != "(":
        return None
    close = closing(tokens, here)
    if close is None or close + 1 >= len(tokens) or tokens[close + 1].text != ";":
        raise Malformed("an asm that is no statement of its own", keyword.line)
    inside = tokens[here + 1 : close]
    for token in tokens[at : close + 2]:
        if token.directive >= 0:
            raise Malformed("a preprocessor directive inside an asm statement", token.line)
    sections = split(inside, ":")
    if len(sections) > 4 or not sections[0]:  # template, outputs, inputs, clobbers
        raise Malformed("not template, outputs, inputs and clobbers", keyword.line)
    for token in sections[0]:
        if token.kind is not Kind.STRING or token.text[0] not in '"R':
            raise Malformed(f"{token.text} in the template: not a string literal", token.line)
    outputs, inputs, clobbers = [*sections[1:], [], [], []][:3]
    return Statement(
        at,
        close + 1,
        keyword.start,
        tokens[close + 1].end,
        keyword.line,
        volatile,
        tuple(sections[0]),
        tuple(_binding(part, keyword.line) for part in split(outputs, ",") if part or len(outputs)),
        tuple(_binding(part, keyword.line) for part in split(inputs, ",") if part or len(inputs)),
        tuple(literal(token) for token in clobbers if token.kind is Kind.STRING),
    )


def literal(token: Token) -> str:
    """Return the contents of a string literal, without its prefix."""
    if raw := _RAW.search(token.text):
        return raw[2]
    return _ESCAPE.sub(_escaped, token.text[token.text.index('"') + 1 : -1])


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the bracket that closes the one at ``at``; None if there is none."""
    depth = 0
    for index in range(at, len(tokens)):
        if tokens[index].kind is Kind.MARK:
            depth += (tokens[index].text in _OPENING) - (tokens[index].text in _CLOSING)
            if depth == 0:
                return index
    return None


def split(tokens: Sequence[Token], separator: str) -> list[list[Token]]:
    """Return the parts between separators outside of brackets; one empty part if there are no tokens."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind is Kind.MARK:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and token.text == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _binding(part: Sequence[Token], line: int) -> Binding:
    name, rest = "", list(part)
    if len(rest) > 2 and rest[0].text == "[" and rest[1].kind is Kind.NAME and rest[2].text == "]":
        name, rest = rest[1].text, rest[3:]
    constraints = [token for token in rest if token.kind is Kind.STRING][: max(1, _leading_strings(rest))]
    body = rest[len(constraints) :]
    if not constraints or len(body) < 3 or body[0].text != "(" or closing(body, 0) != len(body) - 1:
        raise Malformed('an operand that is not "constraint"(expression)', part[0].line if part else line)
    return Binding(Operand("".join(literal(token) for token in constraints).strip(), name), tuple(body[1:-1]))


def _reach(tokens: Sequence[Token], at: int) -> int:
    """Return the offset up to which an ``asm`` that is not understood may reach."""
    bracket = next((n for n in range(at, min(at + 5, len(tokens))) if tokens[n].text == "("), None)
    close = closing(tokens, bracket) if bracket is not None else None
    return tokens[close].end if close is not None else tokens[-1].end


def _leading_strings(tokens: Sequence[Token]) -> int:
    return next((n for n, token in enumerate(tokens) if token.kind is not Kind.STRING), len(tokens))


def _literal_runs(tokens: Sequence[Token], spots: Iterable[int]) -> Iterator[Sequence[Token]]:
    """Yield the string literals at these indices, each with those that the compiler joins with it."""
    done = -1
    for spot in spots:
        if tokens[spot].kind is not Kind.STRING or spot <= done:
            continue
        first = done = spot
        while first and _joined(tokens[first - 1], tokens[first]):
            first -= 1
        while done + 1 < len(tokens) and _joined(tokens[done], tokens[done + 1]):
            done += 1
        yield tokens[first : done + 1]


def _joined(one: Token, next_: Token) -> bool:
    return one.kind is next_.kind is Kind.STRING and one.directive == next_.directive


def _escaped(found: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if found[group]:
            return chr(min(int(found[group], base), 0x10FFFF))
    return _SIMPLE.get(found[5], found[5])
