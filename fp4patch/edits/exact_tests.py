"""Search for tests for exactly SM120 that no edit is for: in Python by the syntax tree, in C++ and CMake by tokens.

A test is a literal or a name that means SM120 alone in a comparison, a container, a case or a condition. Some select
tuning that was measured on SM120, others shut SM121 out, and no program can tell them apart: they are named. One that
SM121 passes by the same condition is not among them.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from packaging.version import Version

from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.core.release import covers
from fp4patch.core.table import Globs, Identifier, Specifier
from fp4patch.core.tree_path import not_built
from fp4patch.cxx.literals import integer
from fp4patch.cxx.tokens import Source, lex
from fp4patch.edits.cmake import parse
from fp4patch.edits.cmake_expression import read_condition
from fp4patch.edits.cxx_expression import Expressions
from fp4patch.edits.gpu_condition import (
    ARCHS,
    Conditions,
    Gpu,
    Target,
    Unknown,
    conditions_in,
    is_condition,
    is_subject,
    leaves,
    named,
)
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import PatchedTree, Place, Search
from fp4patch.edits.promise import Promise
from fp4patch.edits.python_source import Module
from fp4patch.edits.python_source import read as read_module

BECAUSE = "a test for exactly SM120 that no edit is for: SM121 may be left out there"
LANGUAGES = ("c++", "python", "cmake")
_OF_TARGETS = {"__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"}
"""What nvcc defines for any target; TransformerEngine defines them for older ones."""
_NUMBER = re.compile(rb"12(?<!\w12)(?:00?(?:[af]|[uUlLzZ]{1,3})?\b|10?[uUlLzZ]{0,3}\b|\s*,\s*0\b|\.0[af]?\b|\b)")
"""Every such test has one of these numbers. A pattern that begins with text is searched ten times as fast."""
_HITS = _NUMBER.finditer
_TESTED = re.compile(
    rb"""
      [=!<>] [=\s(]* \b12(?:00?|10?)[uUlLzZ]{0,3}\b       # arch == (120
    | \b12(?:00?|10?)[uUlLzZ]{0,3}\b [\s)]* [=!>]        # 1200) <= arch
    | [=!<>]=? \s* \(* 12 \s* \* | \b12 \s* \* \s* \d+ \s* \)* \s* [=!<>]
    | \b121 \s* - | \bcase [\s(]* 12
    | \{ [\s\d,]* \b120\b                      # {90, 120}
    | [({] \s* 12 \s* , \s* 0\b               # (12, 0)
    | define \s+ \w+ \s+ 1200?\b
    | "12\.0
    | major [^;{}]{0,150} \b12\b | \b12\b [^;{}]{0,40} major
    | [=!]= \s* \(* 12\b | \b12 \s* \)* \s* [=!]=
    | [-^] \s* \(* 1200?\b                    # !(arch - 120)
    | (?:[aA]rch|ARCH|[sS][mM]|cc|CC|[cC]ap|CAP|ell|120|[gG]pu|GPU|arget|ARGET|ONLY)\w* \s* = \s* 1200?\b
    | "12
    """,
    re.VERBOSE,
).search
"""Such a number as a test in C++ has it."""
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WRITTEN = re.compile(
    rb"""(?ix) 12 (?<!family\(12)
    (?:(?<=[^\w.]12)|(?<=ute_12)|(?<=sm12)|(?<=sm_12))
    (?:(?:00?|10?|\.0)[af]?(?:\+ptx|-real|-virtual)?(?![\w.]|[ \t]+(?!(?:and|or|else|if|in|not|is)\b)\w)
    | \s*,\s*(?:\w+\s*=\s*)?0\b | \b(?!\.|,(?!\s*(?:\w+\s*[\])]|[\w.'"]*minor))))"""
).finditer
"""Such a number as a test in Python has it: not in prose, in a call for a family, or at the end of another name."""
_HIT_NAME = re.compile(
    rb"120(?:(?<=[sS][mM]120)|(?<=[sS][mM]_120)|(?<=compute_120))(?:_ALL|[AFaf]?_ENABLED|(?!\w{2}))"
).search
_NEAR = re.compile(rb"(?i)capab|\b(?:\w*_)?caps?\b|arch|major|version|\bsm|\bcc\b|gpu").search


_SPELLED = ("sm", "sm_", "SM", "SM_", "compute_")
_SUBJECTS = ("arch", "ARCH__", "ARCH", "sm", "capability", "cap", "cc")


@dataclass(frozen=True, kw_only=True)
class ExactTests(Promise):
    """Files of which tests for exactly SM120 that no edit is for are remainders, each named with its place."""

    files: Globs
    gates: dict[Identifier, Specifier] = field(default_factory=dict)
    """C++ templates that compile to nothing but for SM120, with the releases in which none may be left in use."""

    def searches(self, language: str, version: Version | None, /) -> Iterator[Search]:
        """Yield the search for such tests in the languages that its files may be in."""
        are_python = all(name.endswith(".py") for name in self.files)
        if language in LANGUAGES and (language == "python" or not are_python):
            gates = frozenset(name for name, releases in self.gates.items() if covers(releases, version))
            yield Search(may_have(language, frozenset(self.gates)), partial(self._tests, language, gates))

    def _tests(self, language: str, gates: Set[str], _tree: PatchedTree, file: str, text: str, /) -> Iterable[Place]:
        searched = glob(self.files).fullmatch(file) and not not_built(file)
        return places(language, gates, text) if searched else ()


@cache
def may_have(language: str, gates: frozenset[str]) -> Look:
    """Return the quick look for files of a language with such a test. ``gates``: templates that are one."""
    if language == "cmake":
        return Look(words_of(["12"]))
    closer = _in_code if language == "c++" else _in_module
    words = [["12"], *([gate] for gate in gates)]
    return Look(words_of(*words), partial(closer, tuple(gate.encode() for gate in gates)), _REWRITTEN)


def _rewritten(pattern: bytes, *words: str) -> Look:
    return Look(words_of(*([word] for word in words)), re.compile(pattern).search)


_REWRITTEN = (
    _rewritten(rb"0[xX]7['_]?[89][uUlL]{0,3}\b", *(f"0{x}7{eight}" for x in "xX" for eight in "89'_")),
    _rewritten(rb"0[xX]4['_]?[bB]['_]?[0aA][uUlL]{0,3}\b", *(f"0{x}4{b}" for x in "xX" for b in ("b", "B", "'", "_"))),
    _rewritten(rb"0[bB][01'_]{7,}[uUlL]{0,3}\b", "0b", "0B"),
    _rewritten(
        rb"0[oO]?['_]?(?:1['_]?7[01]|2['_]?2(?:60|72))[uUlL]{0,3}\b",
        "017",
        "022",
        "0o1",
        "0O1",
        "0o2",
        "0O2",
        "0'1",
        "0'2",
    ),
    _rewritten(rb"\b1['_]?2['_]?[01]", "1'2", "1_2", "12'0", "12_0"),
    Look(
        words_of(
            *((twelve, minor) for twelve in ("0xc", "0xC", "014", "0b1100", "0o14") for minor in ("inor", "second"))
        )
    ),
    _rewritten(rb"\\(?:x|u00|u\{|x\{|06|N)", "\\x3", "\\06", "\\u003", "\\x{3", "\\u{3", "\\N{DIGIT"),
    _rewritten(
        rb"(?<![a-zA-Z])(?:sm|SM|compute)_?1?2?[\"'] ?[-+%,.)\s]",
        *(f"{n}{o}{q}" for n in _SPELLED for o in ("", "1") for q in "\"'"),
    ),
    _rewritten(rb"(?<![a-zA-Z])(?:sm|SM|compute)_?[{%]", *(f"{name}{mark}" for name in _SPELLED for mark in "{%")),
    _rewritten(rb"[\"']1[\"']\s*\+?\s*[\"']2", '"1"', "'1'"),
    _rewritten(
        rb"[=!]=\s*\(*\d+[uUlL]{0,3}\s*(?:[-+*|^]|<<)\s*\d",
        *(f"{n}{o}" for n in _SUBJECTS for o in ("==", " ==", "!=", " !=")),
    ),
)
"""What passes files in which the number, or a text with it, is written in another way."""


def _in_code(gates: Sequence[bytes], content: bytes) -> bool:
    if any(gate in content for gate in gates) or _HIT_NAME(content):
        return True
    return any(_is_tested(content[max(0, hit.start() - 200) : hit.end() + 40]) for hit in _HITS(content))


def _is_tested(around: bytes) -> bool:
    """Tell whether text around a number may be a test of it. Comments do not count; one that is cut may hide a test."""
    if b"/*" in around or b"//" in around or b"*/" in around:
        around = _COMMENT.sub(b" ", around)
        if b"/*" in around or b"*/" in around:
            return True
    return _TESTED(around) is not None


def _in_module(_gates: Sequence[bytes], content: bytes) -> bool:
    several = list(_WRITTEN(content))
    near = (content[max(0, hit.start() - 200) : hit.end() + 200] for hit in several if hit[0] == b"12")
    if not any(hit[0] != b"12" for hit in several) and not any(map(_PARTS, near)):
        return False
    if _HIT_NAME(content):
        return True
    return any(
        _NEAR(content, max(0, hit.start() - 80), hit.end() + 80)
        or _GIVEN(content, content.rfind(b"\n", 0, hit.start()) + 1, hit.end())
        for hit in _HITS(content)
    )


_PARTS = re.compile(
    rb"minor|divmod|\b12 ?[*]|== ?0\b|\b0 ==|\[[01]\]\)?\s*(?:[=!<>]|not\b|in\b)|(?:%|//)\s*10\b"
).search
"""What is beside 12 where only that is the major number."""
_GIVEN = re.compile(rb"\s*[A-Z_]{3}[A-Z0-9_]*\s*(?::[^=\n]*)?=[^=\n]*\b12").match
"""A constant that is the number."""


def places(language: str, gates: Set[str], text: str) -> list[Place]:
    """Return each such test, or the first line of a text that cannot be read. A gate has no reason to remain."""
    try:
        found = _READERS[language](text.removeprefix("\ufeff"), gates)
        written = text.split("\n")
        return [
            Place(line, " ".join(written[line - 1].split())[:200], "" if gate else BECAUSE)
            for line, gate in sorted(set(found))
        ]
    except (LexError, SyntaxError, ValueError, RecursionError) as error:
        return [Place(1, f"{type(error).__name__}: {error}", "it cannot be read, and may test for exactly SM120")]


# --- CMake ------------------------------------------------------------------------------------------------------------


def _in_cmake(text: str, _gates: Set[str]) -> Iterator[tuple[int, bool]]:
    script = parse(text)
    conditions = Conditions({})
    for command in (script.commands[at] for at in script.live):
        is_condition = command.name in ("if", "elseif", "while")
        if is_condition and any(conditions.places(read_condition(command.arguments).tree)):
            yield command.line, False


# --- C++ --------------------------------------------------------------------------------------------------------------

_CONDITIONS = frozenset(("if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"))
_ASKED = frozenset(("if", "constexpr", "while", "assert", "static_assert", "requires", "enable_if", "enable_if_t"))
# Example: 0x78u
_HIT_NUMBER = re.compile(r"(?i)0x[0-9a-f']+[ul]*|0b[01']+[ul]*|0[0-7']+[ul]*|1'?2[0-9']*[ul]*")
_VALUES = frozenset((12, 120, 121, 1200, 1210))


def _in_cxx(text: str, gates: Set[str]) -> Iterator[tuple[int, bool]]:
    source = lex(text)
    words = source.words
    values = _constants(words)
    about = {name for name, value in values.items() if value in _VALUES} - _OF_TARGETS
    conditions = Conditions({name: ast.Constant(value) for name, value in values.items() if name not in _OF_TARGETS})
    for at in [at for at, word in enumerate(words) if word in gates]:
        if words[at + 1 : at + 2] == ("<",) and source.is_live(source.starts[at]):
            yield source.line(source.starts[at]), True
    hits = {at for at in range(len(words)) if _is_hit(words, at, about)}
    if not hits:
        return
    for directive in source.directives:
        span = range(bisect_left(source.starts, directive.start), bisect_left(source.starts, directive.stop))
        if not hits.isdisjoint(span) and source.is_live(directive.start):
            yield from ((line, False) for line in _of_directive(source, directive.name, span, conditions))
    cases: dict[int, list[tuple[ast.expr, ast.expr, int]]] = {}
    specializations: list[tuple[str, ast.expr, int]] = []
    for statement in _statements(source, hits):
        if not source.is_live(source.starts[statement.tokens[0]]):
            continue
        expressions = Expressions(source, statement.tokens).all()
        yield from ((line, False) for line in _of_statement(expressions, conditions))
        yield from ((line, False) for line in _pairs(expressions, conditions))
        if tests := [*_ifs(expressions)]:
            around = [test for head in statement.heads for test in _ifs(Expressions(source, head).all())]
            yield from ((line, False) for line in _nested(around, tests, conditions))
        cases.setdefault(statement.block, []).extend(_cases(source, statement))
        specializations += _specializations(source, statement.tokens)
    for of_block in cases.values():
        tests = [ast.Compare(subject, [ast.Eq()], [value]) for subject, value, _ in of_block]
        if any(conditions.value(value) in (121, 1210, Target(121)) for _, value, _ in of_block):
            continue
        yield from ((line, False) for test, (*_, line) in zip(tests, of_block, strict=True) if conditions.parts(test))
    yield from ((line, False) for line in _specialized(specializations, conditions))


def _is_hit(words: Sequence[str], at: int, names: Set[str]) -> bool:
    """Tell whether a token may be of a test: a number by its value, a string or a name by its text."""
    word = words[at]
    if word in names:
        return True
    first = word[0]
    if first.isdecimal():
        if _HIT_NUMBER.fullmatch(word) and integer(word) in _VALUES:
            return True
        return at > 1 and words[at - 1] in _SUMS and (words[at - 2][0].isdecimal() or words[at - 2] == "<")
    if word[-1] == '"':
        return "12" in word or "\\" in word or (at > 0 and words[at - 1][-1] == '"')
    return ("12" in word and named(word) is not None) or _MINOR_NAME.fullmatch(word) is not None


_SUMS = frozenset("+-*|<")
_MINOR_NAME = re.compile(r"\w*[mM]inor\w*")


def _constants(words: Sequence[str]) -> dict[str, int]:
    """Return the names that a text gives a number, once."""
    found: dict[str, int] = {}
    for at, word in enumerate(words):
        ends = at > 1 and words[at + 1 : at + 2] in ((";",), (",",), ("}",), ("#",), ())
        if not word[0].isdecimal() or not (ends or words[max(0, at - 2) : at - 1] == ("define",)):
            continue
        name = words[at - 2] if words[at - 1] == "=" else words[at - 1] if words[at - 2] == "define" else ""
        value = integer(word)
        if name.isidentifier() and value is not None:
            found[name] = value if name not in found or found[name] == value else -1
    return {name: value for name, value in found.items() if value >= 0}


def _of_directive(source: Source, name: str, span: range, conditions: Conditions) -> Iterator[int]:
    behind = span[2:]
    line = source.line(source.starts[span[0]])
    if name in _CONDITIONS:
        found = Expressions(source, behind).all()
        condition = found[0] if len(found) == 1 else ast.BoolOp(ast.And(), found) if found else ast.Constant(0)
        if name.endswith("ndef"):
            condition = ast.UnaryOp(ast.Not(), condition)
        yield from [line] * any(conditions.places(condition))
    elif name == "define" and len(behind) > 1:
        yield from _of_statement(Expressions(source, behind[1:]).all(), conditions)


def _of_statement(expressions: Sequence[ast.expr], conditions: Conditions) -> Iterator[int]:
    for expression in expressions:
        for test in conditions_in(expression, _ASKED):
            yield from (_line(place) for place in conditions.places(test))
        for node in ast.walk(expression):
            if isinstance(node, ast.Set):
                keys = [
                    element.elts[0] for element in node.elts if isinstance(element, ast.Set) and len(element.elts) == 2
                ]
                listed = ast.Set(keys) if keys and len(keys) == len(node.elts) else node  # {{90, f}, {120, g}}
                if conditions.lists_it_alone(listed) and not _is_compared(expression, node):
                    yield node.lineno
            elif (
                isinstance(node, ast.Name | ast.Attribute)
                and named(_last(node)) == 120
                and _last(node).startswith("NV_IS")
            ):
                names = {named(_last(other)) for other in ast.walk(expression)}
                yield from [node.lineno] * (121 not in names)


def _ifs(expressions: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the condition of each ``if`` of a statement, or of the head of a block."""
    for expression in expressions:
        if isinstance(expression, ast.Call) and _last(expression.func) in ("if", "constexpr") and expression.args:
            yield expression.args[-1]


def _nested(around: list[ast.expr], tests: Iterable[ast.expr], conditions: Conditions) -> Iterator[int]:
    """Yield the lines of conditions that leave SM121 out together with those around them.

    As ``if (!minor)`` in the block of ``if (major == 12)``.
    """
    for test in tests:
        if conditions.parts_below(test, around) and not conditions.parts(test):
            yield _line(test)
        around = [*around, test]


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_compared(expression: ast.expr, node: ast.AST) -> bool:
    """Tell whether a display is compared with something, which is a test of its own."""
    return any(
        isinstance(test, ast.Compare) and any(part is node for part in ast.walk(test)) for test in ast.walk(expression)
    )


def _pairs(expressions: Sequence[ast.expr], conditions: Conditions) -> Iterator[int]:
    """Yield the lines of pairs that are the capability 12.0, in a statement about one."""
    compared = {id(part) for e in expressions for test in conditions_in(e, _ASKED) for part in ast.walk(test)}
    for expression in expressions:
        for node in ast.walk(expression):
            if id(node) not in compared and isinstance(node, ast.Call | ast.Set | ast.Tuple):
                value = conditions.value(node)
                is_pair = isinstance(value, tuple) and not isinstance(value, Unknown | Gpu | Target)
                if is_pair and value == (12, 0) and any(map(is_subject, _names(expressions))):
                    yield node.lineno
                    break


def _names(expressions: Sequence[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        yield from filter(None, map(_last, ast.walk(expression)))


class _Statement(NamedTuple):
    """Tokens of a statement, or of the head of a block. ``block``: the number of the block it is in. ``heads``: the
    tokens of the heads of the blocks around it, the outermost first."""

    tokens: Sequence[int]
    block: int
    heads: Sequence[Sequence[int]]


_OF_BLOCKS = frozenset(("struct", "class", "namespace", "union", "enum", "extern"))
_BEFORE_BLOCKS = frozenset(("else", "do", "try", "const", "override", "noexcept", "final", "mutable"))


def _statements(source: Source, hits: Set[int]) -> Iterator[_Statement]:  # noqa: PLR0912 - a branch for each mark
    """Yield the statements with a hit; braces of a value are part of one."""
    words, directives = source.words, source.directive_of
    blocks: list[tuple[int, Sequence[int], list[int], list[str]]] = [(0, (), [], [])]
    number = 0

    def is_wanted(tokens: Sequence[int]) -> bool:
        if not hits.isdisjoint(tokens):
            return True
        return bool(tokens) and words[tokens[0]] == "template" and any(words[at][0].isdecimal() for at in tokens)

    def heads() -> Sequence[Sequence[int]]:
        return [head for _, head, *_ in blocks if head]

    for at, word in enumerate(words):
        if directives[at] >= 0:
            continue
        block, _, tokens, opened = blocks[-1]
        if word == "{":
            previous = words[tokens[-1]] if tokens else ""
            is_value = (
                opened[-1:] == ["{"]
                or previous in ("=", ",", "(", "return", "<", "?", ":", "]")
                or (
                    (previous[:1].isalpha() or previous[:1] in ("_", ">"))
                    and previous not in _BEFORE_BLOCKS
                    and _OF_BLOCKS.isdisjoint(words[token] for token in tokens)
                )
            )
            if is_value and tokens:
                opened.append("{")
                tokens.append(at)
                continue
            number += 1
            head = tuple(tokens)
            if not opened:
                if is_wanted(tokens):
                    yield _Statement(head, block, heads())
                tokens.clear()
            blocks.append((number, head, [], []))
            continue
        if word == "}" and not opened:
            if is_wanted(tokens):
                yield _Statement(tuple(tokens), block, heads())
            tokens.clear()
            if len(blocks) > 1:
                blocks.pop()
            continue
        if word == ";" and "(" not in opened:
            opened.clear()
            if is_wanted(tokens):
                yield _Statement(tuple(tokens), block, heads())
            tokens.clear()
            continue
        if word in ("(", "["):
            opened.append("(")
        elif word in (")", "]", "}") and opened:
            opened.pop()
        tokens.append(at)
    for block, _, tokens, _ in blocks:
        if is_wanted(tokens):
            yield _Statement(tuple(tokens), block, ())


def _cases(source: Source, statement: _Statement) -> Iterator[tuple[ast.expr, ast.expr, int]]:
    """Yield what a ``switch`` is about, the value of a ``case`` of it, and the line."""
    words = source.words
    for number, at in enumerate(statement.tokens):
        if words[at] != "case":
            continue
        value = Expressions(source, statement.tokens[number + 1 :]).ternary()
        head = statement.heads[-1] if statement.heads else ()
        switched = [number for number, at in enumerate(head) if words[at] == "switch"]
        subject = Expressions(source, head[switched[-1] + 1 :]).ternary() if switched else None
        if value is not None:
            yield subject or ast.Name("unknown"), value, source.line(source.starts[at])


def _specializations(source: Source, tokens: Sequence[int]) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield name, argument and line of each argument of a specialization of a template."""
    words = source.words
    if [words[at] for at in tokens[:2]] != ["template", "<"]:
        return
    depth = number = 0
    for number, at in enumerate(tokens[1:], 1):  # noqa: B007 - where it ends
        depth += (words[at] == "<") - (words[at] == ">")
        if not depth:
            break
    for expression in Expressions(source, tokens[number + 1 :], declares=True).all():
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and node.args and not isinstance(node.func, ast.Call):
                yield from ((_last(node.func), argument, node.lineno) for argument in node.args)
                return


def _specialized(found: Sequence[tuple[str, ast.expr, int]], conditions: Conditions) -> Iterator[int]:
    """Yield the lines of specializations for SM120 of templates that have none for SM121."""
    numbers: dict[str, list[tuple[int, int, bool]]] = {}
    for name, argument, line in found:
        value = conditions.value(argument)
        if isinstance(value, Target) or type(value) is int:
            number = value.number if isinstance(value, Target) else value // 10 if value >= 700 else value
            numbers.setdefault(name, []).append((number, line, isinstance(value, Target)))
    for name, several in numbers.items():
        of_gpus = {number for number, *_ in several}
        about = is_subject(name) or (len(of_gpus) > 1 and of_gpus <= ARCHS)
        if 121 not in of_gpus:
            yield from (line for number, line, by_name in several if number == 120 and (by_name or about))


# --- Python -----------------------------------------------------------------------------------------------------------


# Example: _is_sm120
_CALLED = re.compile(r"(?i)_*is_(?:exactly_)?sm_?120[af]?")
_ASKING = frozenset(("is_device_capability", "startswith", "endswith", "match", "fullmatch", "search"))


def _in_python(text: str, _gates: Set[str]) -> Iterator[tuple[int, bool]]:
    module, lines = read_module(text), text.split("\n")
    names = _assigned(module)
    conditions = Conditions(names)
    about = {name for name, value in names.items() if isinstance(value, ast.Constant | ast.Tuple | ast.Subscript)}
    hits = frozenset(_lines(text, _HIT_LINE + (rf"|\b(?:{'|'.join(map(re.escape, about))})\b" if about else "")))
    reader = _Module(conditions, hits, of_families={at for at, line in enumerate(lines, 1) if "family" in line})
    reader.walk(module.tree, ())
    yield from ((line, False) for line in reader.found)


# As in `arch == 0x78`.
_HIT_LINE = r"12|1_2|0[xXbBoO][\d_]|ajor|inor|[sS][mM]_?1?[\"'%{]|[=!]= *\(*\d+ *[-+*|^<]"


def _lines(text: str, pattern: str) -> set[int]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return {bisect_right(starts, found.start()) for found in re.finditer(pattern, text)}


def _assigned(module: Module) -> dict[str, ast.expr]:
    """Return the values of the names that are set once; a name of a pair is the part of what it is set to."""
    stored = Counter[str]()
    values: dict[str, ast.expr] = {}
    for node in module.nodes(""):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] += 1
        elif isinstance(node, ast.arg):
            stored[node.arg] += 1
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if len(targets) != 1 or value is None or isinstance(value, ast.Compare | ast.BoolOp | ast.IfExp):
            continue
        if isinstance(targets[0], ast.Name):
            values[targets[0].id] = value
        elif isinstance(targets[0], ast.Tuple):
            for at, target in enumerate(targets[0].elts):
                if isinstance(target, ast.Name) and not isinstance(value, ast.Tuple):
                    values[target.id] = ast.Subscript(value, ast.Constant(at))
    return {name: value for name, value in values.items() if stored[name] == 1}


class _Module:
    """The tests in a module, in the lines that have something of one."""

    def __init__(self, conditions: Conditions, hits: Set[int], of_families: Set[int]) -> None:
        self.conditions = conditions
        self.of_families = of_families
        self.hits = sorted(hits)
        self.found: set[int] = set()

    def is_hit(self, node: ast.AST) -> bool:
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if first is None or last is None:
            return True
        decorators = getattr(node, "decorator_list", ())  # they stand before the line that is the function's
        at = bisect_left(self.hits, min([first, *(one.lineno for one in decorators)]))
        return at < len(self.hits) and self.hits[at] <= last

    def walk(self, node: ast.AST, path: tuple[ast.expr, ...]) -> None:
        """Look at a node, in the branches of these conditions."""
        if not self.is_hit(node):
            return
        if isinstance(node, ast.If | ast.While):
            self.test(node.test, path)
            self.body(node.body, (*path, node.test))
            self.body(node.orelse, (*path, ast.UnaryOp(ast.Not(), node.test)))
        elif isinstance(node, ast.IfExp):
            self.test(node.test, path)
            self.walk(node.body, (*path, node.test))
            self.walk(node.orelse, (*path, ast.UnaryOp(ast.Not(), node.test)))
        elif isinstance(node, ast.Assert):
            self.test(node.test, path)
        elif isinstance(node, ast.comprehension):
            self.walk(node.iter, path)
            for condition in node.ifs:
                self.test(condition, path)
        elif isinstance(node, ast.Match):
            self.match(node, path)
        elif isinstance(node, ast.expr) and is_condition(node):
            self.test(node, path)
        else:
            self.display(node)
            for _, value in ast.iter_fields(node):
                if isinstance(value, list):
                    self.body(value, path)
                elif isinstance(value, ast.AST):
                    self.walk(value, path)

    def body(self, nodes: Sequence[object], path: tuple[ast.expr, ...]) -> None:
        """Look at several nodes, the ones behind an ``if`` that returns in the other case of it."""
        for node in nodes:
            if isinstance(node, ast.AST):
                self.walk(node, path)
            if (
                isinstance(node, ast.If)
                and not node.orelse
                and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            ):
                path = (*path, ast.UnaryOp(ast.Not(), node.test))

    def display(self, node: ast.AST) -> None:
        """Look whether a node by itself is a list of architectures, or a question for one."""
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if _CALLED.fullmatch(name) or (name in _ASKING and self.conditions.parts(node)):
                self.found.add(node.lineno)
            passed = [(name, one) for one in node.args] + [(one.arg or "", one.value) for one in node.keywords]
            for about, value in passed:  # supported_compute_capability([120])
                if is_subject(about):
                    self.listed(value, one_is_enough=True)
        elif isinstance(node, ast.List | ast.Set | ast.Tuple | ast.Dict | ast.BinOp):
            self.listed(node)

    def listed(self, node: ast.expr, *, one_is_enough: bool = False) -> None:
        """Look whether a display has SM120 and not SM121, where it is not of families."""
        if node.lineno not in self.of_families and self.conditions.lists_it_alone(node, one_is_enough=one_is_enough):
            self.found.add(node.lineno)

    def test(self, test: ast.expr, path: tuple[ast.expr, ...]) -> None:
        """Look at a condition: by itself, in what is in it, and in the branch that it is in."""
        places = {_line(place) for place in self.conditions.places(test)}
        if not places and self.conditions.parts_below(test, path):
            places.add(test.lineno)
        self.found |= places
        for leaf in leaves(test):
            if not isinstance(leaf, ast.List | ast.Set | ast.Tuple | ast.Dict):
                self.walk_inside(leaf, path)

    def walk_inside(self, node: ast.expr, path: tuple[ast.expr, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            self.walk(child, path)

    def match(self, node: ast.Match, path: tuple[ast.expr, ...]) -> None:
        """Look at the cases: each is a comparison with what is matched."""
        whole = [(case, _pattern(node.subject, case.pattern)) for case in node.cases]
        guarded = [
            (case, test if case.guard is None else ast.BoolOp(ast.And(), [test, _bound(case, node.subject)]))
            for case, test in whole
        ]
        has_other = any(
            self.conditions.is_for(test, 121) and not self.conditions.is_for(test, 120) for _, test in guarded
        )
        for case, test in guarded:
            if not has_other and self.conditions.parts(test):
                self.found.add(case.pattern.lineno)
            self.body(case.body, path)


def _bound(case: ast.match_case, subject: ast.expr) -> ast.expr:
    """Return the guard of a case, with what is matched in the place of the names that are bound to it."""
    names = dict(_captured(subject, case.pattern))

    class _Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return names.get(node.id, node)

    return _Names().visit(deepcopy(case.guard)) if case.guard else ast.Constant(True)


def _captured(subject: ast.expr, pattern: ast.pattern) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a pattern binds, with what each is."""
    if isinstance(pattern, ast.MatchAs) and pattern.name:
        yield pattern.name, subject
    if isinstance(pattern, ast.MatchSequence):
        parts = subject.elts if isinstance(subject, ast.Tuple) else ()
        for at, part in enumerate(pattern.patterns):
            yield from _captured(parts[at] if at < len(parts) else ast.Subscript(subject, ast.Constant(at)), part)
    if isinstance(pattern, ast.MatchClass):
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            yield from _captured(ast.Attribute(subject, name), part)


def _pattern(subject: ast.expr, pattern: ast.pattern) -> ast.expr:
    """Return a pattern as the condition that a value meets it."""
    parts: list[ast.expr] = []
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(subject, [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchOr):
        return ast.BoolOp(ast.Or(), [_pattern(subject, part) for part in pattern.patterns])
    if isinstance(pattern, ast.MatchAs):
        return _pattern(subject, pattern.pattern) if pattern.pattern else ast.Constant(True)
    if isinstance(pattern, ast.MatchSequence):
        if isinstance(subject, ast.Tuple) and len(subject.elts) == len(pattern.patterns):
            parts = [_pattern(*pair) for pair in zip(subject.elts, pattern.patterns, strict=True)]
        elif all(isinstance(part, ast.MatchValue) for part in pattern.patterns):
            return ast.Compare(
                subject, [ast.Eq()], [ast.Tuple([p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)])]
            )
        else:
            parts = [
                _pattern(ast.Subscript(subject, ast.Constant(at)), part) for at, part in enumerate(pattern.patterns)
            ]
    if isinstance(pattern, ast.MatchClass):
        parts = [
            _pattern(ast.Attribute(subject, ("major", "minor")[at]), part)
            for at, part in enumerate(pattern.patterns[:2])
        ]
        parts += [
            _pattern(ast.Attribute(subject, name), part)
            for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)
        ]
    if isinstance(pattern, ast.MatchMapping):
        parts = [
            _pattern(ast.Subscript(subject, key), part)
            for key, part in zip(pattern.keys, pattern.patterns, strict=True)
        ]
    return ast.BoolOp(ast.And(), parts) if parts else ast.Constant(True)


_READERS: Mapping[str, Callable[[str, Set[str]], Iterator[tuple[int, bool]]]] = {
    "c++": _in_cxx,
    "python": _in_python,
    "cmake": _in_cmake,
}
