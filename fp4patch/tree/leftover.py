"""Find what edits look for in live code, in a text of any language: what they should have left nowhere in the tree.

Comments, strings that are documentation, and code that no compiler reads (``#if 0``, ``if False:``, ``if(FALSE)``) do
not count. A text that cannot be read in its language is searched as it is.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeGuard

from fp4patch.catalog.patch import Absence
from fp4patch.edits.asm import CUT, literal
from fp4patch.edits.cmake import parse
from fp4patch.edits.cmakelists import lacking
from fp4patch.edits.cxx import Kind, lex
from fp4patch.edits.kinds import AddElement, Edit, ReplaceCommand, ReplaceExpression, ReplaceTokens, WrapAsm
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.ptx import ENCODE, is_encode
from fp4patch.edits.python_expression import falsy, read_expression
from fp4patch.edits.wrap_asm import needs_suffix, unguarded

_HASHES = frozenset(["sh", "bash", "zsh", "toml", "cfg", "ini", "conf", "mk", "ps1", "dockerfile", "makefile"])
_PYTHON = frozenset({"py", "pyi", "pyx", "pxd"})


class Place(NamedTuple):
    """Something that should not be there."""

    line: int
    found: str
    because: str = ""
    """The edit's own reason to leave it."""


@lru_cache(maxsize=1 << 15)
def language(file: str) -> str:
    """Return the language of a file by its name: ``c++`` also for templates of sources and whatever is not known."""
    name = file.rpartition("/")[2].lower()
    parts = name.removesuffix(".in").removesuffix(".j2").removesuffix(".jinja").removesuffix(".jinja2").split(".")
    if parts[-1] == "cmake" or name.startswith("cmakelists.txt"):
        return "cmake"
    if parts[-1] in _PYTHON:
        return "python"
    return "hashes" if parts[-1] in _HASHES or parts[0] in ("dockerfile", "makefile") else "c++"


@dataclass(frozen=True)
class Text:
    """A file's text, read in its language on demand."""

    file: str
    language: str
    content: bytes

    @cached_property
    def text(self) -> str:
        """The content, whatever its encoding."""
        return self.content.decode("utf-8", "surrogateescape")

    @cached_property
    def words(self) -> Sequence[tuple[str, int]]:
        """The live words of the code with their lines; a string is ``""``."""
        try:
            return list(_WORDS[self.language](self.text))
        except (LexError, SyntaxError, ValueError, RecursionError):
            return list(_raw_words(self.text))

    @cached_property
    def code(self) -> str:
        """The words with one blank between two."""
        if self.language == "python" and not _MAY_BE_DEAD.search(self.text):
            words = list(filter(None, _PYTHON_TOKEN.findall(self.text)))
            if not any(word in ("'", '"') for word in words):
                return " ".join('""' if word[-1] in "'\"" else word for word in words)
        return " ".join(word for word, _ in self.words)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(word) + 1 for word, _ in self.words), initial=0))

    def matches(self, pattern: str) -> Iterator[Place]:
        """Yield each match of a regular expression in the code."""
        for found in re.finditer(pattern, self.code):
            line = self.words[bisect_right(self._starts, found.start()) - 1][1]
            yield self.place(line)

    def place(self, line: int) -> Place:
        """Return the line as a place, with its text."""
        return Place(line, " ".join(self.text.split("\n")[line - 1].split())[:200])

    def expressions(self, expression: str) -> Iterator[Place]:
        """Yield each live Python expression that means the same as this one."""
        try:
            tree = ast.parse(self.text.removeprefix("\ufeff"))
        except (SyntaxError, ValueError, RecursionError):
            yield self.place(1)
            return
        meant, word = ast.dump(read_expression(expression)), max(re.findall(r"\w+", expression), key=len)
        for node in _live(tree, _lines_of(re.compile(re.escape(word).encode()), self.content)):
            if isinstance(node, ast.expr) and ast.dump(node) == meant:
                yield self.place(node.lineno)

    def encodes(self) -> Iterator[Place]:
        """Yield each string, or text outside the language, that holds a conversion to E2M1; for C++ see
        ``unguarded``."""
        if self.language == "python":
            try:
                strings = list(_python_strings(ast.parse(self.text), _lines_of(_PIECES, self.content)))
            except (SyntaxError, ValueError, RecursionError):
                strings = [(1, self.text)]
        elif self.language == "cmake":
            try:
                commands = [parse(self.text).commands[at] for at in parse(self.text).live]
                strings = [(command.line, argument.text) for command in commands for argument in command.arguments]
            except LexError:
                strings = [(1, self.text)]
        else:
            strings = [(1, "\n".join(line.partition("#")[0] for line in self.text.split("\n")))]
        for line, string in strings:
            for found in _CONVERSION_IN_STRING.finditer(string):
                opcode = "".join(found[0].split())
                opcode = opcode if "e2m1" in opcode else opcode.replace("Xx", "e2m1x")
                if is_encode(opcode):
                    yield Place(line + string.count("\n", 0, found.start()), opcode)
                    break


_CONVERSION_IN_STRING = re.compile(r"\bcvt(?:\s*\.\s*[\w:]+)*\s*\.\s*(?:e2m1|X)x[0-9](?:\s*\.\s*[\w:]+)*")
"""Conversion in a string. A variable part is an ``X``: in a file that names the format, it may be the format."""


def left(edit: Edit, text: Text, options: Mapping[str, str]) -> Iterator[Place]:
    """Return the code that the edit must leave nowhere, from a text to which all edits were applied."""
    if isinstance(edit, WrapAsm):
        sign = needs_suffix(text.text, edit.unless) if any(one in text.text for one in edit.unless) else ""
        if sign:
            opcode = next((found for found in _OPCODE.finditer(text.text) if is_encode(found[0])), None)
            if opcode:
                line = text.text.count("\n", 0, opcode.start()) + 1
                yield Place(line, opcode[0], f"a file with `{sign}` compiles for targets with a suffix alone")
        else:
            yield from (Place(line, found) for line, found in _wrapped(text, options))
    elif isinstance(edit, AddElement):
        try:
            yield from (Place(line, found) for line, found in lacking(edit, text.text))
        except LexError as error:
            yield Place(error.line, error.message)
    elif isinstance(edit, ReplaceExpression):
        yield from text.expressions(edit.find)
    elif isinstance(edit, ReplaceTokens | ReplaceCommand):
        yield from text.matches(re.escape(_spaced(edit)))


def pasted(text: Text, *, names: bool) -> Iterator[Place]:
    """Yield each opcode that a macro completes, so that it may become a conversion to E2M1.

    A literal ends within it, or it is outside a literal in a ``#define``. ``names``: the format's name is written alone
    somewhere, for a macro to take. Without that only an opcode that has begun to name the format counts.
    """
    try:
        source = lex(text.text)
    except LexError:
        return
    tokens = source.tokens
    for at, token in enumerate(tokens):
        joined = at + 1 < len(tokens) and tokens[at + 1].kind is Kind.STRING
        if token.kind is Kind.STRING and not joined:
            opcode = re.search(r"cvt[\w.:]*$", literal(token))
        elif token.text == "cvt" and token.directive >= 0:
            opcode = re.search(r"cvt[\w.:]*", text.text[token.start : token.end + 80])
        else:
            continue
        if not opcode or not source.is_live(token.start) or not ENCODE.startswith(opcode[0].rstrip(".")):
            continue
        if names or opcode[0].startswith(ENCODE.partition("2m1")[0]):
            yield Place(token.line, f"{opcode[0]}…")


def _wrapped(text: Text, options: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    if text.language == "c++":
        yield from unguarded(text.text, options)
    else:
        yield from ((place.line, place.found) for place in text.encodes())


def _spaced(edit: ReplaceTokens | ReplaceCommand) -> str:
    """Return the text that the edit searches for, as ``Text.code`` writes it."""
    code = Text("", _LANGUAGE[type(edit)], edit.find.encode()).code
    return f" {code} " if isinstance(edit, ReplaceCommand) else code


def concerns(edit: Edit, spoken: str) -> Callable[[bytes], object] | None:
    """Return a quick look that passes each file of a language in which ``left`` may find something; None: no file."""
    if isinstance(edit, WrapAsm):
        return may_convert if spoken == "c++" else _in_strings
    within: str = getattr(edit, "within", "")
    if spoken != _LANGUAGE.get(type(edit)) or within:
        return None
    if isinstance(edit, AddElement):
        return re.compile(re.escape(edit.beside).encode()).search
    words = [word for word in re.findall(r"\w+|[^\w\s]", getattr(edit, "find", "")) if word not in "(),\\"]
    return re.compile(_GAP.join(re.escape(word).encode() for word in words), re.DOTALL).search


def may_be_about(edit: Edit, content: bytes) -> bool:
    """Pass every file that an edit is about, and few others: most files need no reading as tokens."""
    if not isinstance(edit, WrapAsm) or may_convert(content) or any(n.encode() in content for n in edit.callers):
        return True
    signs = (max(re.findall(r"\w+", sign.tokens), key=len) for sign in edit.retired)
    return _CONVERSION.search(content) is not None and any(sign.encode() in content for sign in signs)


def may_convert(content: bytes) -> bool:
    """Pass each C++ file with an instruction of E2M1, unless all that it has convert from E2M1."""
    return any(_may_encode(content, found.start() - 1) for found in _CONVERSION.finditer(content))


def _may_encode(content: bytes, at: int) -> bool:
    """Tell whether a mention of the format may be more than a part of a name, or what is converted from."""
    return not _NO_ENCODE.search(content, max(0, at - 64), at + 7)


def mentioned(absence: Absence, content: bytes) -> bool:
    """Pass each file with code that must be absent."""
    return all(look(content) for look in _mentions(absence.mention))


@lru_cache
def _mentions(parts: tuple[str, ...]) -> tuple[Callable[[bytes], object], ...]:
    return tuple(within(part) if part.isalnum() else re.compile(part.encode()).search for part in parts)


def within(word: str) -> Callable[[bytes], bool]:
    """Return what passes each file with a word in it."""
    letters = word.encode()
    return lambda content: letters in content


def may_be_pasted(content: bytes) -> object:
    """Pass a C++ file that may hold an opcode which a macro completes."""
    return b"cvt" in content and _INCOMPLETE.search(content)


def defines_the_format(content: bytes) -> bool:
    """Pass a file in which a macro is the format's name, or holds it."""
    return b"e2m1" in content and _DEFINED.search(content) is not None


def begins_the_format(content: bytes) -> object:
    """Pass a file in which a literal ends within the format's name."""
    return _BEGUN.search(content)


def names_the_format(content: bytes) -> object:
    """Pass a file in which the format's name is written alone, as a macro takes it."""
    return _ALONE.search(content)


_OPCODE = re.compile(r"cvt[\w.:]*e2m1x[0-9][\w.:]*")
_BEGUN = re.compile(rb'cvt\.rn\.satfinite\.e[2m1]*"')
_INCOMPLETE = re.compile(rb'cvt[\w.:]*"|cvt[\w.:]*#')
_DEFINED = re.compile(rb"#[ \t]*define[^\n]*\be2m1\b")
_ALONE = re.compile(rb"\be2m1\b(?!\s*::)")


def _in_strings(content: bytes) -> bool:
    """Pass a file of another language that may hold a conversion: in one string, in several, or with a variable."""
    if b"cvt" not in content:
        return False
    if any(_may_encode(content, found.start()) for found in _IN_STRINGS.finditer(content)):
        return True
    return b"e2m1" in content and _WITH_VARIABLE.search(content) is not None


_GAP = rb"(?:[\s(),\\]|#[^\n]*+|//[^\n]*+|/\*.*?\*/)*+"
_IN_STRINGS = re.compile(rb"e2[\"'\s\\+()fr]*+m1[\"'\s\\+()fr]*+x")
_PIECES = re.compile(rb"c[\"'\s\\+()fr]*+v[\"'\s\\+()fr]*+t|" + _IN_STRINGS.pattern)
"""The beginning of a conversion in a Python string, and its format."""
_WITH_VARIABLE = re.compile(rb"cvt[^\n]*\}x[0-9]")
_CONVERSION = re.compile(CUT.join("2m1x").encode(), re.DOTALL)
"""A quick look for an instruction of E2M1: a string literal may be cut anywhere, even within the name. The ``e`` is
left out: to search for the rarer ``2`` takes half the time."""
_NO_ENCODE = re.compile(rb"_e2m1x[0-9].?\Z|\bcvt(?:\.(?!e2m1)\w+)*+\.e2m1x[0-9][ \t]\Z", re.DOTALL)
"""A name in which the format occurs, or an instruction that has it as its source, in one part."""


_LANGUAGE: Mapping[type, str] = {
    ReplaceTokens: "c++",
    ReplaceExpression: "python",
    ReplaceCommand: "cmake",
    AddElement: "cmake",
}


# --- the words of each language --------------------------------------------------------------------------------------


def _cxx_words(text: str) -> Iterator[tuple[str, int]]:
    source = lex(text)
    for token in source.tokens:
        if not source.dead or source.is_live(token.start):
            yield ('""' if token.kind is Kind.STRING else token.text), token.line


def _python_words(text: str) -> Iterator[tuple[str, int]]:
    dead = list(_dead_lines(ast.parse(text.removeprefix("\ufeff")))) if _MAY_BE_DEAD.search(text) else ()
    line = 0
    starts = [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text)), len(text) + 1]
    for found in _PYTHON_TOKEN.finditer(text):
        while found.start() >= starts[line]:
            line += 1
        word = found[1]
        if word in ("'", '"'):
            raise SyntaxError("a string that never ends")
        if word and not any(first <= line <= last for first, last in dead):
            yield '""' if word[-1] in "'\"" else word, line


def _cmake_words(text: str) -> Iterator[tuple[str, int]]:
    script = parse(text)
    for command in (script.commands[at] for at in script.live):
        yield from ((word, command.line) for word in ("", command.name, "("))
        yield from ((repr(argument.meaning), command.line) for argument in command.arguments)
        yield from ((word, command.line) for word in (")", ""))


def _hash_words(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((word, number) for word in re.findall(r"\w+|[^\w\s]", line.partition("#")[0]))


def _raw_words(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((word, number) for word in re.findall(r"\w+|[^\w\s]", line))


_WORDS: Mapping[str, Callable[[str], Iterator[tuple[str, int]]]] = {
    "c++": _cxx_words,
    "python": _python_words,
    "cmake": _cmake_words,
    "hashes": _hash_words,
}


_PYTHON_TOKEN = re.compile(
    r"""
      (?:\#[^\n\r]*|\s+|\\\r?\n|\ufeff)+
    | ( (?i:[rbuft]|rb|br|fr|rf|tr|rt)?
        (?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | 0[xXoObB]\w+
      | (?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?
      | \w+
      | .
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Blanks and comments, or a string, a number, a name or a mark; a quote by itself begins a string that never ends."""
_MAY_BE_DEAD = re.compile(
    r"""
    \b(?:if|elif|while)\b (?:[\s(\\]|\#[^\n]*\n)*+
    (?:False | None | [0.][0-9._xXbBoOjJeE]* | (?:\w{0,2}(?:""|'')[\s\\]*)+)
    (?:[\s)\\]|\#[^\n]*\n)*+ :
    """,
    re.VERBOSE,
)
"""A condition that is a constant which never holds, as ``falsy`` knows it."""

LANGUAGES = tuple(_WORDS)


def _is_dead(node: ast.AST) -> TypeGuard[ast.If | ast.While]:
    """Tell whether the body of a statement never runs: ``if False:``."""
    return isinstance(node, ast.If | ast.While) and falsy(node.test) and node.body[0].lineno > node.lineno


def _dead_lines(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last line of each body of ``if False:``."""
    for node in filter(_is_dead, ast.walk(tree)):
        yield node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno


def _lines_of(pattern: re.Pattern[bytes], content: bytes) -> list[int]:
    """Return the lines on which matches begin, in order."""
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    starts = [found.start() for found in pattern.finditer(content)]
    return list(accumulate((content.count(b"\n", *part) for part in pairwise([0, *starts])), initial=1))[1:]


def _live(tree: ast.AST, lines: Sequence[int]) -> Iterator[ast.AST]:
    """Yield each node of live code that one of these lines belongs to, in the order of the text."""
    todo = [(tree, True)]
    while todo:
        node, known = todo.pop()
        if known and (first := getattr(node, "lineno", 0)):
            first = min(first, *(one.lineno for one in getattr(node, "decorator_list", ())), first)
            if bisect_left(lines, first) == bisect_right(lines, node.end_lineno):  # type: ignore[attr-defined]
                continue
        yield node
        known = known and not isinstance(node, ast.JoinedStr)  # Python 3.11 does not know the lines in an f-string
        below = [*node.orelse, node.test] if _is_dead(node) else ast.iter_child_nodes(node)
        todo += reversed([(child, known) for child in below])


def _python_strings(tree: ast.AST, lines: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Line and text of each string on these lines that is no documentation; what a variable puts into it is ``X``."""
    inside: set[int] = set()
    for node in _live(tree, lines):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        if id(node) in inside or not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            continue
        text = _string(node)
        if text is not None:
            inside |= {id(part) for part in ast.walk(node)}
            yield node.lineno, text


def _string(node: ast.expr) -> str | None:
    """Return the text of a string, of strings that are joined, or of what a variable is put into; None: it is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_string(part) or "X" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _string(node.value) or "X"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left_, right = _string(node.left), _string(node.right)
        return None if left_ is None and right is None else (left_ or "X") + (right or "X")
    return None
