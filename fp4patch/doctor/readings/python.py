"""Python files that build: setup.py, Spack's package.py, EasyBuild's .eb, Starlark; read as a syntax tree, never run.

Texts, lists and dictionaries of a module and of its functions are followed where they are literals, as are conditions
on the CUDA release and on variables of the environment, in which the user sets nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from packaging.version import Version

from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import (
    UNKNOWN,
    Kind,
    Read,
    Reading,
    Rewrite,
    Truth,
    Value,
    all_of,
    any_of,
    both,
    elements_of,
    joined,
    unknown,
)
from fp4patch.doctor.readings.releases import MIRRORED, compared, is_release

_SAYS = frozenset(
    (
        "print",
        "warn",
        "warning",
        "info",
        "debug",
        "error",
        "exit",
        "log",
        "write",
        "add_argument",
        "fail",
        "critical",
        "exception",
        "echo",
        "secho",
    )
)
"""Functions whose arguments are texts for a person."""
_RUNS = frozenset(
    ("run", "check_call", "check_output", "call", "Popen", "system", "spawn", "cmake", "make", "announce")
)
_COMPARES = {ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">"}
# Example: -gencode=arch=compute_121a,code=sm_121a
_FLAG = re.compile(r"-{1,2}(?:gencode|generate-code|arch|gpu-architecture|D[A-Za-z_]).*|arch=compute_.*", re.DOTALL)
_LONGEST = 64


@dataclass(frozen=True)
class Many:
    """A list, a tuple or a set."""

    items: tuple[Value, ...]
    whole: bool = True
    """False if more is in it than was followed."""


@dataclass
class _Scope:
    values: dict[str, Value | Many] = field(default_factory=dict)


def read_python(text: str, cuda: Version) -> Read:
    """Return what a Python file says. SyntaxError: it is not Python."""
    reader = _Module(cuda)
    tree = ast.parse(text)
    reader.run(tree.body)
    reader.finish()
    return reader.result


class _Module:
    """A module, from its first statement to its last; functions are read where they are called, else at the end."""

    def __init__(self, cuda: Version) -> None:
        self.result = Read()
        self._cuda = cuda
        self._values: dict[str, Value | Many] = {}
        self._environment: dict[str, Value] = {}
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._read: set[str] = set()
        self._branch = ""
        """On what the branch depends that is run."""
        self._by_default = False
        self._depth = 0
        self._ended = False
        self._left = False
        """True if what ended is a function, by a ``return``."""
        self._returned: list[dict[str, Value]] = []
        """Environments of branches of a function that return from it."""
        self._rest = ""
        """On what the rest of a function depends, after these."""
        self._flags: dict[tuple[int, str, str], Reading] = {}

    def finish(self) -> None:
        """Read the functions that were not called, each with what the module has at its end."""
        while rest := [name for name in self._functions if name not in self._read]:
            self._function(rest[0], [], "")
        self.result.readings += self._flags.values()

    # --- statements

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Run statements one after another."""
        for statement in body:
            if self._ended:
                return
            run = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if run:
                run(statement)
            else:
                for inner in ast.iter_child_nodes(statement):
                    if isinstance(inner, ast.expr):
                        self._value(inner)

    @property
    def _condition(self) -> str:
        """All that what is run depends on."""
        return both(self._branch, self._rest)

    @contextmanager
    def _under(self, condition: str) -> Iterator[None]:
        before, self._branch = self._branch, both(self._branch, condition)
        yield
        self._branch = before

    def _returns(self, condition: str, environment: dict[str, Value]) -> None:
        """Note a branch that returns, without which the rest of the function runs."""
        self._returned.append(environment)
        self._rest = both(self._rest, f"no return under {condition}")

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._functions[node.name] = node

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        self.run(node.body)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _return(self, node: ast.Return) -> None:
        if node.value:
            self._value(node.value)
        self._ended = self._left = True

    def _raise(self, node: ast.Raise) -> None:
        self._ended, self._left = True, False

    def _assert(self, node: ast.Assert) -> None:
        return

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            self._value(item.context_expr)
        self.run(node.body)

    def _try(self, node: ast.Try) -> None:
        self.run(node.body)
        ended, self._ended = self._ended, False
        for handler in node.handlers:
            before = dict(self._values), dict(self._environment)
            with self._under("an exception"):
                self.run(handler.body)
            self._values, self._environment = before
            self._ended = False
        self._ended = ended
        self.run(node.orelse)
        self.run(node.finalbody)

    def _if(self, node: ast.If) -> None:
        truth, condition = self._truth(node.test), ast.unparse(node.test)
        if condition.startswith("__name__ == "):
            truth = Truth(True)
        self._choose(truth, condition, lambda: self.run(node.body), lambda: self.run(node.orelse))

    def _choose(self, truth: Truth, condition: str, one: Callable[[], None], other: Callable[[], None]) -> None:
        if truth.holds is not None:
            taken, left = (one, other) if truth.holds else (other, one)
            if truth.by_default:
                before, self._by_default = self._by_default, True
                taken()
                self._by_default = before
                if self._ended:
                    self._ended = False
                    left()
            else:
                taken()
            return
        states, returned = [], list[dict[str, Value]]()
        begin = dict(self._values), dict(self._environment)
        for branch, under in ((one, condition), (other, f"not ({condition})")):
            self._values, self._environment = dict(begin[0]), dict(begin[1])
            with self._under(under):
                branch()
            if not self._ended:
                states.append((under, self._values, self._environment))
            elif self._left:
                returned.append(self._environment)
            self._ended = False
        if not states:
            self._ended, self._left = True, bool(returned)
            self._environment = self._of_either(condition, returned) if returned else self._environment
            return
        for environment in returned:
            self._returns(condition, environment)
        self._values = states[0][1]
        self._environment = states[0][2]
        if len(states) == 2:
            names = dict.fromkeys((*states[0][1], *states[1][1]))
            self._values = {name: _merged(name, [(u, values.get(name)) for u, values, _ in states]) for name in names}
            self._environment = self._of_either(condition, [environment for *_, environment in states])

    def _of_either(self, condition: str, environments: Sequence[dict[str, Value]]) -> dict[str, Value]:
        """Return what is known of the environment after branches of which one was taken."""
        result = environments[0]
        for other in environments[1:]:
            names = dict.fromkeys((*result, *other))
            result = {name: self._either(name, condition, result.get(name), other.get(name)) for name in names}
        return result

    @staticmethod
    def _either(name: str, condition: str, one: Value | None, other: Value | None) -> Value:
        """Return what is known of a variable of the environment, which has a condition if it can be without one."""
        if one and one == other:
            return one
        is_set = one and other and not one.condition and not other.condition
        return replace(unknown(f"{name}, under {condition}"), condition="" if is_set else condition)

    def _for(self, node: ast.For) -> None:
        values = self._value(node.iter)
        broken = any(isinstance(inner, ast.Break | ast.Continue) for inner in ast.walk(node))
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if name and isinstance(values, Many) and values.whole and len(values.items) <= _LONGEST and not broken:
            for value in values.items:

                def run(value: Value = value) -> None:
                    self._values[name] = replace(value, condition="")
                    self.run(node.body)

                if value.condition:
                    self._choose(UNKNOWN, value.condition, run, lambda: None)
                else:
                    run()
        else:
            for inner in ast.walk(node.target):
                if isinstance(inner, ast.Name):
                    self._values[inner.id] = unknown(inner.id)
            self._some_times(node.body, f"for {ast.unparse(node.target)}")
        self.run(node.orelse)

    def _while(self, node: ast.While) -> None:
        self._some_times(node.body, f"while {ast.unparse(node.test)}")

    def _some_times(self, body: Sequence[ast.stmt], condition: str) -> None:
        before, environment = dict(self._values), dict(self._environment)
        with self._under(condition):
            self.run(body)
        if self._ended and self._left:
            self._returns(condition, dict(self._environment))
        self._ended = False
        for name in (*environment, *self._environment):
            pair = environment.get(name), self._environment.get(name)
            if pair[0] != pair[1]:
                self._environment[name] = self._either(name, condition, *pair)
        for name, value in self._values.items():
            if before.get(name) != value:
                self._values[name] = unknown(f"{name}, in {condition}")

    def _assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value, node.lineno)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._bind(node.target, self._value(node.value), node.lineno)

    def _augassign(self, node: ast.AugAssign) -> None:
        value = self._value(node.value)
        if not isinstance(node.target, ast.Name):
            self._taken(value, node.lineno, "")
            if isinstance(node.target, ast.Subscript) and (name := self._environ_name(node.target)):
                self._environment[name] = unknown(name)
                self._reading(name, (unknown(name),), node.lineno, Kind.APPENDED)
            return
        name = node.target.id
        before = self._values.get(name)
        if not isinstance(node.op, ast.Add) or before is None:
            self._values[name] = unknown(name)
        elif isinstance(before, Many) and isinstance(value, Many):
            self._values[name] = Many((*before.items, *value.items), before.whole and value.whole)
        elif isinstance(before, Value) and isinstance(value, Value):
            self._values[name] = before + value
        else:
            self._values[name] = unknown(name)
        self._taken(value, node.lineno, name)

    def _bind(self, target: ast.expr, value: Value | Many, line: int) -> None:
        if isinstance(target, ast.Name):
            if self._by_default and isinstance(value, Value):
                value = replace(value, default=True)
            self._values[target.id] = value
            self._taken(value, line, target.id)
        elif isinstance(target, ast.Subscript):
            name = self._environ_name(target)
            if name:
                given = value if isinstance(value, Value) else unknown(ast.unparse(target))
                given = replace(given, default=True) if self._by_default else given
                self._environment[name] = given
                self._reading(name, (given,), line, Kind.DEFAULT if given.default else Kind.ASSIGNED)
            else:
                key = self._value(target.slice)
                if isinstance(key, Value) and key.known and list_name(key.text):
                    values = value.items if isinstance(value, Many) else (value,)
                    self._reading(key.text, values, line, Kind.ASSIGNED)
                else:
                    self._taken(value, line, "")
        elif isinstance(target, ast.Tuple | ast.List):
            many = isinstance(value, Many) and value.whole and len(value.items) == len(target.elts)
            for at, element in enumerate(target.elts):
                self._bind(
                    element,
                    self._at(value, at, element) if many and isinstance(value, Many) else unknown(ast.unparse(element)),
                    line,
                )
        else:
            self._taken(value, line, "")

    def _taken(self, value: Value | Many, line: int, name: str) -> None:
        """Note flags of a compiler or of CMake in a value that something is done with."""
        items = value.items if isinstance(value, Many) else (value,)
        if name and list_name(name) and any(item.known for item in items):
            self._reading(name, items, line, Kind.ASSIGNED)
            return
        words = [word for item in items for word in _of_text(item)]
        if not any(_FLAG.fullmatch(word.text) for word in words):
            return
        key = (line, self._condition, " ".join(word.text for word in words))
        self._flags.setdefault(key, Reading("words", tuple(words), line, condition=self._condition, group="words"))

    def _reading(self, name: str, values: Sequence[Value], line: int, kind: Kind) -> None:
        group = "words" if name == "words" else ""
        self.result.readings.append(Reading(name, tuple(values), line, kind, self._condition, group=group))

    # --- functions

    def _function(self, name: str, arguments: list[Value | Many], condition: str) -> None:
        self._read.add(name)
        node = self._functions[name]
        if self._depth > 6:
            return
        before, ended, environment = dict(self._values), self._ended, dict(self._environment)
        caller = self._branch, self._returned, self._rest
        self._branch, self._returned, self._rest = self._condition, [], ""
        self._ended = False
        names = [argument.arg for argument in node.args.args]
        defaults = dict(zip(names[len(names) - len(node.args.defaults) :], node.args.defaults, strict=True))
        for at, one in enumerate(names):
            default = self._value(defaults[one]) if one in defaults else unknown(one)
            self._values[one] = arguments[at] if at < len(arguments) else default
        for other in (*node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if other is not None:
                self._values[other.arg] = unknown(other.arg)
        self._depth += 1
        with self._under(condition):
            self.run(node.body)
        self._depth -= 1
        if self._returned:
            self._environment = self._of_either(f"{name} returns", [*self._returned, self._environment])
        self._values, self._ended = before, ended
        self._branch, self._returned, self._rest = caller
        if condition:
            self._environment = environment
        for statement in ast.walk(node):
            if isinstance(statement, ast.Global):
                for one in statement.names:
                    self._values[one] = unknown(one)

    # --- expressions

    def _value(self, node: ast.expr) -> Value | Many:
        """Return what is known of an expression, and note what it sets."""
        run = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if run:
            return run(node)  # type: ignore[no-any-return]
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                self._value(inner)
        return unknown(ast.unparse(node))

    def _text(self, node: ast.expr) -> Value:
        value = self._value(node)
        return value if isinstance(value, Value) else unknown(ast.unparse(node))

    def _of_constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, str | int | float) and not isinstance(node.value, bool):
            return Value(str(node.value))
        return Value(str(node.value), "" if node.value is not None else "None")

    def _of_name(self, node: ast.Name) -> Value | Many:
        return self._values.get(node.id, unknown(node.id))

    def _of_attribute(self, node: ast.Attribute) -> Value | Many:
        return (
            self._values.get(node.attr, unknown(ast.unparse(node)))
            if ast.unparse(node.value) in ("self", "cls")
            else unknown(ast.unparse(node))
        )

    def _of_joinedstr(self, node: ast.JoinedStr) -> Value:
        result = Value("")
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                inner = self._text(part.value)
                result += (
                    inner
                    if part.format_spec is None and part.conversion in (-1, 115)
                    else unknown(ast.unparse(part.value))
                )
            else:
                result += self._text(part)
        return result

    def _of_binop(self, node: ast.BinOp) -> Value | Many:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Add):
            if isinstance(left, Value) and isinstance(right, Value):
                return left + right
            if isinstance(left, Many) and isinstance(right, Many):
                return Many((*left.items, *right.items), left.whole and right.whole)
        if isinstance(node.op, ast.Mod) and isinstance(left, Value) and left.known is not None:
            given = right.items if isinstance(right, Many) else (right,)
            if left.text.count("%s") == len(given) and "%" not in left.text.replace("%s", ""):
                parts = left.text.split("%s")
                result = Value(parts[0])
                for value, part in zip(given, parts[1:], strict=True):
                    result += value + Value(part)
                return result
        if isinstance(left, Many) or isinstance(right, Many):
            items = tuple(item for one in (left, right) if isinstance(one, Many) for item in one.items)
            return Many(items, whole=False)
        return unknown(ast.unparse(node))

    def _of_list(self, node: ast.List | ast.Tuple | ast.Set) -> Many:
        items, whole = list[Value](), True
        for element in node.elts:
            inner = self._value(element.value if isinstance(element, ast.Starred) else element)
            if isinstance(inner, Many):
                items += inner.items
                whole = whole and inner.whole and isinstance(element, ast.Starred)
            elif isinstance(element, ast.Starred):
                whole = False
            else:
                items.append(inner)
        return Many(tuple(items), whole)

    _of_tuple = _of_list
    _of_set = _of_list

    def _of_dict(self, node: ast.Dict) -> Value:
        for key, given in zip(node.keys, node.values, strict=True):
            value = self._value(given)
            name = self._text(key).known if key is not None else None
            values = value.items if isinstance(value, Many) else (value,)
            if name and list_name(name):
                self._reading(name, values, given.lineno, Kind.ASSIGNED)
            else:
                self._taken(value, given.lineno, "")
        return unknown("a dictionary")

    def _of_ifexp(self, node: ast.IfExp) -> Value | Many:
        truth = self._truth(node.test)
        found = list[Value | Many]()
        condition = ast.unparse(node.test)
        for inner, under, is_taken in (
            (node.body, condition, truth.holds is not False),
            (node.orelse, f"not ({condition})", truth.holds is not True),
        ):
            if is_taken:
                with self._under("" if truth.holds is not None else under):
                    found.append(self._value(inner))
        if len(found) == 1:
            one = found[0]
            return replace(one, default=True) if truth.by_default and isinstance(one, Value) else one
        return _merged("", [(condition, found[0]), (f"not ({condition})", found[1])])

    def _of_boolop(self, node: ast.BoolOp) -> Value | Many:
        values = [self._value(inner) for inner in node.values]
        first = values[0]
        if isinstance(node.op, ast.Or) and isinstance(first, Value) and first.default and not first.text:
            last = values[-1]
            return replace(last, default=True) if isinstance(last, Value) else last
        return unknown(ast.unparse(node))

    def _of_compare(self, node: ast.Compare) -> Value:
        return unknown(ast.unparse(node))

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Many | Value:
        (generator, *others) = node.generators
        values = self._value(generator.iter)
        if others or not isinstance(generator.target, ast.Name) or not isinstance(values, Many) or generator.ifs:
            return Many((), whole=False)
        before, items = self._values.get(generator.target.id), list[Value]()
        for value in values.items[:_LONGEST]:
            self._values[generator.target.id] = value
            items.append(self._text(node.elt))
        self._values.pop(generator.target.id, None)
        if before is not None:
            self._values[generator.target.id] = before
        return Many(tuple(items), values.whole)

    _of_generatorexp = _of_listcomp
    _of_setcomp = _of_listcomp

    def _of_subscript(self, node: ast.Subscript) -> Value | Many:
        if name := self._environ_name(node):
            return self._from_environment(name, None)
        inner = self._value(node.value)
        at = node.slice
        if (
            isinstance(inner, Many)
            and inner.whole
            and isinstance(at, ast.Constant)
            and isinstance(at.value, int)
            and -len(inner.items) <= at.value < len(inner.items)
        ):
            return self._at(inner, at.value, node)
        return unknown(ast.unparse(node))

    def _at(self, many: Many, at: int, node: ast.expr) -> Value:
        """Return an element of a list; it is not known which it is if it is not known what the list has."""
        is_open = not many.whole or any(item.condition for item in many.items)
        return unknown(ast.unparse(node)) if is_open else many.items[at]

    def _of_lambda(self, node: ast.Lambda) -> Value:
        return unknown("a function")

    def _environ_name(self, node: ast.Subscript) -> str:
        """Return the variable of ``os.environ["NAME"]``, or of a dictionary that is an environment by its name."""
        owner = ast.unparse(node.value)
        key = self._value(node.slice) if isinstance(node.slice, ast.Constant | ast.Name) else None
        is_environment = bool(re.fullmatch(r"(?:os\.)?environ|\w*env\w*", owner))
        return key.text if is_environment and isinstance(key, Value) and key.known else ""

    def _from_environment(self, name: str, default: Value | Many | None) -> Value | Many:
        self.result.used.add(name)
        if name in self._environment:
            return self._environment[name]
        if isinstance(default, Value):
            return replace(default, default=True)
        return default if default is not None else Value("", f"${name}", default=True)

    def _of_call(self, node: ast.Call) -> Value | Many:
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
        if name in _SAYS and owner != "self.run":
            return unknown(ast.unparse(node))
        arguments = [self._value(one.value if isinstance(one, ast.Starred) else one) for one in node.args]
        first = arguments[0] if arguments else None
        if owner.endswith("environ") or name in ("getenv", "env_var"):
            key = first.known if isinstance(first, Value) else None
            if key and name in ("get", "getenv", "env_var"):
                return self._from_environment(key, arguments[1] if len(arguments) > 1 else None)
            if key and name == "setdefault" and len(arguments) > 1 and isinstance(arguments[1], Value):
                value = self._environment.setdefault(key, replace(arguments[1], default=True))
                if value.condition:  # it can be set, and is so from here on
                    value = self._environment[key] = unknown(ast.unparse(node))
                self._reading(key, (value,), node.lineno, Kind.DEFAULT)
                return value
            if key and name == "pop":
                self._environment.pop(key, None)
                return unknown(ast.unparse(node))
        for keyword in node.keywords:
            given = self._value(keyword.value)
            values = given.items if isinstance(given, Many) else (given,)
            if keyword.arg and list_name(keyword.arg):
                self._reading(keyword.arg, values, node.lineno, Kind.PASSED)
            elif name not in ("get", "format"):
                self._taken(given, node.lineno, "")
        if isinstance(function, ast.Attribute):
            changed = self._of_method(node, function, name, arguments)
            if changed is not None:
                return changed
        if name in ("str", "list", "tuple", "sorted", "set") and len(arguments) == 1 and first is not None:
            return first if name == "str" or isinstance(first, Many) else unknown(ast.unparse(node))
        if name in self._functions and isinstance(function, ast.Name):
            self._function(name, arguments, "")
            return unknown(ast.unparse(node))
        if name in _RUNS and isinstance(first, Many):
            words = first.items
            program = words[0].text.rpartition("/")[2] if words else ""
            self._reading("words", words, node.lineno, Kind.PASSED) if program in ("nvcc", "cmake") else self._taken(
                first, node.lineno, ""
            )
            return unknown(ast.unparse(node))
        for at, argument in enumerate(arguments):
            if not (name == "variant" and at == 0):
                self._taken(argument, node.lineno, "")
        if (
            len(arguments) == 2
            and isinstance(first, Value)
            and first.known
            and list_name(first.text)
            and isinstance(arguments[1], Value)
        ):
            self._reading(first.text, (arguments[1],), node.lineno, Kind.PASSED)
        texts = [value for value in arguments if isinstance(value, Value)]
        for value in texts:
            if value.known and (found := re.search(r"\bcuda_arch=([\w,:]+)", value.text)):
                self._reading("cuda_arch", (replace(value, text=found[1]),), node.lineno, Kind.PASSED)
        return unknown(ast.unparse(node))

    def _of_method(
        self, node: ast.Call, function: ast.Attribute, name: str, arguments: list[Value | Many]
    ) -> Value | Many | None:
        """Return what a method of a text or a list returns, and change the list; None if it is of neither."""
        base = (
            self._value(function.value)
            if not isinstance(function.value, ast.Name) or function.value.id in self._values
            else None
        )
        first = arguments[0] if arguments else None
        if name in ("append", "extend", "insert") and arguments:
            given = arguments[-1]
            items = given.items if isinstance(given, Many) else (given,)
            self._taken(given, node.lineno, "")
            if isinstance(function.value, ast.Name):
                key = function.value.id
                before = self._values.get(key)
                if (
                    isinstance(before, Many)
                    and name != "insert"
                    and isinstance(given, Value if name == "append" else Many)
                ):
                    whole = before.whole and (not isinstance(given, Many) or given.whole)
                    self._values[key] = Many((*before.items, *items), whole)
                else:
                    self._values[key] = unknown(key)
            return unknown("None")
        if (
            name in ("remove", "pop", "clear", "sort", "reverse", "discard", "update", "add")
            and isinstance(function.value, ast.Name)
            and isinstance(base, Many)
        ):
            self._values[function.value.id] = Many(base.items, whole=False)
            return unknown(ast.unparse(node))
        if name == "join" and isinstance(base, Value) and isinstance(first, Many):
            return (
                joined(first.items, base.text)
                if base.known is not None and first.whole and not any(item.condition for item in first.items)
                else unknown(ast.unparse(node))
            )
        pair = [one.text for one in arguments[:2] if isinstance(one, Value) and one.known is not None]
        if len(pair) == 2 and (name == "replace" or (name in ("sub", "subn") and ast.unparse(function.value) == "re")):
            is_text = isinstance(base, Value) and base.known is not None
            self.result.rewrites += [] if is_text else [Rewrite(node.lineno, *pair)]
        if not isinstance(base, Value) or base.known is None:
            return None
        if name == "split" and (not arguments or (isinstance(first, Value) and first.known)):
            parts = base.text.split(first.text if isinstance(first, Value) else None)
            return Many(tuple(replace(base, text=part) for part in parts))
        if name in ("strip", "lower", "upper") and not arguments:
            return replace(base, text=getattr(base.text, name)())
        if (
            name == "replace"
            and len(arguments) == 2
            and all(isinstance(one, Value) and one.known is not None for one in arguments)
        ):
            old, new = (one.text for one in arguments if isinstance(one, Value))
            return replace(base, text=base.text.replace(old, new))
        if name == "format" and all(isinstance(one, Value) for one in arguments) and not node.keywords:
            values = iter(arguments)
            parts = base.text.split("{}")
            if len(parts) == len(arguments) + 1 and "{" not in "".join(parts):
                result = Value(parts[0])
                for part in parts[1:]:
                    inner = next(values)
                    assert isinstance(inner, Value)
                    result += inner + Value(part)
                return result
        return None

    # --- conditions

    def _truth(self, node: ast.expr) -> Truth:
        if isinstance(node, ast.BoolOp):
            truths = [self._truth(one) for one in node.values]
            return all_of(truths) if isinstance(node.op, ast.And) else any_of(truths)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._truth(node.operand)
        if isinstance(node, ast.Constant):
            return Truth(bool(node.value))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node.left, node.ops[0], node.comparators[0])
        if isinstance(node, ast.Compare | ast.Call) and not _reads_environment(node):
            return UNKNOWN
        value = self._value(node)
        if isinstance(value, Many):
            if any(not item.condition for item in value.items):
                return Truth(True)
            return Truth(False) if value.whole and not value.items else UNKNOWN
        if value.unknown:
            return Truth(False, by_default=True) if value.default and not value.text else UNKNOWN
        return (
            Truth(value.text not in ("", "0", "False"), value.default)
            if isinstance(node, ast.Name | ast.Call)
            else UNKNOWN
        )

    def _compared(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Truth:
        if isinstance(sign, ast.In | ast.NotIn):
            name = self._text(left).known
            if name is not None and ast.unparse(right) == "os.environ":
                self.result.used.add(name)
                if name in self._environment and self._environment[name].condition:
                    return UNKNOWN
                truth = Truth(True) if name in self._environment else Truth(False, by_default=True)
                return truth if isinstance(sign, ast.In) else ~truth
            return UNKNOWN
        if isinstance(sign, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            value = self._value(left)
            if isinstance(value, Value) and value.unknown.startswith("$") and value.default:
                truth = Truth(True, by_default=True)
                return truth if isinstance(sign, ast.Is) else ~truth
            if isinstance(value, Value) and (value.unknown or value.condition):
                return UNKNOWN
            truth = Truth(False, isinstance(value, Value) and value.default)
            return truth if isinstance(sign, ast.Is) else ~truth
        how = _COMPARES.get(type(sign))
        if how is None:
            return UNKNOWN
        for one, other, said in ((left, right, how), (right, left, MIRRORED[how])):
            words = ast.unparse(one)
            release = _release(other)
            if release and is_release(words) and self._is_open(one):
                return compared(self._cuda, said, release)
        one, other = self._value(left), self._value(right)  # type: ignore[assignment]
        if (
            isinstance(one, Value)
            and isinstance(other, Value)
            and how in ("==", "!=")
            and one.known is not None
            and other.known is not None
        ):
            return Truth((one.text == other.text) is (how == "=="), one.default or other.default)
        return UNKNOWN

    def _is_open(self, node: ast.expr) -> bool:
        value = self._value(node)
        return isinstance(value, Many) or bool(value.unknown)


def _release(node: ast.expr) -> str:
    """Return the release of ``"12.8"``, ``Version("12.8")``, ``parse("12.8")``, ``(12, 8)``, ``12.8`` or ``12080``."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _release(node.args[0])
    if isinstance(node, ast.Constant) and re.fullmatch(r"1\d(?:\.\d+)*|1\d\d\d0", str(node.value)):
        return str(node.value)
    if isinstance(node, ast.Tuple | ast.List) and all(isinstance(one, ast.Constant) for one in node.elts):
        text = ".".join(str(one.value) for one in node.elts if isinstance(one, ast.Constant))
        return text if re.fullmatch(r"1\d(?:\.\d+)*", text) else ""
    return ""


def _reads_environment(node: ast.expr) -> bool:
    return bool(re.search(r"environ|getenv|\.get\(", ast.unparse(node)))


def _of_text(value: Value) -> list[Value]:
    """Return the words of a text that is one of a command's or has several of them."""
    if not value.text.startswith(("-", "arch=compute_")) or " " not in value.text.strip():
        return [value]
    return [replace(value, text=part) for part in value.text.split()]


def _merged(name: str, states: Sequence[tuple[str, Value | Many | None]]) -> Value | Many:
    """Return what is known of a value after branches: of a list each element, with the condition of its branch."""
    values = [value for _, value in states]
    if all(value == values[0] for value in values) and values[0] is not None:
        return values[0]
    if all(isinstance(value, Many) for value in values):
        many = [(under, value) for under, value in states if isinstance(value, Many)]
        items = elements_of(*((under, one.items) for under, one in many))
        return Many(items, all(one.whole for _, one in many))
    return unknown(f"{name or 'it'}, under {states[0][0]}")
