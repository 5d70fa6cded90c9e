"""Expressions of C++ as Python's ``ast`` has them, without types: as far as a condition needs them.

A statement is read as the expressions in it, one after the other: ``auto x = a == 12 ? b : c;`` is ``auto``, ``x`` and
a conditional one. What is no expression is passed over, so that any text is read. A template with its arguments is a
call, braces are a set, and so ``f<120>(x)`` and ``T{12, 0}`` are calls of calls and of ``T`` with a set.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from fp4patch.cxx.literals import number, string
from fp4patch.cxx.tokens import Kind, Source
from fp4patch.edits.gpu_condition import is_subject

_BINARY: Sequence[frozenset[str]] = (
    frozenset(("||", "or")),
    frozenset(("&&", "and")),
    frozenset(("|", "bitor")),
    frozenset(("^", "xor")),
    frozenset(("&", "bitand")),
    frozenset(("==", "!=", "not_eq")),
    frozenset(("<", ">", "<=", ">=")),
    frozenset(("<<", ">>")),
    frozenset(("+", "-")),
    frozenset(("*", "/", "%")),
)
_COMPARES: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "not_eq": ast.NotEq,
    "<": ast.Lt,
    ">": ast.Gt,
    "<=": ast.LtE,
    ">=": ast.GtE,
}
_COUNTS: dict[str, type[ast.operator]] = {
    "|": ast.BitOr,
    "bitor": ast.BitOr,
    "^": ast.BitXor,
    "xor": ast.BitXor,
    "&": ast.BitAnd,
    "bitand": ast.BitAnd,
    "<<": ast.LShift,
    ">>": ast.RShift,
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.FloorDiv,
    "%": ast.Mod,
}
_SIGNS: dict[str, type[ast.unaryop]] = {"!": ast.Not, "not": ast.Not, "-": ast.USub, "+": ast.UAdd, "~": ast.Invert}
_LONG = frozenset(
    ("||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "->", "::", "+=", "-=", "*=", "/=", "|=", "&=", "%=")
)
_OPERATORS = frozenset(("=", "or", "and", "bitor", "bitand", "xor", "not_eq", "not", "?", ":", ";", ","))
_LOGICAL = frozenset(("&&", "||", "and", "or"))
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_ALONE = frozenset(
    ("return", "else", "case", "throw", "co_return", "typename", "const", "constexpr", "auto", "static", "new")
)
"""Words that begin no expression of their own."""
_DEEPEST = 150


@dataclass
class _Item:
    """A token, or two of punctuation that are one."""

    text: str
    at: int
    kind: Kind
    line: int


class Expressions:
    """The expressions in some tokens of a source. ``declares``: they begin a declaration, and compare nothing."""

    def __init__(self, source: Source, tokens: Sequence[int], *, declares: bool = False) -> None:
        self.declares = declares
        self.items: list[_Item] = []
        for at in tokens:
            token = source.token(at)
            last = self.items[-1] if self.items else None
            if (
                last
                and last.kind is token.kind is Kind.MARK
                and source.ends[last.at] == token.start
                and last.text + token.text in _LONG
            ):
                last.text += token.text
                last.at = at
            else:
                self.items.append(_Item(token.text, at, token.kind, token.line))
        self.at = 0
        self.depth = 0

    def all(self) -> list[ast.expr]:
        """Return all of them, in their order."""
        found: list[ast.expr] = []
        while self.at < len(self.items):
            found += self.several("")
            self.at += 1
        return found

    def several(self, closing: str) -> list[ast.expr]:
        """Return the expressions up to a closing mark, or all."""
        found: list[ast.expr] = []
        while self.at < len(self.items) and self._text != closing:
            before = self.at
            if found and self._assigns(found[-1]):
                found[-1] = self._assignment(found[-1])
                continue
            if self._text in _OPERATORS or self._text in (")", "]", "}", "=", ";"):
                if not closing and self._text in (")", "]", "}"):
                    return found
                if self._text in (")", "]", "}"):
                    break
                self.at += 1
                continue
            expression = self.ternary()
            if expression is not None:
                found.append(expression)
            if self.at == before:
                self.at += 1
        return found

    @property
    def _text(self) -> str:
        return self.items[self.at].text if self.at < len(self.items) else ""

    @property
    def _line(self) -> int:
        return self.items[min(self.at, len(self.items) - 1)].line

    def _place(self, node: ast.expr, line: int) -> ast.expr:
        node.lineno, node.col_offset = line, 0
        return node

    def _assigns(self, target: ast.expr) -> bool:
        """Tell whether a name is given a value here, right behind it."""
        is_name = isinstance(target, ast.Name | ast.Attribute) and self.items[self.at - 1].kind is Kind.NAME
        return is_name and (self._text == "=" or (self._text[:-1] in _COUNTS and self._text[-1:] == "="))

    def _assignment(self, target: ast.expr) -> ast.expr:
        operator, line = self._text[:-1], self._line
        self.at += 1
        value = self.ternary() or ast.Name("nothing")
        made = _combined(operator, target, value) if operator else value
        stored = ast.Name(target.id, ast.Store()) if isinstance(target, ast.Name) else target
        return self._place(ast.NamedExpr(stored, made), line)  # type: ignore[arg-type]

    def ternary(self) -> ast.expr | None:
        """Return the expression that begins here; None if none does."""
        line = self._line
        test = self._binary(0)
        if test is None or self._text != "?":
            return test
        self.at += 1
        body = self.ternary()
        other = None
        if self._text == ":":
            self.at += 1
            other = self.ternary()
        nothing = ast.Constant(None)
        return self._place(ast.IfExp(test, body or nothing, other or nothing), line)

    def _binary(self, level: int) -> ast.expr | None:
        if level == len(_BINARY):
            return self._unary()
        line = self._line
        left = self._binary(level + 1)
        while left is not None and self._text in _BINARY[level]:
            operator = self._text
            if self.at + 1 >= len(self.items) or self.items[self.at + 1].text in (")", ",", ";", "=", "}", ">"):
                return left  # of a type: T* p, T&& x
            self.at += 1
            right = self._binary(level + 1)
            if right is None:
                return left
            left = self._place(_combined(operator, left, right), left.lineno or line)
        return left

    def _unary(self) -> ast.expr | None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise RecursionError("parentheses deeper than any program has them")
        try:
            line, text = self._line, self._text
            if text in _SIGNS or text in ("*", "&", "&&"):
                self.at += 1
                operand = self._unary()
                sign = _SIGNS.get(text)
                return self._place(ast.UnaryOp(sign(), operand), line) if sign and operand is not None else operand
            return self._primary()
        finally:
            self.depth -= 1

    def _primary(self) -> ast.expr | None:  # noqa: PLR0911 - a case a line
        if self.at >= len(self.items):
            return None
        item = self.items[self.at]
        line = item.line
        if item.kind is Kind.STRING:
            words = []
            while self.at < len(self.items) and self.items[self.at].kind is Kind.STRING:
                words.append(self._text)
                self.at += 1
            return self.behind(self._place(ast.Constant(string(words)), line))
        if item.kind in (Kind.NUMBER, Kind.CHAR):
            self.at += 1
            value = number(item.text) if item.kind is Kind.NUMBER else None
            return self._place(ast.Constant(value) if value is not None else ast.Name(item.text), line)
        if item.text in _CLOSES:
            inner = self._group()
            if item.text == "{":
                return self.behind(self._place(ast.Set(inner), line))
            if item.text == "[":
                return self._place(ast.List(inner), line)
            one = inner[-1] if inner and len(inner) == 1 else self._place(ast.Tuple(inner), line)
            return self.behind(one)
        if item.kind is Kind.NAME or item.text == "::":
            self.at += 1
            if (
                item.text in ("defined", "sizeof")
                and self.at < len(self.items)
                and self.items[self.at].kind is Kind.NAME
            ):
                return self._primary()
            name = self._place(ast.Name(item.text), line)
            return name if item.text in _ALONE and item.text != "constexpr" else self.behind(name)
        return None

    def _group(self) -> list[ast.expr]:
        closing = _CLOSES[self._text]
        self.at += 1
        inner = self.several(closing)
        self.at += self._text == closing
        return inner

    def behind(self, node: ast.expr) -> ast.expr:
        """Return an expression with what follows it: its members, calls, subscripts, and the arguments of templates."""
        while self.at < len(self.items):
            text, line = self._text, node.lineno
            if (
                text in (".", "->", "::")
                and self.at + 1 < len(self.items)
                and self.items[self.at + 1].kind is Kind.NAME
            ):
                self.at += 1
                if self._text == "template":
                    self.at += 1
                node = self._place(ast.Attribute(node, self._text), line)
                self.at += 1
            elif text == "(":
                node = self._place(ast.Call(node, self._group(), []), line)
            elif text == "{" and not isinstance(node, ast.Constant):
                node = self._place(ast.Call(node, [self._place(ast.Set(self._group()), line)], []), line)
            elif text == "[":
                inner = self._group()
                node = self._place(ast.Subscript(node, inner[0] if inner else ast.Constant(None)), line)
            elif text == "<" and isinstance(node, ast.Name | ast.Attribute) and (end := self.template_end(node)):
                self.at += 1
                arguments = []
                while self.at < end:
                    before = self.at
                    whole, self.items = self.items, self.items[:end]
                    arguments += self.several("")
                    self.items = whole
                    self.at += self.at == before
                self.at = end + 1
                if self.items[end].text == ">>":  # it ends an outer one, too
                    self.at = end
                    self.items[end] = _Item(">", self.items[end].at, Kind.MARK, self.items[end].line)
                node = self._place(ast.Call(node, arguments, []), line)
            else:
                break
        return node

    def template_end(self, name: ast.Name | ast.Attribute) -> int | None:
        """Return the index of the mark that ends the arguments of a template here; None if it is a comparison."""
        last = name.id if isinstance(name, ast.Name) else name.attr
        is_trait = last.endswith(("_v", "_t")) or last in ("enable_if", "conditional", "bool_constant")
        is_number = [item.kind for item in self.items[self.at + 1 : self.at + 2]] == [Kind.NUMBER]
        if is_subject(last) and is_number and not is_trait and not self.declares:
            return None
        depth = inner = 0
        for at in range(self.at, min(len(self.items), self.at + 400)):
            text = self.items[at].text
            if text in "([{":
                inner += 1
            elif text in ")]}":
                inner -= 1
                if inner < 0:
                    return None
            elif inner:
                continue
            elif text in (";", "?", "=") or (text in _LOGICAL and not is_trait and not self.is_reference(at)):
                return None
            elif text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
                if depth <= 0:
                    return at
        return None

    def is_reference(self, at: int) -> bool:
        """Tell whether the mark there is that of a type, as in ``T&&>``."""
        return self.items[at].text == "&&" and [item.text for item in self.items[at + 1 : at + 2]] in (
            [">"],
            [">>"],
            [","],
        )


def _combined(operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
    if operator in ("||", "or", "&&", "and"):
        make = ast.Or if operator in ("||", "or") else ast.And
        values = left.values if isinstance(left, ast.BoolOp) and isinstance(left.op, make) else [left]
        return ast.BoolOp(make(), [*values, right])
    if operator in _COMPARES:
        return ast.Compare(left, [_COMPARES[operator]()], [right])
    return ast.BinOp(left, _COUNTS[operator](), right)
