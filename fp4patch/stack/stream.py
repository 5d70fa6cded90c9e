"""A text, or the part of it that a hunk shows, as tokens by statements, with its functions."""

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from fp4patch.core.lex_error import LexError
from fp4patch.core.tree_path import is_source
from fp4patch.cxx import shape
from fp4patch.cxx.tokens import lex
from fp4patch.edits import cmake
from fp4patch.edits.language import language

_ENDS = frozenset(";{}")
_LAYOUT = frozenset(
    (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENCODING, tokenize.ENDMARKER)
)
_HEADING = re.compile(r"^[A-Za-z_$].*", re.MULTILINE)
# Example: template <int N> struct Vector {
_NAMED = re.compile(
    r"[^(]*?\b(?:class|struct|namespace|union|enum)\s+(?:\w+\s+)*?([A-Za-z_]\w*)\s*(?:[:{(].*|$)|[^(]*?([A-Za-z_]\w*)\s*\(.*"
)
# Example:     async def forward(
_DEF = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)


class Function(NamedTuple):
    """First token of a function, the one behind its last, and its name."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Stream:
    """A text as tokens."""

    words: tuple[str, ...]
    lines: tuple[int, ...]
    """1-based line of each token."""
    statements: tuple[tuple[str, ...], ...]
    functions: tuple[Function, ...]
    """Functions that are in no other, in their order; none if the text is not whole."""
    headings: tuple[tuple[int, str], ...]
    """Lines that git takes for the head of a function, with the name in them."""
    heads: tuple[tuple[int, str], ...]
    """Lines in which a function of Python begins, with its name."""

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for at, word in enumerate(self.words):
            places.setdefault(word, []).append(at)
        return places

    def find(self, wanted: Sequence[str], start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yield each place of a sequence of tokens between two others."""
        wanted, end = tuple(wanted), len(self.words) if end is None else end
        rarest = min(range(len(wanted)), key=lambda at: len(self._places.get(wanted[at], ())))
        for place in self._places.get(wanted[rarest], ()):
            begin = place - rarest
            if start <= begin <= end - len(wanted) and self.words[begin : begin + len(wanted)] == wanted:
                yield begin

    def function_at(self, at: int) -> Function | None:
        """Return the function that a token is in."""
        place = bisect_right(self.functions, at, key=lambda function: function.start) - 1
        return self.functions[place] if place >= 0 and at < self.functions[place].end else None

    def heading_at(self, line: int) -> str:
        """Return the name in the last heading up to a line; empty if there is none."""
        return _last(self.headings, line)

    def head_at(self, line: int) -> str:
        """Return the name of the last function of Python that begins up to a line; empty if there is none."""
        return _last(self.heads, line)


def _last(named: Sequence[tuple[int, str]], line: int) -> str:
    place = bisect_right(named, line, key=lambda item: item[0]) - 1
    return named[place][1] if place >= 0 else ""


def stream(text: str, path: str) -> Stream:
    """Return a text as tokens of the language that its path names; as words of lines, where it cannot be read so."""
    return _stream(text, language(path) if is_source(path.rpartition("/")[2]) else "other")


@lru_cache(maxsize=256)
def _stream(text: str, kind: str) -> Stream:
    try:
        if kind == "c++":
            return _cxx(text)
        if kind == "python":
            return _python(text)
        if kind == "cmake":
            found = list(cmake.words(text))
            words = _split((word for word, _ in found), frozenset(")"))
            return _made(text, words, [line for _, line in found])
    except (LexError, SyntaxError, tokenize.TokenError):
        pass  # a part of a text can begin or end within a comment or a string
    rows = [tuple(line.split()) for line in text.split("\n")]
    return _made(text, rows, [line for line, row in enumerate(rows, 1) for _ in row])


def _made(
    text: str,
    statements: Iterable[tuple[str, ...]],
    lines: Sequence[int],
    functions: Iterable[tuple[int, int, str]] = (),
    heads: Iterable[tuple[int, str]] = (),
) -> Stream:
    kept = tuple(filter(None, statements))
    words = tuple(word for statement in kept for word in statement)
    whole = tuple(Function(*function) for function in functions)
    return Stream(words, tuple(lines), kept, whole, tuple(_headings(text)), tuple(heads))


def _split(words: Iterable[str], ends: frozenset[str]) -> Iterator[tuple[str, ...]]:
    statement: list[str] = []
    for word in words:
        statement.append(word)
        if word in ends:
            yield tuple(statement)
            statement.clear()
    yield tuple(statement)


def _cxx(text: str) -> Stream:
    source = lex(text)
    statements = []
    statement = list[str]()
    inside = -1
    for word, directive in zip(source.words, source.directive_of, strict=True):
        if directive != inside:
            statements.append(tuple(statement))
            statement, inside = [], directive
        statement.append(word)
        if directive < 0 and word in _ENDS:
            statements.append(tuple(statement))
            statement = []
    statements.append(tuple(statement))
    return _made(text, statements, [source.line(start) for start in source.starts], shape.bodies(source))


def _python(text: str) -> Stream:
    # A part of a function has no sound indentation: all of it is taken off, in the whole text too.
    rows = "".join(f"{line.lstrip()}\n" for line in text.split("\n"))
    statements = []
    statement = list[str]()
    lines = list[int]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(rows).readline):
            if token.type == tokenize.NEWLINE:
                statements.append(tuple(statement))
                statement = []
            elif token.type not in _LAYOUT:
                statement.append(token.string)
                lines.append(token.start[0])
    except tokenize.TokenError as error:
        if "statement" not in str(error):  # it may end within parentheses, and not within a string
            raise
    statements.append(tuple(statement))
    heads = [(_line(text, head.start(1)), head[1]) for head in _DEF.finditer(text)]
    return _made(text, statements, lines, _python_functions(text, lines), heads)


def _python_functions(text: str, lines: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the functions of a module; none of a part of one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError):
        return
    while open_:
        node = open_.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min(node.lineno, *(decorator.lineno for decorator in (*node.decorator_list, node)))
            yield bisect_left(lines, first), bisect_right(lines, node.end_lineno or first), node.name
        else:
            open_ += reversed(list(ast.iter_child_nodes(node)))


def _headings(text: str) -> Iterator[tuple[int, str]]:
    line, at = 1, 0
    for found in _HEADING.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        yield line, heading_name(found[0])


def heading_name(heading: str) -> str:
    """Return the name of the class or function whose head a line is; of any other line its first two words."""
    shown = heading[:80].strip()  # as much as git shows of it
    named = _NAMED.match(shown)
    return named[1] or named[2] if named else " ".join(shown.split()[:2])


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
