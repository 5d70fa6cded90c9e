"""Conditions of CMake on variables whose values are given."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from fp4patch.edits.cmake import Argument, Command, Form, constant
from fp4patch.edits.effect import Case, Results

_REFERENCE = re.compile(r"\$\{(\w+)\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "MATCHES": lambda text, pattern: re.search(pattern, text) is not None,
    "STREQUAL": lambda left, right: left == right,
    "EQUAL": lambda left, right: float(left) == float(right),
    "IN_LIST": lambda item, items: item in items.split(";"),
}


def conditions(commands: Sequence[Command], cases: Sequence[Case]) -> Iterator[Results]:
    """Yield what each condition on the variables comes to in each case."""
    known = [{name: str(value) for name, value in case.items()} for case in cases]
    for command in commands:
        names = {*re.findall(r"\w+", " ".join(argument.text for argument in command.arguments))}
        if command.name in ("if", "elseif", "while") and names & known[0].keys():
            yield [_Condition(command.arguments, variables).value() for variables in known]


class _Condition:
    """The arguments of ``if``, as cmake-commands(7) orders them: tests, NOT, AND, OR."""

    def __init__(self, arguments: Sequence[Argument], variables: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._variables = variables
        self._at = 0

    def value(self) -> bool | None:
        """Return whether it holds; None if that is not known."""
        try:
            result = self._either()
        except (ValueError, re.error):
            return None
        return result if self._at == len(self._arguments) else None

    def _next(self) -> str:
        """Return the word that comes next, if it can be an operator."""
        following = self._arguments[self._at : self._at + 1]
        return following[0].text if following and following[0].form in (Form.UNQUOTED, Form.PARENTHESIS) else ""

    def _take(self, word: str) -> bool:
        found = self._next() == word
        self._at += found
        return found

    def _either(self) -> bool | None:
        result = self._both()
        while self._take("OR"):
            other = self._both()
            result = True if result or other else None if None in (result, other) else False
        return result

    def _both(self) -> bool | None:
        result = self._one()
        while self._take("AND"):
            other = self._one()
            result = False if False in (result, other) else None if None in (result, other) else True
        return result

    def _one(self) -> bool | None:
        if self._take("NOT"):
            result = self._one()
            return None if result is None else not result
        if self._take("("):
            result = self._either()
            if not self._take(")"):
                raise ValueError
            return result
        if self._at >= len(self._arguments):
            raise ValueError
        left = self._arguments[self._at]
        self._at += 1
        operator = _OPERATORS.get(self._next())
        if operator is None:
            return self._truth(left)
        is_list = self._next() == "IN_LIST"
        self._at += 1
        if self._at >= len(self._arguments):
            raise ValueError
        right = self._arguments[self._at]
        self._at += 1
        texts = self._text(left), self._variables.get(right.text) if is_list else self._text(right)
        return None if texts[0] is None or texts[1] is None else operator(texts[0], texts[1])

    def _text(self, argument: Argument) -> str | None:
        """Return what an argument of a test stands for; None if that is not known."""
        if argument.form is Form.BRACKET:
            return argument.text
        if argument.form is Form.UNQUOTED and argument.text in self._variables:
            return self._variables[argument.text]
        if any(name not in self._variables for name in _REFERENCE.findall(argument.text)):
            return None
        written = _ESCAPE.sub(r"\1", argument.text)
        return _REFERENCE.sub(lambda name: self._variables[name[1]], written)

    def _truth(self, argument: Argument) -> bool | None:
        """Return whether a constant or a variable is true: a text in quotes is only if it is a constant that is."""
        text = self._text(argument)
        is_variable = argument.form is Form.UNQUOTED and argument.text in self._variables
        if text is None:
            return None
        if is_variable:
            return bool(text) and constant(text) is not False and not text.endswith("-NOTFOUND")
        if constant(text) is not None:
            return constant(text)
        return False if argument.form is not Form.UNQUOTED else None  # a variable that is not known
