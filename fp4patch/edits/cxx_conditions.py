"""Conditions of C++ on names whose values are given: those of the preprocessor, and expressions."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from itertools import pairwise

from fp4patch.core.arch import Arch
from fp4patch.cxx.condition import evaluate
from fp4patch.cxx.preprocessor import Preprocessor, SourceText
from fp4patch.cxx.tokens import Source, words
from fp4patch.edits.effect import Case, Given, Results

TARGET = "target"
"""The name that stands for the compile target."""
_CUDA = "13.0"
"""The CUDA release that the preprocessor's conditions are evaluated for."""
_GIVEN = "given_"
"""The beginning of what stands for a name while expressions are read."""
_ENDS = frozenset(",;{}")
_COMPARES = frozenset(["==", "!=", "<=", ">=", "&&", "||"])
_MODIFIES = frozenset("=!<>+-*/%&|^")


def conditions(source: Source, part: range, cases: Sequence[Case]) -> Iterator[Results]:
    """Yield what each condition on the names comes to in each case, of the tokens ``part``."""
    if TARGET in cases[0]:
        yield from _of_preprocessor(source, part, cases)
    names = {name: [case[name] for case in cases] for name in cases[0] if name != TARGET}
    code = [source.words[at] for at in part if source.directive_of[at] < 0]
    yield from _Expressions(code, len(cases), names).conditions()


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


class _Expressions:
    """Expressions of some code with names in them; ``names`` has the values of each one in all cases."""

    def __init__(self, code: Sequence[str], cases: int, names: dict[str, list[Given]]) -> None:
        self._cases = cases
        self._values = {f"{_GIVEN}{number}": values for number, values in enumerate(names.values())}
        self._words = list(code)
        for number, name in enumerate(names):
            self._put(words(name), f"{_GIVEN}{number}")

    def _put(self, old: Sequence[str], new: str) -> None:
        at = 0
        while at < len(self._words):
            before = self._words[at - 1] if at else ""
            is_whole = self._words[at : at + len(old)] == [*old] and before not in (".", ">", ":")
            self._words[at : at + len(old) * is_whole] = [new] * is_whole
            at += 1

    def conditions(self) -> Iterator[Results]:
        """Yield the values of the largest expression around each name that compares."""
        at = 0
        while at < len(self._words):
            if self._words[at] not in self._values:
                at += 1
                continue
            start, end = self._piece(at, at + 1)
            found = self._evaluated(start, end)
            while found and self._words[start - 1 : start] == ["("] and self._words[end : end + 1] == [")"]:
                outer = self._piece(start - 1, end + 1)
                if not (wider := self._evaluated(*outer)):
                    break
                (start, end), found = outer, wider
            piece = self._words[start:end]
            compares = "!" in piece or any(a + b in _COMPARES for a, b in pairwise(piece)) or {"<", ">"} & {*piece}
            is_own = not self._words[at].startswith(_GIVEN)  # a variable of the code, which may get another value
            if compares or (is_own and not found):
                yield found or [None]
            variable = self._assigned(start)
            if variable and (variable in self._values or not found):
                yield [None]  # what it is later on is not known
            elif variable:
                self._values[variable] = found
            at = end

    def _piece(self, start: int, end: int) -> tuple[int, int]:
        """Return the bounds of the operand, argument or condition around some tokens."""
        depth = 0
        while start and (depth or not self._ends_before(start)):
            start -= 1
            depth += (self._words[start] in ")]") - (self._words[start] in "([")
        while end < len(self._words) and (depth or self._words[end] not in _ENDS | {")", "]"}):
            depth += (self._words[end] in "([") - (self._words[end] in ")]")
            end += 1
        return start, end

    def _ends_before(self, start: int) -> bool:
        word = self._words[start - 1]
        return word in _ENDS | {"(", "[", "return"} or self._is_assignment(start - 1)

    def _is_assignment(self, at: int) -> bool:
        around = {*self._words[max(0, at - 1) : at], *self._words[at + 1 : at + 2]}
        return self._words[at] == "=" and not around & _MODIFIES

    def _assigned(self, start: int) -> str:
        """Return the variable that is set to the expression that begins here; empty if none is."""
        is_set = start > 1 and self._is_assignment(start - 1) and self._words[start - 2].isidentifier()
        return self._words[start - 2] if is_set else ""

    def _evaluated(self, start: int, end: int) -> list[Given]:
        """Return the value of an expression in each case; none if it is not known in all."""
        results: list[Given] = []
        for case in range(self._cases):

            def value(name: str, case: int = case) -> int | None:
                found = self._values.get(name)
                return None if found is None or isinstance(found[case], str) else int(found[case])

            try:
                result = evaluate(self._words[start:end], value=value)
            except ValueError:
                return []
            if result is None:
                return []
            results.append(result)
        return results
