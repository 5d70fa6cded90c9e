"""Tests for exactly SM120 in C++: in conditions of the preprocessor and of statements, in lists and specializations."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set

from fp4patch.cxx.literals import integer
from fp4patch.cxx.tokens import Source, lex
from fp4patch.edits.cxx_expression import Expressions
from fp4patch.edits.cxx_statements import Statement, statements
from fp4patch.edits.gpu_condition import (
    ARCHS,
    Asked,
    Conditions,
    Function,
    Gpu,
    Target,
    Unknown,
    conditions_in,
    is_subject,
    named,
    other_than,
    put,
    uses,
)

_OF_TARGETS = {"__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"}
"""What nvcc defines for any target; TransformerEngine defines them for older ones."""
_CONDITIONS = frozenset(("if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"))
# Example: TORCH_CHECK
_CHECKS = re.compile(r"\w*(?i:check|assert|require|enforce|expect|ensure|verify)\w*")
_ASKED = frozenset(("if", "constexpr", "while", "requires", "enable_if", "enable_if_t"))
# Example: FLASHINFER_ERROR
_ENDS = re.compile(
    r"return|co_return|throw|goto|break|continue|_*(?:quick_)?exit|_*trap|abort|terminate"
    r"|\w*(?:ERROR|THROW|FATAL|ABORT|UNREACHABLE)\w*"
)
"""What nothing is reached behind, as the first word of a statement or the name that it calls."""
_NOTHING = frozenset(("", "false", "0", "nullptr", "NULL", "-1"))
# Example: 0x78u
_HIT_NUMBER = re.compile(r"(?i)0x[0-9a-f']+[ul]*|0b[01']+[ul]*|0[0-7']+[ul]*|1'?2[0-9']*[ul]*")
_VALUES = frozenset((12, 120, 121, 1200, 1210))
_ADDS = frozenset(("push_back", "emplace_back", "insert", "emplace"))


def in_cxx(text: str, gates: Set[str]) -> Iterator[tuple[int, bool]]:
    """Yield the line of each test, and of each use of a template that is one: ``gates``."""
    source = lex(text)
    words = source.words
    values = _constants(words)
    functions = _macros(source)
    about = {name for name, value in values.items() if value in _VALUES} - _OF_TARGETS | functions.keys()
    constants = {name: ast.Constant(value) for name, value in values.items() if name not in _OF_TARGETS}
    conditions = Conditions(constants, functions)
    for at in [at for at, word in enumerate(words) if word in gates]:
        if words[at + 1 : at + 2] == ("<",) and source.is_live(source.starts[at]):
            yield source.line(source.starts[at]), True
    hits = {at for at in range(len(words)) if _is_hit(words, at, about)}
    if not hits:
        return
    given = set(_given(words, hits))
    hits |= {at for at, word in enumerate(words) if word in given}
    for number, directive in enumerate(source.directives):
        span = range(bisect_left(source.starts, directive.start), bisect_left(source.starts, directive.stop))
        if not hits.isdisjoint(span) and source.is_live(directive.start):
            following = source.directives[number + 1 : number + 2]
            is_error = bool(following) and following[0].name == "error"
            found = _of_directive(source, directive.name, span, conditions, is_error=is_error)
            yield from ((line, False) for line in found)
    code = _Code(source, hits)
    code.walk(statements(source), (), conditions)
    yield from ((line, False) for line in code.lines(conditions))


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
    for at in [
        at for at, word in enumerate(words) if word == "integral_constant"
    ]:  # using X = integral_constant<int, 1>
        value = integer(words[at + 4]) if words[at + 4 : at + 5] and words[at + 4][0].isdecimal() else None
        before = [*words[max(0, at - 5) : at]]
        if value is not None and "using" in before[:-2]:
            found[before[before.index("using") + 1]] = value
    return {name: value for name, value in found.items() if value >= 0}


def _given(words: Sequence[str], hits: Set[int]) -> Iterator[str]:
    """Yield the names that are given a value in a statement with a hit."""
    for hit in hits:
        for at in range(hit, max(1, hit - 40), -1):
            if words[at] in (";", "{", "}", "#"):
                break
            if words[at] == "=" and words[at + 1] != "=" and words[at - 1].isidentifier():
                yield words[at - 1]


def _macros(source: Source) -> Mapping[str, Function]:
    """Return the macros with parameters that compare something, but for those that are a test by themselves."""
    words, found = source.words, {}
    for directive in source.directives:
        if directive.name != "define":
            continue
        tokens = directive.tokens
        if len(tokens) < 5 or tokens[1].text != "(" or tokens[1].start != tokens[0].end:
            continue
        closing = next((at for at, token in enumerate(tokens) if token.text == ")"), 0)
        span = range(bisect_left(source.starts, directive.start), bisect_left(source.starts, directive.stop))
        body = span[-1] + 1 - len(tokens) + closing + 1
        if not closing or not {"=", "!", "<", ">"} & {*words[body : span[-1] + 1]}:
            continue
        expressions = Expressions(source, range(body, span[-1] + 1)).all()
        if len(expressions) == 1:
            parameters = [token.text for token in tokens[2:closing:2]]
            found[tokens[0].text] = Function(parameters, expressions[0])
    return {name: made for name, made in found.items() if not Conditions({}).parts(_of_gpu(name, made))}


def _of_gpu(name: str, made: Function) -> ast.expr:
    """Return what a macro is for a GPU, if its name says that its one parameter is one."""
    subject = ast.Name("arch") if is_subject(name) or named(name) else ast.Name("unknown")
    return put(made.body, dict.fromkeys(made.parameters, subject))


def _of_directive(source: Source, name: str, span: range, conditions: Conditions, *, is_error: bool) -> Iterator[int]:
    """Yield the line of a directive that is a test, or in whose branch is an ``#error``."""
    behind = span[2:]
    line = source.line(source.starts[span[0]])
    if name in _CONDITIONS:
        found = Expressions(source, behind).all()
        condition = found[0] if len(found) == 1 else ast.BoolOp(ast.And(), found) if found else ast.Constant(0)
        if name.endswith("ndef"):
            condition = ast.UnaryOp(ast.Not(), condition)
        shuts_out = is_error and conditions.parts_below(other_than(condition), ())
        yield from [line] * (shuts_out or any(conditions.places(condition)))
    elif name == "define" and len(behind) > 1:
        words = source.words
        macro = words[behind[0]]
        expressions = Expressions(source, behind[1:]).all()
        if words[behind[1]] == "(" and source.starts[behind[1]] == source.ends[behind[0]]:
            closing = next((at for at in behind if words[at] == ")"), behind[-1])
            body = Expressions(source, range(closing + 1, behind[-1] + 1)).all()
            parameters = words[behind[1] + 1 : closing : 2]
            expressions = [_of_gpu(macro, Function(parameters, one)) for one in body]
        yield from _of_statement(expressions, (), conditions)


def _of_statement(expressions: Sequence[ast.expr], path: Sequence[ast.expr], conditions: Conditions) -> Iterator[int]:
    """Yield the lines of tests in a statement that is in the branches of these conditions."""
    for expression in expressions:
        for asked in conditions_in(expression, _is_asked):
            yield from _of_test(asked, path, conditions)
        for node in ast.walk(expression):
            if isinstance(node, ast.Set):
                keys = [
                    element.elts[0] for element in node.elts if isinstance(element, ast.Set) and len(element.elts) == 2
                ]
                listed = ast.Set(keys) if keys and len(keys) == len(node.elts) else node  # {{90, f}, {120, g}}
                if conditions.lists_it_alone(listed) and not _is_compared(expression, node):
                    yield node.lineno
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and _is_dispatch(node):
                numbers = ast.Tuple(node.func.args, lineno=node.lineno)
                if len(numbers.elts) > 1 and conditions.lists_it_alone(numbers):  # dispatch<90, 120>(arch)
                    yield node.lineno
            elif (
                isinstance(node, ast.Name | ast.Attribute)
                and named(_last(node)) == 120
                and _last(node).startswith("NV_IS")
            ):
                names = {named(_last(other)) for other in ast.walk(expression)}
                yield from [node.lineno] * (121 not in names)


def _is_dispatch(call: ast.Call) -> bool:
    return any(map(is_subject, _names(call.args)))


def _is_asked(function: str) -> bool:
    return function in _ASKED or _CHECKS.fullmatch(function) is not None


def _of_test(asked: Asked, path: Sequence[ast.expr], conditions: Conditions) -> Iterator[int]:
    found = [_line(place) for place in conditions.places(asked.test)]
    around = [*path, *(one for one in asked.around if conditions.matters(one))]
    if not found and conditions.parts_below(asked.test, around):
        found = [_line(asked.test)]
    if not found and asked.has_other and around and conditions.parts_below(other_than(asked.test), around):
        found = [_line(asked.test)]
    yield from found


class _Code:
    """The tests in the statements of a file, of which some have a hit."""

    def __init__(self, source: Source, hits: Set[int]) -> None:
        self._source = source
        self._hits = sorted(hits)
        self._found: set[int] = set()
        self._specializations: list[tuple[str, ast.expr, int]] = []
        self._added: dict[str, set[tuple[object, int]]] = {}

    def lines(self, conditions: Conditions) -> Iterator[int]:
        """Yield the lines of all tests that were found."""
        yield from self._found
        yield from _specialized(self._source.words, self._specializations, conditions)
        for added in self._added.values():
            if not {121, Target(121)} & {value for value, _ in added}:
                yield from (line for value, line in added if value in (120, Target(120)))

    def _has_hit(self, first: int, last: int) -> bool:
        at = bisect_left(self._hits, first)
        return at < len(self._hits) and self._hits[at] <= last

    def walk(self, several: Sequence[Statement], path: tuple[ast.expr, ...], conditions: Conditions) -> None:
        """Look at statements that follow each other, in the branches of these conditions."""
        words = self._source.words
        for one in several:
            if not (self._has_hit(one.first, one.last) or words[one.first] == "template"):
                continue
            if not self._source.is_live(self._source.starts[one.first]):
                continue
            expressions = self._expressions(one)
            own = one.body if one.kind == "switch" else ()
            self._found.update(_of_statement(expressions, path, conditions), _pairs(expressions, conditions))
            self._note(expressions, conditions)
            conditions = _knowing(expressions, conditions)
            if own:
                subject = Expressions(self._source, one.tokens[1:]).ternary() or ast.Name("unknown")
                self._switch(own, subject, path, conditions)
            else:
                path = self._branches(one, expressions, path, conditions)
            self._specializations += _specializations(self._source, one.tokens)

    def _expressions(self, one: Statement) -> list[ast.expr]:
        has_hit = any(self._has_hit(at, at) for at in one.tokens)
        return Expressions(self._source, one.tokens).all() if has_hit and one.kind != "case" else []

    def _branches(
        self, one: Statement, expressions: Sequence[ast.expr], path: tuple[ast.expr, ...], conditions: Conditions
    ) -> tuple[ast.expr, ...]:
        """Look at what is in a statement; return the conditions of what is behind it."""
        tests = [test for test in _ifs(expressions) if conditions.matters(test)]
        within = (*path, *tests)
        self.walk(one.body, within, conditions)
        if one.kind != "if" or len(tests) != 1:
            self.walk(one.orelse, path, conditions)
            return (*path, *(test for test in _checks(expressions) if conditions.matters(test)))
        (test,) = tests
        other = other_than(test)
        self.walk(one.orelse, (*path, other), conditions)
        ends, has_end = self._ends(one.body), self._ends(one.orelse)
        if (ends and (not self._is_other_value(one.body) or not conditions.names_sm121(test))) or (path and one.orelse):
            is_left_out = not conditions.parts(test) and conditions.parts_below(other, path)
            self._found.update([_line(test)] * is_left_out)
        return (*path, other) if ends and not has_end else within if has_end and not ends else path

    def _ends(self, several: Sequence[Statement]) -> bool:
        """Tell whether nothing behind these statements is reached from them."""
        if not several:
            return False
        last = several[-1]
        if last.kind == "if":
            return self._ends(last.body) and self._ends(last.orelse)
        if last.kind == "{":
            return self._ends(last.body)
        words = self._source.words
        called = next((number for number, at in enumerate(last.tokens) if words[at] == "("), 1)
        name = words[last.tokens[called - 1]] if 0 < called <= len(last.tokens) else ""
        return _ENDS.fullmatch(last.kind) is not None or (_ENDS.fullmatch(name) is not None and last.kind != "if")

    def _is_other_value(self, several: Sequence[Statement]) -> bool:
        """Tell whether statements return something that is not no, or nothing."""
        words, last = self._source.words, several[-1]
        returned = "".join(words[at] for at in last.tokens[1:])
        return last.kind in ("return", "co_return") and returned not in _NOTHING

    def _switch(
        self, several: Sequence[Statement], subject: ast.expr, path: tuple[ast.expr, ...], conditions: Conditions
    ) -> None:
        """Look at the cases of a switch, and at what is behind each."""
        groups: list[tuple[list[ast.expr], list[Statement]]] = [([], [])]
        cases: list[ast.expr] = []
        is_default: set[int] = set()
        for one in several:
            if one.kind not in ("case", "default"):
                groups[-1][1].append(one)
                continue
            tests, behind = groups[-1]
            if behind:
                groups.append(([] if self._ends(behind) else [*tests], []))
            if one.kind == "default":
                is_default.add(len(groups) - 1)
            elif (value := Expressions(self._source, one.tokens[1:]).ternary()) is not None:
                line = self._source.line(self._source.starts[one.first])
                test = ast.Compare(subject, [ast.Eq()], [value], lineno=line, col_offset=0)
                groups[-1][0].append(test)
                cases.append(test)
        whole = [ast.BoolOp(ast.And(), [*path, test]) if path else test for test in cases]
        has_other = any(conditions.is_for(test, 121) and not conditions.is_for(test, 120) for test in whole)
        if not has_other:
            self._found.update(_line(test) for test in cases if conditions.parts(test))
            self._found.update(_line(test) for test in cases if conditions.parts_below(test, path))
        for number, (tests, behind) in enumerate(groups):
            any_of = ast.BoolOp(ast.Or(), [*tests]) if len(tests) > 1 else tests[0] if tests else None
            if number in is_default and cases:
                any_of = other_than(ast.BoolOp(ast.Or(), cases)) if not tests else None
            matters = any_of is not None and conditions.matters(any_of)
            self.walk(behind, (*path, any_of) if any_of is not None and matters else path, conditions)

    def _note(self, expressions: Sequence[ast.expr], conditions: Conditions) -> None:
        """Note what is added to a list of GPUs."""
        for expression in expressions:
            for node in ast.walk(expression):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
                    owner = _last(node.func.value)
                    value = conditions.value(node.args[0]) if node.args else None
                    if is_subject(owner) and isinstance(value, int | Target):
                        self._added.setdefault(owner, set()).add((value, node.lineno))


def _knowing(expressions: Sequence[ast.expr], conditions: Conditions) -> Conditions:
    """Return the conditions behind a statement, which may give names a value."""
    found: dict[str, ast.expr] = {}
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
                name, value = node.target.id, node.value
                if not uses(value, name) and conditions.may_be_named(value):
                    found[name] = value
                elif name in conditions.names and not isinstance(conditions.names[name], ast.Constant):
                    found[name] = ast.Name("unknown")
    return conditions.knowing(found) if found else conditions


def _ifs(expressions: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the condition of each ``if`` of a statement, or of the head of a block."""
    for expression in expressions:
        if isinstance(expression, ast.Call) and _last(expression.func) in ("if", "constexpr", "while"):
            yield from expression.args[-1:]


def _checks(expressions: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the condition of each call that ends the program, or the function, where it does not hold."""
    for expression in expressions:
        if isinstance(expression, ast.Call) and expression.args and _CHECKS.fullmatch(_last(expression.func)):
            yield expression.args[0]


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
    compared = {id(part) for e in expressions for asked in conditions_in(e, _is_asked) for part in ast.walk(asked.test)}
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


def _specialized(
    words: Sequence[str], found: Sequence[tuple[str, ast.expr, int]], conditions: Conditions
) -> Iterator[int]:
    """Yield the lines of specializations for SM120 of templates that have none for SM121."""
    numbers: dict[str, list[tuple[int, int, bool]]] = {}
    for name, argument, line in found:
        value = conditions.value(argument)
        if isinstance(value, Target) or type(value) is int:
            number = value.number if isinstance(value, Target) else value // 10 if value >= 700 else value
            numbers.setdefault(name, []).append((number, line, isinstance(value, Target)))
    for name, several in numbers.items():
        of_gpus = {number for number, *_ in several}
        if 120 in of_gpus and 121 not in of_gpus:
            about = is_subject(name) or (len(of_gpus) > 1 and of_gpus <= ARCHS) or _is_about(words, name)
            yield from (line for number, line, by_name in several if number == 120 and (by_name or about))


def _is_about(words: Sequence[str], name: str) -> bool:
    """Tell whether a template has a parameter that is a GPU by its name, or is used with one."""
    for at in [at for at, word in enumerate(words) if word == name]:
        used = words[at + 1 : at + 12] if words[at + 1 : at + 2] == ("<",) else ()
        declared = words[max(0, at - 16) : at]
        start = max((number for number, word in enumerate(declared) if word == "template"), default=len(declared))
        for span in (used[: used.index(">")] if ">" in used else (), declared[start:]):
            if any(word.isidentifier() and is_subject(word) for word in span):
                return True
    return False
