"""Search for tests for exactly SM120 that no edit is for: in Python by the syntax tree, in C++ and CMake by tokens.

A test is a literal or a name that means SM120 alone in a comparison, a container, a case or a condition. Some select
tuning that was measured on SM120, others shut SM121 out, and no program can tell them apart: they are named. One that
SM121 passes by the same condition is not among them.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise

from packaging.version import Version

from fp4patch.core.errors import SourceError
from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.core.release import covers
from fp4patch.core.store import Store, cache_dir, key, source_hash
from fp4patch.core.table import Globs, Identifier, Specifier
from fp4patch.core.tree_path import not_built
from fp4patch.cxx.tokens import Kind, Source, Token, lex
from fp4patch.edits.cmake import parse
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import PatchedTree, Place, Search
from fp4patch.edits.promise import Promise

BECAUSE = "a test for exactly SM120 that no edit is for: SM121 may be left out there"
LANGUAGES = ("c++", "python", "cmake")
_ARCHS = frozenset((70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121))
_SM120, _SM121 = ("120", "1200"), ("121", "1210")
_SUBJECT = re.compile(r"(?i)capab|(?<![a-z])caps?\b|arch|major|minor|\bsm|\bcc\b|version|device_prop|gpu")
"""What a comparison of a bare number is about, where it is about a GPU."""
_OF_TARGETS = {"__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"}
"""What nvcc defines for any target; TransformerEngine defines them for older ones."""
_NAME = re.compile(r"(?i)_*(?:(?:is|has|k|cc|arch|gpu|target)_?)*sm_?(12[01])[af]?|__CUDA_ARCH_FEAT_SM(12[01])_ALL")
"""Names of one of the two; a longer name is that of a kernel."""
_TEXT = re.compile(r"(?i)(?:(?:sm|compute)_?)(\d{2,3})[af]?|(\d{1,2})\.(\d)[af]?(?:\+ptx)?")
_MAJOR = re.compile(r"major[\w.() >-]*= = 12\b|\b12 = = [\w.() >-]*major")
_MINOR = re.compile(
    r"minor[\w.() >-]*(?:= = 0\b|< 1\b)|\b0 = = [\w.() >-]*minor|! [\w.() >-]*minor|not [\w.() >-]*minor"
)
_NUMBER = re.compile(rb"12(?<!\w12)(?:00?\b|10?\b|\s*,\s*0\b|\.0[af]?\b|\b)")
"""Every such test has one of these numbers. A pattern that begins with text is searched ten times as fast."""
_HITS = _NUMBER.finditer
_TESTED = re.compile(
    rb"""
      [=!<>] [=\s(]* \b12(?:00?|10?)\b          # arch == (120
    | \b12(?:00?|10?)\b [\s)]* [=!>]           # 1200) <= arch
    | \bcase \s+ 1200?\b
    | \{ [\s\d,]* \b120\b                      # {90, 120}
    | [({] \s* 12 \s* , \s* 0\b               # (12, 0)
    | define \s+ \w+ \s+ 1200?\b
    | "12\.0
    | major [^;{}]{0,150} \b12\b | \b12\b [^;{}]{0,40} major
    """,
    re.VERBOSE,
).search
"""Such a number as a test in C++ has it."""
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WRITTEN = re.compile(
    rb"""(?ix) 12 (?<!family\(12)
    (?:(?<=[^\w.]12)|(?<=ute_12)|(?<=sm12)|(?<=sm_12))
    (?:(?:00?|10?|\.0)[af]?(?:\+ptx)?(?![\w.]|[ \t]+(?!(?:and|or|else|if|in|not|is)\b)\w)
    | \s*,\s*(?:\w+\s*=\s*)?0\b | \b(?![.,]))"""
).finditer
"""Such a number as a test in Python has it: not in prose, in a call for a family, or at the end of another name."""
_HIT_NAME = re.compile(rb"120(?:(?<=[sS][mM]120)|(?<=[sS][mM]_120)|(?<=compute_120))(?:_ALL|(?!\w{2}))").search
_NEAR = re.compile(rb"(?i)capab|\b(?:\w*_)?caps?\b|arch|major|version|\bsm|\bcc\b|gpu").search


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
        return _kept_places(language, gates, text) if searched else ()


@cache
def may_have(language: str, gates: frozenset[str]) -> Look:
    """Return the quick look for files of a language with such a test. ``gates``: templates that are one."""
    if language == "cmake":
        return Look(words_of(["12"]))
    closer = _in_code if language == "c++" else _in_module
    return Look(words_of(["12"], *([gate] for gate in gates)), partial(closer, tuple(gate.encode() for gate in gates)))


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
    near = (content[max(0, hit.start() - 200) : hit.end() + 200] for hit in _WRITTEN(content) if hit[0] == b"12")
    if not any(hit[0] != b"12" for hit in _WRITTEN(content)) and not any(b"minor" in text for text in near):
        return False
    return bool(_HIT_NAME(content)) or any(
        _NEAR(content, max(0, hit.start() - 80), hit.end() + 80) for hit in _HITS(content)
    )


def _kept_places(language: str, gates: Set[str], text: str) -> list[Place]:
    """As :func:`places`, of the user's cache where this text was read before: to read it takes a while."""
    try:
        store = Store(cache_dir() / "searches")
    except SourceError:  # a user without a directory for it
        return places(language, gates, text)
    made_by = source_hash("fp4patch.edits", "fp4patch.cxx")
    name = key("exact tests", made_by, language, " ".join(sorted(gates)), text.encode("utf-8", "surrogateescape"))
    kept = store.get(name)
    if kept is None:
        kept = places(language, gates, text)
        store.put(name, kept)
    return [Place(*place) for place in kept]


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


def _meant(text: str) -> int | None:
    """Return the number of the GPU that a string names, as ``sm_120a`` or ``12.0``; None if it names none."""
    if found := _TEXT.fullmatch(text):
        return int(found[1] or found[2] + found[3])
    return None


# --- C++ and CMake ----------------------------------------------------------------------------------------------------


def _in_cmake(text: str, _gates: Set[str]) -> Iterator[tuple[int, bool]]:
    script = parse(text)
    for command in (script.commands[at] for at in script.live):
        if command.name in ("if", "elseif", "while"):
            words = [re.sub(r"[\\^$]", "", argument.text) for argument in command.arguments]
            numbers = {120 if word in _SM120 else 121 if word in _SM121 else _meant(word) for word in words}
            if 120 in numbers and 121 not in numbers and not any("GREATER" in word or "LESS" in word for word in words):
                yield command.line, False


def _in_cxx(text: str, gates: Set[str]) -> Iterator[tuple[int, bool]]:
    source = lex(text)
    words = source.words
    constants = {words[at - 2] for at, word in enumerate(words) if word in _SM120 and words[at - 1] == "="}
    constants |= {words[at - 1] for at, word in enumerate(words) if word in _SM120 and words[at - 2] == "define"}
    constants = {name for name in constants if _SUBJECT.search(name) or "120" in name} - _OF_TARGETS
    named = constants | gates
    for at in [at for at, word in enumerate(words) if "12" in word or word in named]:
        token = source.token(at)
        if not _is_wanted(token, named) or not source.is_live(token.start):
            continue
        if words[at + 1 : at + 2] == ("<",) if token.text in gates else _is_exact(source, at, constants):
            yield token.line, token.text in gates


def _is_wanted(token: Token, names: Set[str]) -> bool:
    word = token.text
    if token.kind is Kind.STRING:
        return _meant(word.strip('"')) == 120
    if token.kind is Kind.NAME:
        return word in names or ("120" in word and _NAME.fullmatch(word) is not None)
    return word in ("12", *_SM120, *_SM121)


def _is_exact(source: Source, at: int, constants: Set[str]) -> bool:
    words, word, statement = source.words, source.words[at], _statement(source, at)
    if word == "12":
        text, near = " ".join(statement), " ".join(words[max(0, at - 12) : at])
        pair = words[at + 1 : at + 4] in ((",", "0", "}"), (",", "0", ")")) and words[at - 1] in "({"
        return (pair and bool(_SUBJECT.search(near))) or bool(_MAJOR.search(text) and _MINOR.search(text))
    first, end = at, at + 1
    while first and words[first - 1] == "(":
        first -= 1
    while words[end : end + 1] == (")",):
        end += 1
    left, right = "".join(words[max(0, first - 2) : first]), "".join(words[end : end + 2])
    if word in _SM121:
        return (left[-1:] == "<" and left != "<<") or (right[:1] == ">" and right not in (">=", ">>"))
    if any(other in _SM121 or re.search(r"(?i)sm_?121", other) for other in statement):
        return False
    kind = source.token(at).kind
    if "case" in words[max(0, at - 4) : at]:
        has_other = any(a == "case" and b in _SM121 for a, b in pairwise(words[max(0, at - 60) : at + 60]))
        return not has_other and (kind is not Kind.NUMBER or bool(_SUBJECT.search(_switched(words, at))))
    is_compared = left in ("==", "!=", "<=") or (right in ("==", "!=", ">=") and left[-1:] not in tuple("%*/+-"))
    if kind is Kind.NUMBER:
        return (is_compared and _SUBJECT.search(" ".join(statement)) is not None) or _is_element(words, at)
    is_element = left[-1:] in ("{", ",") and right[:1] in (",", "}")
    in_condition = source.directive_of[at] >= 0 and statement[1].startswith(("if", "elif"))
    asked = {"strcmp"} if word in constants or kind is Kind.STRING else {"if", "while", "?", "assert"}
    return is_compared or is_element or in_condition or not asked.isdisjoint(statement)


def _is_element(words: Sequence[str], at: int) -> bool:
    """Tell whether a number is in braces with other architectures, or a key beside other ones, and SM121 is not."""
    before, after = " ".join([*words[max(0, at - 40) : at], ""]), " ".join(words[at + 1 : at + 40])
    head, tail = re.search(r"\{ ((?:\d+ , )*)$", before), re.match(r"((?:, \d+ )*)\}", after)
    numbers: list[str] = []
    if head and tail:
        numbers = re.findall(r"\d+", head[1] + tail[1])
    elif before.endswith("{ ") and after.startswith(","):  # {90, f}, {120, g}
        numbers = re.findall(r"\{ (\d+) ,", before + after)
    archs = {int(number) // 10 if int(number) >= 700 else int(number) for number in numbers}
    return bool(archs) and archs <= _ARCHS - {121}


def _statement(source: Source, at: int) -> Sequence[str]:
    """Return the words around one, as far as its directive, or the marks that end statements."""
    words, directives = source.words, source.directive_of

    def ends(index: int) -> bool:
        return not 0 <= index < len(words) or directives[index] != directives[at] or words[index] in ";{}"

    first = last = at
    while not ends(first - 1):
        first -= 1
    while not ends(last + 1):
        last += 1
    return words[first : last + 1]


def _switched(words: Sequence[str], at: int) -> str:
    """Return the beginning of what the ``switch`` around a ``case`` is about."""
    switch = next((index for index in range(at, -1, -1) if words[index] == "switch"), None)
    return "" if switch is None else " ".join(words[switch + 1 : switch + 12]).partition("{")[0]


# --- Python -----------------------------------------------------------------------------------------------------------


def _in_python(text: str, _gates: Set[str]) -> Iterator[tuple[int, bool]]:
    tree, lines = ast.parse(text), text.split("\n")
    nodes = list(_walk(tree, _lines(text, r"12(?:0|\s*,\s*0|\b)|major")))
    names = {
        target.id: number
        for node in nodes
        if isinstance(node, ast.Assign) and (number := _Python({}).number(node.value))
        for target in node.targets
        if isinstance(target, ast.Name) and (_SUBJECT.search(target.id) or str(number) in target.id)
    }
    if names:
        nodes = list(_walk(tree, _lines(text, rf"12(?:0|\s*,\s*0|\b)|major|\b(?:{'|'.join(names)})\b")))
    reader = _Python(names)
    with_sm121: set[int] = set()
    for node in nodes:
        either = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        if (either or isinstance(node, ast.MatchOr)) and reader.has(node, 121):
            with_sm121 |= {id(part) for part in ast.walk(node)}
        if id(node) not in with_sm121 and (line := reader.test(node)) and "family" not in lines[line - 1]:
            yield line, False


def _lines(text: str, pattern: str) -> list[int]:
    return sorted({text.count("\n", 0, found.start()) + 1 for found in re.finditer(pattern, text)})


def _walk(tree: ast.AST, hits: Sequence[int]) -> Iterator[ast.AST]:
    """Yield the nodes in whose lines something is that such a test has, from the outside in."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if first is None or last is None or any(first <= hit <= last for hit in hits):
            yield node
            for value in vars(node).values():
                todo += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST)]


class _Python:
    """The tests in a module. ``names``: its constants that are the number of a GPU."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self.names = names

    def number(self, node: ast.AST) -> int | None:
        """Return the number of the GPU that an expression or a pattern means: 120 for ``(12, 0)``, ``"sm_120"``."""
        if isinstance(node, ast.MatchValue):
            return self.number(node.value)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return _meant(node.value)
            number = node.value if isinstance(node.value, int) else 0
            return number // 10 if number >= 700 and number % 10 == 0 else number or None
        parts: Sequence[ast.AST] = ()
        if isinstance(node, ast.Tuple):
            parts = node.elts
        elif isinstance(node, ast.MatchSequence):
            parts = node.patterns
        elif isinstance(node, ast.Call) and "capability" in ast.unparse(node.func).lower():
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            found = _NAME.fullmatch(name)
            return self.names.get(name) or (int(found[1] or found[2]) if found else None)
        values = [part.value if isinstance(part, ast.MatchValue) else part for part in parts]
        pair = [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, int)]
        return pair[0] * 10 + pair[1] if len(pair) == len(values) == 2 and 5 < pair[0] < 20 > pair[1] * 2 else None

    def has(self, node: ast.AST, number: int) -> bool:
        """Tell whether a part of it means that GPU."""
        return any(self.number(part) == number for part in ast.walk(node))

    def test(self, node: ast.AST) -> int:
        """Return the line of a test for exactly SM120; 0 if it is none."""
        if isinstance(node, ast.Match):
            about = _SUBJECT.search(ast.unparse(node.subject))
            patterns = [case.pattern for case in node.cases if not self.has(case.pattern, 121)]
            exact = [
                p
                for p in patterns
                for part in ast.walk(p)
                if self.number(part) == 120 and (about or not _is_bare(part))
            ]
            return exact[0].lineno if exact else 0
        return getattr(node, "lineno", 0) if self._is_test(node) else 0

    def _is_test(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            asks = name == "is_device_capability" and bool(node.args) and self.number(node.args[0]) == 120
            return asks or re.fullmatch(r"(?i)_*is_(?:exactly_)?sm_?120[af]?", name) is not None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            text = " ".join(re.findall(r"\w+|[^\w\s]", ast.unparse(node)))
            return bool(_MAJOR.search(text) and _MINOR.search(text))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return any(self._is_exact(*pair) for pair in pairs) and self._is_about_gpus(node, *sides)
        if isinstance(node, ast.List | ast.Set | ast.Tuple | ast.Dict):
            elements = [key for key in node.keys if key] if isinstance(node, ast.Dict) else node.elts
            numbers = [self.number(element) for element in elements]
            several = len(numbers) > 1 or not all(map(_is_bare, elements))
            return several and 120 in numbers and 121 not in numbers and {*numbers} <= _ARCHS
        return False

    def _is_exact(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
        """Tell whether a comparison holds, or does not hold, for SM120 and not so for SM121."""
        if isinstance(op, ast.In | ast.NotIn):
            return self.has(right, 120) and not self.has(right, 121)
        if isinstance(op, ast.Gt | ast.GtE):
            left, right = right, left
        limits = {ast.Lt: 121, ast.Gt: 121, ast.LtE: 120, ast.GtE: 120}
        return self.number(right) == limits.get(type(op), 120) or (type(op) not in limits and self.number(left) == 120)

    def _is_about_gpus(self, node: ast.AST, *operands: ast.AST) -> bool:
        return bool(_SUBJECT.search(ast.unparse(node))) or any(
            self.number(operand) == 120 and not _is_bare(operand) and not isinstance(operand, ast.Tuple)
            for operand in operands
        )


def _is_bare(node: ast.AST) -> bool:
    """Tell whether it is a number, which may be one of something else."""
    node = node.value if isinstance(node, ast.MatchValue) else node
    return isinstance(node, ast.Constant) and not (isinstance(node.value, str) and node.value[:1].isalpha())


_READERS: Mapping[str, Callable[[str, Set[str]], Iterator[tuple[int, bool]]]] = {
    "c++": _in_cxx,
    "python": _in_python,
    "cmake": _in_cmake,
}
