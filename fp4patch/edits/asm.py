"""Inline-assembly statements in C++ and CUDA: their position, template and operands.

``asm``, ``__asm__`` or ``__asm``, any qualifiers, any split of the template into literals. Nothing inside comments,
strings or preprocessor directives is a statement.
"""

import re
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from fp4patch.core.lex_error import LexError
from fp4patch.cxx.tokens import Kind, Source, Token
from fp4patch.edits.ptx import Operand, conversions, is_decode, is_encode, unexplained

KEYWORDS = frozenset({"asm", "__asm__", "__asm"})
_QUALIFIERS = frozenset({"volatile", "__volatile__", "__volatile", "inline", "__inline__", "goto"})
_RAW = re.compile(r'R"([^()\\\s]{0,16})\((.*)\)\1"', re.DOTALL)
_MENTION = re.compile(r"e2m1x[0-9]")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Binding:
    """One operand: ``[name] "constraint"(expression)``."""

    operand: Operand
    expression: tuple[Token, ...]
    """The tokens of the C++ expression, without its parentheses."""


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
    template: str
    """The PTX, as the compiler sees it."""
    outputs: tuple[Binding, ...]
    inputs: tuple[Binding, ...]

    @property
    def encodes(self) -> bool:
        """True if it converts to E2M1."""
        return any(is_encode(opcode) for opcode in conversions(self.template))


@dataclass(frozen=True)
class Scan:
    """E2M1 statements in the assembly of a file."""

    encodes: tuple[Statement, ...]
    """Those that convert to it: one that only converts back is never touched."""
    strange: tuple[LexError, ...]
    """Mentions of the format that no statement explains: in macros, in ``#define``, as a bare word."""


def scan(source: Source) -> Scan:
    """Return every statement of a file that has to do with E2M1, and every mention of it that might and is in none.

    An opcode that a macro pastes, or whose name is cut into two literals, is not seen: the compile and the check of the
    machine code see what it becomes.
    """
    mentions = (bisect_right(source.starts, found.start()) - 1 for found in _MENTION.finditer(source.text))
    spots = [at for at in dict.fromkeys(mentions) if at >= 0 and _MENTION.search(source.words[at])]
    words = enumerate(source.words) if spots else ()
    keywords = [at for at, word in words if word in KEYWORDS and source.directive_of[at] < 0]
    statements: dict[int, Statement] = {}
    strange = []
    for spot in spots:
        token = source.token(spot)
        before = bisect_right(keywords, spot)
        where = "in a preprocessor directive" if token.directive >= 0 else "outside any asm statement"
        statement = None
        try:
            keyword = keywords[before - 1] if before else -1
            statement = statements.get(keyword) or (parse(source, keyword) if before else None)
        except LexError as error:
            where = where if token.directive >= 0 else f"in {error.message}"
        if not source.is_live(token.start) or _is_diagnostic(source, token):
            continue
        if statement and spot <= statement.last:
            statements[statement.first] = statement
        elif mention := _unexplained(token):
            strange.append(LexError(f"{mention} {where}" if token.kind is Kind.STRING else mention, token.line))
    encodes = []
    for statement in statements.values():
        if statement.encodes:
            encodes.append(statement)
        elif format_ := unexplained(statement.template):
            strange.append(LexError(f"{format_} in an instruction that is no cvt", statement.line))
    return Scan(tuple(encodes), tuple(strange))


def _is_diagnostic(source: Source, token: Token) -> bool:
    """Return whether a token is of the text that ``#error`` or ``#warning`` prints."""
    return token.directive >= 0 and source.directives[token.directive].name in ("error", "warning")


def _unexplained(token: Token) -> str:
    """Return the format that a token outside of statements mentions; empty if it is that of a conversion from it."""
    mention = _MENTION.findall(token.text)[0]
    if token.kind is not Kind.STRING:  # a macro could make a literal of the format
        return f"{mention} outside a string" if token.text == mention else ""
    opcodes = [opcode for opcode in conversions(literal(token)) if _MENTION.search(opcode)]
    return "" if opcodes and all(map(is_decode, opcodes)) else mention


def parse(source: Source, at: int) -> Statement | None:
    """Return the statement whose keyword is token ``at``; None if no statement begins so. LexError: another form."""
    words, here = source.words, at + 1
    while words[here : here + 1] and words[here] in _QUALIFIERS:
        if words[here] == "goto":
            raise LexError("asm goto", source.token(at).line)
        here += 1
    if words[here : here + 1] != ("(",):
        return None
    close = closing(words, here)
    if close is None or words[close + 1 : close + 2] != (";",):
        raise LexError("an asm that is no statement of its own", source.token(at).line)
    keyword, *tokens, _, semicolon = map(source.token, range(at, close + 2))
    for token in (keyword, *tokens, semicolon):
        if token.directive >= 0:
            raise LexError("a preprocessor directive inside an asm statement", token.line)
    sections = split(tokens[here - at :], ":")
    if len(sections) > 4 or not sections[0]:  # template, outputs, inputs, clobbers
        raise LexError("not template, outputs, inputs and clobbers", keyword.line)
    for token in sections[0]:
        if token.kind is not Kind.STRING or token.text[0] not in '"R':
            raise LexError(f"{token.text} in the template: not a string literal", token.line)
    outputs, inputs = [*sections[1:], [], []][:2]
    return Statement(
        at,
        close + 1,
        keyword.start,
        semicolon.end,
        keyword.line,
        "".join(map(literal, sections[0])),
        tuple(_binding(part, keyword.line) for part in split(outputs, ",") if part or len(outputs)),
        tuple(_binding(part, keyword.line) for part in split(inputs, ",") if part or len(inputs)),
    )


def literal(token: Token) -> str:
    """Return the contents of a string literal, without its prefix."""
    if raw := _RAW.search(token.text):
        return raw[2]
    written = token.text[token.text.index('"') + 1 : -1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a backslash before any letter
        return written.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")


def closing(words: Sequence[str], at: int) -> int | None:
    """Return the index of the bracket that closes the one at ``at``; None if there is none."""
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index] in _OPENING) - (words[index] in _CLOSING)
        if depth == 0:
            return index
    return None


def split(tokens: Sequence[Token], separator: str) -> list[list[Token]]:
    """Return the parts between separators outside of brackets; one empty part if there are no tokens."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
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
    constraints = list(takewhile(lambda token: token.kind is Kind.STRING, rest))
    body = rest[len(constraints) :]
    words = [token.text for token in body]
    if not constraints or len(body) < 3 or words[0] != "(" or closing(words, 0) != len(body) - 1:
        raise LexError('an operand that is not "constraint"(expression)', part[0].line if part else line)
    return Binding(Operand("".join(literal(token) for token in constraints).strip(), name), tuple(body[1:-1]))
