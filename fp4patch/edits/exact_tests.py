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
from dataclasses import dataclass, field
from functools import cache, partial

from packaging.version import Version

from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.core.release import covers
from fp4patch.core.table import Globs, Identifier, Specifier
from fp4patch.core.tree_path import not_built
from fp4patch.edits.cmake import parse
from fp4patch.edits.cmake_expression import read_condition
from fp4patch.edits.exact_cxx import in_cxx
from fp4patch.edits.gpu_condition import (
    Conditions,
    Function,
    is_condition,
    is_nothing,
    is_subject,
    leaves,
    other_than,
    put,
    uses,
)
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import PatchedTree, Place, Search
from fp4patch.edits.promise import Promise
from fp4patch.edits.python_source import read as read_module

BECAUSE = "a test for exactly SM120 that no edit is for: SM121 may be left out there"
LANGUAGES = ("c++", "python", "cmake")
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
    | (?:push|emplace|insert) \w* \( [\s{]* 120\b
    | " [^"\n]* [;,|\s] 120 [;,|\s"]                # "90;120"
    | [A-Z_]{2} \w* \( \s* (?:\w+ \s* , \s*)? 1200?\b  # IS(arch, 120)
    | (?:arch|sm|cc|cap) \w* \s* , \s* 12[01]\b    # equal(arch, 120)
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
    rb"12[01](?:(?<=[sS][mM]12[01])|(?<=[sS][mM]_12[01])|(?<=compute_12[01]))(?:_ALL|[AFaf]?_ENABLED|(?!\w{2}))"
).search
_NEAR = re.compile(rb"(?i)capab|\b(?:\w*_)?caps?\b|arch|major|version|\bsm|(?<![a-z])cc(?![a-z])|gpu").search


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
            ("12000", "inor"),
            *((twelve, "inor", "ajor") for twelve in ("= 12", "== 12,", "==12,", "!= 12,", "!=12,")),
            *((twelve, minor) for twelve in ("0xc", "0xC", "014", "0b1100", "0o14") for minor in ("inor", "second")),
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


# --- Python -----------------------------------------------------------------------------------------------------------


# Example: _is_sm120
_CALLED = re.compile(r"(?i)_*is_(?:exactly_)?sm_?120[af]?")
_ASKING = frozenset(("is_device_capability", "startswith", "endswith", "match", "fullmatch", "search"))


def _in_python(text: str, _gates: Set[str]) -> Iterator[tuple[int, bool]]:
    module, lines = read_module(text), text.split("\n")
    names = _assigned(module.nodes(""))
    hits = _lines(text, _HIT_LINE)
    about = {
        name
        for name, value in names.items()
        if isinstance(value, ast.Subscript) or (isinstance(value, ast.Constant | ast.Tuple) and value.lineno in hits)
    }
    hits |= _lines(text, _any_name(about)) if about else set()
    of_families = {at for at, line in enumerate(lines, 1) if "family" in line}
    reader = _Module(Conditions(names, _functions(module.tree)), text, hits, of_families)
    reader.scope(module.tree, names, ())
    yield from ((line, False) for line in reader.lines())


def _any_name(names: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b"


# As in `arch == 0x78`.
_HIT_LINE = r"12|1_2|0[xXbBoO][\d_]|ajor|inor|[sS][mM]_?1?[\"'%{]|[=!]= *\(*\d+ *[-+*|^<]"


def _lines(text: str, pattern: str) -> set[int]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return {bisect_right(starts, found.start()) for found in re.finditer(pattern, text)}


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return the values of the names that are set once; a name of a pair is the part of what it is set to."""
    stored = Counter[str]()
    values: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] += 1
        elif isinstance(node, ast.arg):
            stored[node.arg] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List | ast.Tuple | ast.Set | ast.Dict):
            stored[getattr(node.target, "id", "")] -= 1  # it is the same list, with more in it
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if len(targets) != 1 or value is None:
            continue
        if isinstance(targets[0], ast.Name):
            values[targets[0].id] = value
        elif isinstance(targets[0], ast.Tuple):
            for at, target in enumerate(targets[0].elts):
                if isinstance(target, ast.Name) and not isinstance(value, ast.Tuple):
                    values[target.id] = ast.Subscript(value, ast.Constant(at))
    return {
        name: value
        for name, value in values.items()
        if stored[name] == 1 and not isinstance(value, ast.Compare | ast.BoolOp | ast.IfExp)
    }


def _named_conditions(
    nodes: Iterable[ast.AST], conditions: Conditions, is_hit: Callable[[ast.AST], bool]
) -> dict[str, ast.expr]:
    """Return the names that are set once, to a condition that is no test by itself, such as ``major == 12``."""
    set_to: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            set_to.setdefault(node.targets[0].id, []).append(node.value)
    alone = ((name, several[0]) for name, several in set_to.items() if len(several) == 1)
    return {
        name: value
        for name, value in alone
        if is_condition(value) and is_hit(value) and not uses(value, name) and conditions.may_be_named(value)
    }


def _functions(tree: ast.Module) -> dict[str, Function]:
    """Return the functions that are one comparison, but for those that are a test by themselves."""
    found = {}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or len(node.body) != 1:
            continue
        (only,) = node.body
        if isinstance(only, ast.Return) and only.value is not None and is_condition(only.value):
            made = Function([one.arg for one in node.args.args], only.value)
            if not Conditions({}).parts(made.body):
                found[node.name] = made
    return found


_ENDED_BY = frozenset(("exit", "_exit", "abort", "skip", "fail", "xfail"))


def _ends(several: Sequence[ast.stmt]) -> bool:
    """Tell whether nothing behind these statements is reached from them."""
    if not several:
        return False
    last = several[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    called = last.value.func if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break) or name in _ENDED_BY


def _is_other_value(several: Sequence[ast.stmt]) -> bool:
    """Tell whether statements return something that is not no, or nothing."""
    last = several[-1]
    value = last.value if isinstance(last, ast.Return) else None
    return value is not None and not is_nothing(value)


_ADDS = frozenset(("append", "add", "extend", "update", "setdefault", "insert"))


class _Module:
    """The tests in a module, in the lines that have something of one."""

    def __init__(self, conditions: Conditions, text: str, hits: Set[int], of_families: Set[int]) -> None:
        self.conditions = conditions
        self.of_families = of_families
        self.text = text
        self.hits = sorted(hits)
        self.found: set[int] = set()
        self.added: dict[str, list[tuple[object, int]]] = {}

    def lines(self) -> Iterator[int]:
        """Yield the lines of all tests that were found."""
        yield from self.found
        for added in self.added.values():
            if not {121, (12, 1)} & {value for value, _ in added}:
                yield from (line for value, line in added if value in (120, (12, 0)))

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
            self.body(node.body, self.below(path, node.test))
            self.body(node.orelse, self.below(path, other_than(node.test)))
        elif isinstance(node, ast.IfExp):
            self.test(node.test, path)
            if is_nothing(node.body) and path:
                self.other(node.test, path)
            self.walk(node.body, self.below(path, node.test))
            self.walk(node.orelse, self.below(path, other_than(node.test)))
        elif isinstance(node, ast.Assert):
            self.test(node.test, path)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.scope(node, _assigned(ast.walk(node)), path)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            self.comprehension(node, path)
        elif isinstance(node, ast.Match):
            self.match(node, path)
        elif isinstance(node, ast.expr) and is_condition(node):
            self.test(node, path)
        else:
            self.display(node)
            self.inside(node, path)

    def inside(self, node: ast.AST, path: tuple[ast.expr, ...]) -> None:
        """Look at what a node is made of."""
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
            if isinstance(node, ast.Assert):
                path = self.below(path, node.test)
            if isinstance(node, ast.If):
                path = self.behind(node, path)

    def behind(self, node: ast.If, path: tuple[ast.expr, ...]) -> tuple[ast.expr, ...]:
        """Return the conditions of what is behind an ``if``, and look whether it leaves SM121 out there."""
        ends, has_end = _ends(node.body), _ends(node.orelse)
        is_dispatch = ends and _is_other_value(node.body) and self.conditions.names_sm121(node.test)
        if ends and self.is_hit(node.test) and not is_dispatch:
            self.other(node.test, path)
        if ends != has_end:
            return self.below(path, other_than(node.test) if ends else node.test)
        return path

    def other(self, test: ast.expr, path: Sequence[ast.expr]) -> None:
        """Look at the branch in which a condition does not hold."""
        if not self.conditions.parts(test) and self.conditions.parts_below(other_than(test), path):
            self.found.add(test.lineno)

    def below(self, path: tuple[ast.expr, ...], test: ast.expr) -> tuple[ast.expr, ...]:
        """Return the conditions of a branch, of which those count that are on the GPU."""
        return (*path, test) if self.is_hit(test) and self.conditions.matters(test) else path

    def scope(self, node: ast.AST, names: Mapping[str, ast.expr], path: tuple[ast.expr, ...]) -> None:
        """Look at a function or a module, in which these names have values of their own."""
        whole = self.conditions, self.hits
        self.conditions = self.conditions.knowing(names)
        if named := _named_conditions(ast.walk(node), self.conditions, self.is_hit):
            self.conditions = self.conditions.knowing(named)
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or len(self.text)
            used = _lines(self.text, _any_name(named))
            self.hits = sorted({*self.hits, *(at for at in used if first <= at <= last)})
        self.inside(node, path)
        self.conditions, self.hits = whole

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, path: tuple[ast.expr, ...]
    ) -> None:
        """Look at the conditions of a comprehension, each of which holds for what follows it."""
        for generator in node.generators:
            self.walk(generator.iter, path)
            for condition in generator.ifs:
                self.test(condition, path)
                path = self.below(path, condition)
        made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        self.body(made, path)

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
            self.listed(node)
            self.adds(node.func, node.args)
        elif isinstance(node, ast.List | ast.Set | ast.Tuple | ast.Dict | ast.BinOp):
            self.listed(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            self.add(node.targets[0].value, [node.targets[0].slice])
        elif isinstance(node, ast.AugAssign):
            self.add(node.target, [node.value])

    def adds(self, function: ast.expr, given: Sequence[ast.expr]) -> None:
        """Note what a call of a method adds to a list or a dictionary."""
        if isinstance(function, ast.Attribute) and function.attr in _ADDS:
            self.add(function.value, given)

    def add(self, owner: ast.expr, given: Sequence[ast.expr]) -> None:
        """Note what is added to a list of GPUs, or one that has none yet and a name that says so."""
        name = ast.unparse(owner)
        asked = re.findall(rf"\b{re.escape(name)}(?:\[|\.get\()([^\n]*?)[\])]", self.text)
        has_gpus = self.conditions.has_gpus(self.conditions.names.get(name)) or any(map(is_subject, (name, *asked)))
        for value in map(self.conditions.value, given if has_gpus else ()):
            several = value if isinstance(value, tuple) and type(value) is tuple and value != (12, 0) else (value,)
            self.added.setdefault(name, []).extend((one, owner.lineno) for one in several)

    def listed(self, node: ast.expr, *, one_is_enough: bool = False) -> None:
        """Look whether a display has SM120 and not SM121, where it is not of families."""
        if node.lineno not in self.of_families and self.conditions.lists_it_alone(node, one_is_enough=one_is_enough):
            self.found.add(node.lineno)

    def test(self, test: ast.expr, path: tuple[ast.expr, ...]) -> None:
        """Look at a condition: by itself, in what is in it, and in the branch that it is in."""
        places = {getattr(place, "lineno", 0) for place in self.conditions.places(test)}
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
        here = [ast.BoolOp(ast.And(), [*path, test]) for _, test in guarded]
        has_other = any(self.conditions.is_for(test, 121) and not self.conditions.is_for(test, 120) for test in here)
        for case, test in guarded:
            if not has_other and (self.conditions.parts(test) or self.conditions.parts_below(test, path)):
                self.found.add(case.pattern.lineno)
            self.body(case.body, self.below(path, test))


def _bound(case: ast.match_case, subject: ast.expr) -> ast.expr:
    """Return the guard of a case, with what is matched in the place of the names that are bound to it."""
    return put(case.guard, dict(_captured(subject, case.pattern))) if case.guard else ast.Constant(True)


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
    "c++": in_cxx,
    "python": _in_python,
    "cmake": _in_cmake,
}
