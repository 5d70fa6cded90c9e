"""Conditions of C++ on names whose values are given: those of the preprocessor, and expressions."""

import ast
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate

from fp4patch.core.arch import Arch
from fp4patch.cxx.preprocessor import Preprocessor, SourceText
from fp4patch.cxx.tokens import Source, read
from fp4patch.edits.cxx_expression import Expressions
from fp4patch.edits.effect import Case, Given, Results
from fp4patch.edits.given_values import GivenValues

TARGET = "target"
"""The name that stands for the compile target."""
_CUDA = "13.0"
"""The CUDA release that the preprocessor's conditions are evaluated for."""


def conditions(source: Source, part: range, cases: Sequence[Case]) -> Iterator[Results]:
    """Yield what each condition on the names comes to in each case, of the tokens ``part``."""
    if TARGET in cases[0]:
        yield from _of_preprocessor(source, part, cases)
    given = [(_expression(name), [_number(case[name]) for case in cases]) for name in cases[0] if name != TARGET]
    if given:
        values = GivenValues(given)
        code = [at for at in part if source.directive_of[at] < 0]
        for expression in Expressions(source, code).all():
            yield from values.conditions(expression)


def _expression(name: str) -> ast.expr:
    source = read(name)
    return Expressions(source, range(len(source.words))).all()[0]


def _number(value: Given) -> int | None:
    """Return the value of a name in expressions, of which a text is none."""
    return None if isinstance(value, str) else value


def _of_preprocessor(source: Source, part: range, cases: Sequence[Case]) -> Iterator[Results]:
    """Yield which branches of each conditional are compiled."""
    start, end = source.starts[part.start], source.ends[part.stop - 1]
    columns = []
    for case in cases:
        macros = {name: value for name, value in case.items() if name != TARGET}
        given = {name: str(int(value) if value is True else value) for name, value in macros.items() if value}
        absent = "|".join(translate(name) for name, value in macros.items() if value is False) or r"(?!)"
        preprocessor = Preprocessor(Arch.parse(str(case[TARGET])), _CUDA, given, undefined=re.compile(absent).fullmatch)
        run = preprocessor.run(SourceText("", source.text))
        columns.append([found.branches for found in run if start <= found.branches[0].begin <= end])
    for rows in zip(*columns, strict=True):
        lives = [tuple(branch.live for branch in branches) for branches in rows]
        yield [None if None in live else live for live in lives]
