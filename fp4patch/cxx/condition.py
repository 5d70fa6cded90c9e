"""Evaluate the condition of an ``#if``, as far as it is known.

The grammar is that of [cpp.cond]. A value is an integer, or None where it depends on something that is not known: the
result of ``&&`` and ``||`` can be known all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import add, and_, eq, ge, gt, invert, le, lt, mul, ne, neg, not_, or_, pos, sub, xor

Value = int | None
Lookup = Callable[[str], Value]

_UNKNOWN: Lookup = lambda _name: None  # noqa: E731
_LITERALS = {"true": 1, "false": 0}
_DIGITS = str.maketrans("", "", "'uUlLzZ")

_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": or_},
    {"^": xor},
    {"&": and_},
    {"==": eq, "!=": ne},
    {"<=": le, ">=": ge, "<": lt, ">": gt},
    {"<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63)},
    {"+": add, "-": sub},
    {"*": mul, "/": lambda a, b: int(a / b) if b else 0, "%": lambda a, b: a % b if b else 0},
)
"""The operators on two integers, the loosest first."""
_ARITHMETIC = 2
"""The first level on which a value counts, and not only whether it is 0."""
_OPERATORS = {word: (level, make) for level, makes in enumerate(_LEVELS) for word, make in makes.items()}
_SIGNS: Mapping[str, Callable[[int], int]] = {"!": not_, "-": neg, "+": pos, "~": invert}
_NO_OPERATOR: tuple[int, Callable[[int, int], int]] = (-1, sub)

_PAIRS = frozenset({"||", "&&", "==", "!=", "<=", ">=", "<<", ">>"})


def evaluate(words: Sequence[str], defined: Lookup = _UNKNOWN, value: Lookup = _UNKNOWN) -> Value:
    """Return the value of a condition, given as the texts of its tokens. ValueError if it is not an expression.

    ``defined`` tells whether a macro is defined, ``value`` what an identifier is worth; None: not known.
    """
    parser = _Parser(_joined(words), defined, value)
    result = parser.ternary()
    if parser.at != len(parser.words):
        raise ValueError(f"`{parser.words[parser.at]}` is not expected in a condition")
    return result


def holds(name: str, words: Sequence[str], defined: Lookup = _UNKNOWN, value: Lookup = _UNKNOWN) -> bool | None:
    """Tell whether the condition of ``#if``, ``#elifndef``, ``#else`` and the like holds; None: that is not known."""
    if name == "else":
        return True
    try:
        result = evaluate(words, defined, value) if not name.endswith("def") else defined(words[0]) if words else None
    except ValueError:
        return None
    return None if result is None else bool(result) != name.endswith("ndef")


def _joined(words: Sequence[str]) -> list[str]:
    """Return the tokens with two-character operators in one part: the lexer has them character by character."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] + word in _PAIRS:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


class _Parser:
    def __init__(self, words: Sequence[str], defined: Lookup, value: Lookup) -> None:
        self.words = words
        self.defined = defined
        self.value = value
        self.at = 0

    def next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self, word: str) -> bool:
        found = self.next() == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise ValueError(f"`{word}` is expected in a condition, not `{self.next()}`")

    def ternary(self) -> Value:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        then = self.ternary()
        self.expect(":")
        other = self.ternary()
        if condition is None:
            return then if then == other else None
        return then if condition else other

    def binary(self, loosest: int) -> Value:
        result = self.unary()
        while True:
            level, operator = _OPERATORS.get(self.next(), _NO_OPERATOR)
            if level < loosest:
                return result
            self.at += 1
            right = self.binary(level + 1)
            lefts, rights = ((0, 1) if side is None else (side,) for side in (result, right))
            values = {int(operator(left, right)) for left in lefts for right in rights}
            # What is not known is either, and no matter if both come to the same; other operators ask for more.
            is_known = len(values) == 1 and (level < _ARITHMETIC or None not in (result, right))
            result = values.pop() if is_known else None

    def unary(self) -> Value:
        sign = _SIGNS.get(self.next())
        if sign is None:
            return self.primary()
        self.at += 1
        operand = self.unary()
        return None if operand is None else int(sign(operand))

    def primary(self) -> Value:
        if self.take("("):
            result = self.ternary()
            self.expect(")")
            return result
        word = self.next()
        self.at += 1
        if word == "defined":
            bracketed = self.take("(")
            name = self.next()
            self.at += 1
            if bracketed:
                self.expect(")")
            if not name.isidentifier():
                raise ValueError(f"`{name}` is not the name of a macro")
            return self.defined(name)
        if word[:1].isdigit():
            return _number(word)
        if word[:1] == "'":
            return None
        if word.isidentifier():
            if self.next() == "(":  # of a function-like macro that is not expanded, such as __has_include
                self.skip()
                return None
            return _LITERALS.get(word, self.value(word))
        raise ValueError(f"`{word}` is not expected in a condition")

    def skip(self) -> None:
        depth = 0
        while self.at < len(self.words):
            depth += (self.next() == "(") - (self.next() == ")")
            self.at += 1
            if not depth:
                return
        raise ValueError("a parenthesis is never closed")


def _number(word: str) -> int:
    digits = word.translate(_DIGITS)
    octal = len(digits) > 1 and digits.startswith("0") and digits.isdigit()
    return int(digits, 8) if octal else int(digits, 0)
