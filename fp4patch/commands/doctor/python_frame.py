"""One call of a function of a tree's Python: its statements and expressions, evaluated and not run."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence, ValuesView
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fp4patch.commands.doctor.python_values import (
    LOCAL,
    UNKNOWN,
    Class,
    Function,
    Instance,
    Local,
    Module,
    NotKnown,
    Raised,
    Unknown,
    bound_by,
    opaque,
    plain_data,
    truth_of,
    undecorated,
)

if TYPE_CHECKING:
    from fp4patch.commands.doctor.python_text import Evaluation

LONGEST = 10_000
"""Elements or characters of a value."""

_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"split", "strip", "isalpha", "isdigit", "startswith", "endswith", "lower", "upper"}),
    set: frozenset({"add"}),
    list: frozenset({"append"}),
    dict: frozenset({"get", "keys", "values", "items"}),
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_CHANGEABLE = (list, set, dict, Instance, Local)
_SEQUENCES = (str, list, tuple, set, dict, range)
_MADE: Mapping[type[ast.expr], Callable[[list[Any]], Any]] = {ast.Tuple: tuple, ast.Set: set}


class Return(Exception):  # noqa: N818 - a way out
    """``return``, with what the call gives."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Leave(Exception):  # noqa: N818 - a way out
    """``break`` and ``continue``."""

    def __init__(self, kind: type[ast.stmt]) -> None:
        self.kind = kind


class Frame:
    """One call's names, and the statements and expressions that are evaluated in it."""

    def __init__(self, evaluation: Evaluation, module: Module, names: dict[str, Any], depth: int) -> None:
        self._evaluation = evaluation
        self._module = module
        self._names = names
        self._depth = depth

    def lost(self, node: ast.AST, why: str) -> NotKnown:
        """To be raised: where it ends, and why."""
        return NotKnown(f"{self._module.path}:{getattr(node, 'lineno', 0)}: {why}")

    # Statements.

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Statement by statement. Return, Raised, or NotKnown."""
        for statement in body:
            self._evaluation.step(self, statement)
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:  # noqa: PLR0912 - a branch a kind of statement
        match statement:
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self._bind(target, result)
            case ast.AnnAssign(target=target, value=declared):
                if declared:
                    self._bind(target, self.value(declared))
            case ast.AugAssign(target=target, op=ast.Add(), value=value):
                self._add_to(target, value)
            case ast.If(test=test, body=body, orelse=otherwise):
                self.run(body if self._decides(test) else otherwise)
            case ast.For():
                self._loop(statement)
            case ast.Try(finalbody=[]):
                self._try(statement)
            case ast.Raise():
                raise self._raised(statement)
            case ast.Return(value=value):
                raise Return(self.value(value) if value else None)
            case ast.With(items=items, body=body):
                for item in items:
                    self.value(item.context_expr)
                    if item.optional_vars:
                        self._bind(item.optional_vars, UNKNOWN)
                try:
                    self.run(body)
                except Raised as raised:
                    raise self.lost(statement, f"what becomes of {raised} is not known") from None
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self._names[name] = self._evaluation.imported(self._module, statement, name, self._depth)
            case ast.FunctionDef() | ast.ClassDef():
                self._names[statement.name] = LOCAL
            case ast.Break() | ast.Continue():
                raise _Leave(type(statement))
            case ast.Pass():
                pass
            case _:
                raise self.lost(statement, f"what `{_shown(statement)}` does is not known")

    def _bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self._names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = [UNKNOWN] * len(parts) if value is UNKNOWN else self._each(target, value)
                if len(values) != len(parts):
                    raise Raised("ValueError", f"{len(values)} values where {len(parts)} are expected")
                for part, one in zip(parts, values, strict=True):
                    self._bind(part, one)
            case ast.Attribute(value=base, attr=name) if isinstance(owner := self.value(base), Instance):
                owner.attributes[name] = value
            case _:
                raise self.lost(target, f"what setting `{_shown(target)}` changes is not known")

    def _add_to(self, target: ast.expr, value: ast.expr) -> None:
        old, more = self.value(target), self.value(value)
        if isinstance(old, list):
            old.extend(self._each(value, more))
        else:
            self._bind(target, self._added(target, old, more))

    def _loop(self, statement: ast.For) -> None:
        for value in self._each(statement.iter, self.value(statement.iter)):
            self._bind(statement.target, value)
            try:
                self.run(statement.body)
            except _Leave as leave:
                if leave.kind is ast.Break:
                    return
        self.run(statement.orelse)

    def _try(self, statement: ast.Try) -> None:
        try:
            self.run(statement.body)
        except Raised as raised:
            for handler in statement.handlers:
                if _catches(handler.type, raised.kind):
                    if handler.name:
                        self._names[handler.name] = UNKNOWN
                    self.run(handler.body)
                    return
            raise
        self.run(statement.orelse)

    def _raised(self, statement: ast.Raise) -> Exception:
        match statement.exc:
            case ast.Call(func=ast.Name(id=kind), args=arguments):
                return Raised(kind, " ".join(self._said(argument) for argument in arguments))
            case ast.Name(id=kind):
                return Raised(kind, "")
            case _:
                return self.lost(statement, f"what `{_shown(statement)}` raises is not known")

    def _said(self, message: ast.expr) -> str:
        """Return a message as far as it is known."""
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        return "".join(value if isinstance(value := self.value(part), str) else "…" for part in parts)

    # Expressions.

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0911, PLR0912 - a branch a kind of expression
        """Return the value of an expression, or UNKNOWN."""
        self._evaluation.step(self, node)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._names[name] if name in self._names else self._of_module(name)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(self.value(base), name)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._added(node, self.value(left), self.value(right))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._repeated(node, self.value(left), self.value(right))
            case ast.BinOp(left=left, right=right):
                self.value(left)
                self.value(right)
                return UNKNOWN
            case ast.BoolOp():
                return self._junction(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = truth_of(self.value(operand))
                return UNKNOWN if truth is None else not truth
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return -value
            case ast.Compare():
                return self._compared(node)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.value(body if self._decides(test) else otherwise)
            case ast.Subscript(value=base, slice=index):
                return self._item(node, self.value(base), self.value(index))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._display(node, parts)
            case ast.Dict(keys=keys, values=values) if all(keys):
                pairs = [(self.value(key), self.value(value)) for key, value in zip(keys, values, strict=True) if key]
                return self._python(node, dict, pairs)
            case ast.JoinedStr(values=parts):
                said = [self.value(part) for part in parts]
                return UNKNOWN if UNKNOWN in said else "".join(said)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                shown = self.value(value)
                return str(shown) if plain_data(shown) else UNKNOWN
            case ast.ListComp(elt=element, generators=[each]) | ast.GeneratorExp(elt=element, generators=[each]):
                return self._comprehension(element, each)
            case ast.Lambda():
                return LOCAL
            case ast.FormattedValue() | ast.Slice() | ast.DictComp() | ast.SetComp():
                return UNKNOWN
            case _:
                raise self.lost(node, f"what `{_shown(node)}` is, is not known")

    def _of_module(self, name: str) -> Any:
        return self._evaluation.of_module(self._module, name, self._depth)

    def _attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, Instance):
            return base.attributes[name] if name in base.attributes else self._of_class(base, name)
        if isinstance(base, SimpleNamespace):
            return getattr(base, name, UNKNOWN)
        if type(base) in _METHODS and name in _METHODS[type(base)]:
            return getattr(base, name)
        return UNKNOWN

    def _of_class(self, instance: Instance, name: str) -> Any:
        for statement in instance.of.node.body:
            if name in bound_by(statement):
                if isinstance(statement, ast.FunctionDef):
                    return Function(statement, instance.of.module, instance) if undecorated(statement) else UNKNOWN
                if isinstance(statement, ast.Assign):
                    return Frame(self._evaluation, instance.of.module, {}, self._depth).value(statement.value)
        return UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        owner = None
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            function = self._attribute(owner, node.func.attr)
        else:
            function = self.value(node.func)
        arguments = [self.value(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        named = {k.arg or "**": self.value(k.value) for k in node.keywords}
        handed = [*arguments, *named.values()]
        starred = "**" in named or any(isinstance(a, ast.Starred) for a in node.args)
        if isinstance(function, Class | Function) and not starred:
            return self._follow(function, arguments, named)
        if isinstance(function, Unknown) or starred:
            if any(isinstance(value, _CHANGEABLE) for value in (function, owner, *handed)):
                raise self.lost(node, f"what `{_shown(node.func)}` does to what it is handed is not known")
            return UNKNOWN
        if function in self._evaluation.world.functions.values() or _holds(function):
            return self._python(node, function, *arguments, **named)
        if opaque(handed) or opaque(getattr(function, "__self__", None)):
            return UNKNOWN
        return self._python(node, function, *arguments, **named)

    def _follow(self, function: Class | Function, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        try:
            if isinstance(function, Function):
                return self._evaluation.call(function, arguments, named, self._depth)
            made = Instance(function)
            start = self._of_class(made, "__init__")
            if isinstance(start, Function):
                self._evaluation.call(start, arguments, named, self._depth)
        except NotKnown:
            # What it could not have changed, it has not; what it gives is not known.
            changes = (
                isinstance(function, Class)
                or function.instance is not None
                or any(isinstance(below, ast.Global) for below in ast.walk(function.node))
                or any(isinstance(value, _CHANGEABLE) for value in (*arguments, *named.values()))
            )
            if changes:
                raise
            return UNKNOWN
        return made

    def _junction(self, node: ast.BoolOp) -> Any:
        """Return ``and``, ``or``: an operand that decides does so whatever an unknown one before it is."""
        decides = isinstance(node.op, ast.Or)
        unknown, value = False, None
        for operand in node.values:
            value = self.value(operand)
            truth = truth_of(value)
            if truth is decides:
                return decides if unknown else value
            unknown |= truth is None
        return UNKNOWN if unknown else value

    def _compared(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand)
            if opaque(left) or opaque(right):
                return UNKNOWN
            if not self._python(node, _COMPARED[type(op)], left, right):
                return False
            left = right
        return True

    def _decides(self, test: ast.expr) -> bool:
        truth = truth_of(self.value(test))
        if truth is None:
            raise self.lost(test, f"`{_shown(test)}` decides, and is not known")
        return truth

    def _display(self, node: ast.Tuple | ast.List | ast.Set, parts: Sequence[ast.expr]) -> Any:
        values: list[Any] = []
        for part in parts:
            value = self.value(part.value if isinstance(part, ast.Starred) else part)
            if isinstance(part, ast.Starred):
                if value is UNKNOWN:
                    return UNKNOWN
                values += self._each(part, value)
            else:
                values.append(value)
        return values if isinstance(node, ast.List) else self._python(node, _MADE[type(node)], values)

    def _comprehension(self, element: ast.expr, each: ast.comprehension) -> Any:
        over = self.value(each.iter)
        if over is UNKNOWN:
            return UNKNOWN
        inner = Frame(self._evaluation, self._module, dict(self._names), self._depth)
        made = []
        for value in self._each(each.iter, over):
            inner._bind(each.target, value)
            if all(inner._decides(test) for test in each.ifs):
                made.append(inner.value(element))
        return made

    def _each(self, node: ast.AST, values: Any) -> list[Any]:
        if not isinstance(values, _SEQUENCES):
            raise self.lost(node, f"what is in `{_shown(node)}` is not known")
        return list(values)

    def _item(self, node: ast.AST, base: Any, index: Any) -> Any:
        known = isinstance(base, str | list | tuple) or (isinstance(base, dict) and not opaque(list(base)))
        return self._python(node, operator.getitem, base, index) if known and not opaque(index) else UNKNOWN

    def _added(self, node: ast.AST, left: Any, right: Any) -> Any:
        known = isinstance(left, str | int | list | tuple) and isinstance(right, str | int | list | tuple)
        return self._python(node, operator.add, left, right) if known else UNKNOWN

    def _repeated(self, node: ast.AST, left: Any, right: Any) -> Any:
        if not (isinstance(left, str) and isinstance(right, int) and right * len(left) <= LONGEST):
            return UNKNOWN
        return self._python(node, operator.mul, left, right)

    def _python(self, node: ast.AST, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return an operation on known values; its exception is the tree's own."""
        try:
            result = function(*arguments, **named)
            if isinstance(result, KeysView | ValuesView | ItemsView):
                result = list(result)
            long = isinstance(result, _SEQUENCES) and len(result) > LONGEST
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Raised(type(error).__name__, str(error)) from None
        if long:
            raise self.lost(node, f"`{_shown(node)}` is longer than {LONGEST:,}")
        return result


def _catches(handler: ast.expr | None, raised: str) -> bool:
    kinds = handler.elts if isinstance(handler, ast.Tuple) else [handler]
    return any(kind is None or _is_a(raised, ast.unparse(kind)) for kind in kinds)


def _is_a(raised: str, kind: str) -> bool:
    one, other = getattr(builtins, raised, Exception), getattr(builtins, kind, None)
    return raised == kind or (isinstance(one, type) and isinstance(other, type) and issubclass(one, other))


def _holds(function: Callable[..., Any]) -> bool:
    """Return whether it puts one value, known or not, into a collection."""
    return getattr(function, "__name__", "") in ("append", "add") and isinstance(
        getattr(function, "__self__", None), list | set
    )


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 60 else f"{text[:57]}..."
