"""The edit ``replace``: other code in the place of some, in C++, Python or CMake.

The language is that of the files that the edit searches. Each language compares code by its own tokens, so that layout
and comments do not count, changes nothing beside the code that it replaces, and reads the result again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import SomeText
from fp4patch.edits.cmake import parse
from fp4patch.edits.cmake_code import CMakeCode
from fp4patch.edits.cxx_code import CxxCode
from fp4patch.edits.effect import Effect
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import (
    Change,
    Condition,
    Mistake,
    Operation,
    PatchedTree,
    Place,
    Retired,
    Search,
    Template,
)
from fp4patch.edits.python_code import PythonCode
from fp4patch.edits.refusal import ADDED, Refusal
from fp4patch.edits.sources import LANGUAGES

Code = CxxCode | PythonCode | CMakeCode
"""A source in its language, and the part of it that an edit searches."""
_CODE: Mapping[str, type[Code]] = {"c++": CxxCode, "python": PythonCode, "cmake": CMakeCode}


@dataclass(frozen=True, kw_only=True)
class Replace(Operation):
    """Replace ``find`` by ``replace`` in each file below ``search`` that contains ``about``.

    The edit does not apply to a file without ``about``. A file with ``about`` must have ``find`` exactly ``count``
    times, or text that retires the edit. All else is drift.

    In C++, code is a sequence of tokens. Where ``replace`` only adds tokens to those of ``find``, or leaves some out,
    the others keep their layout. In Python, code is an expression, compared as a syntax tree, and ``about`` is a name.
    In CMake, code is one or more commands with their arguments, ``replace`` may have more of them behind those of
    ``find``, and ``about`` is a command's name, or its name and first argument: ``set(ARCHS``.
    """

    op: Literal["replace"] = "replace"
    about: str = ""
    """Code of the files that the edit applies to. Empty: that of ``within``."""
    within: str = ""
    """Part of the file to search. Empty: all of it. C++: the tokens that a declaration with a body begins with. Python
    and CMake: the name of a function."""
    find: SomeText
    """Code to replace."""
    replace: str
    """Code to put in its place."""
    count: PositiveInt = 1
    """Number of places that a file has."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""
    reversal: str = ""
    """Change to upstream's text, made by others, that the edit takes back, as printed. Empty: it takes none back."""
    condition: Condition | None = None
    """Check of the condition that the edit changes, which ``verify`` runs."""
    effect: Effect | None = None
    """What conditions of the code come to once the edit is made. Where they do already, the edit is upstreamed."""

    @property
    def subject(self) -> str:
        """The code of such files."""
        return self.about or self.within

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys with code; those of C++ are patterns of tokens."""
        return ("about", "within", "find", "replace") if self.language == "c++" else ("find", "replace")

    def passes_over(self, text: str, /) -> NothingToDo | None:
        """Return that the edit is not about a text without the words of such code: most are not worth reading."""
        folded = text.casefold()
        if all(word.casefold() in folded for word in re.findall(r"\w+", self.subject)):
            return None
        return self._outside

    @property
    def _outside(self) -> NothingToDo:
        return NothingToDo(State.NOT_NEEDED, self.not_needed, elsewhere=True)

    def change(self, source: Any, _template: Template, _options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return the change of ``find``; NothingToDo if the edit does not apply to the source."""
        code = _CODE[self.language](source, self.within)
        return self._replaced(code) if code.is_about(self.subject) else self._outside

    @property
    def _adds(self) -> bool:
        """True if ``find`` stays in what replaces it: then a place may be one that was replaced before."""
        empty = LANGUAGES[self.language].read("")
        return _CODE[self.language](empty, "").contains(self.replace, self.find)

    def _replaced(self, code: Code) -> Change | NothingToDo:
        """Replace in the right number of places; a sign that retires the edit, and places too, are a refusal."""
        places = code.lines(self.find)
        for sign in self.retired:
            if signs := code.lines(sign.tokens):
                if places and not sign.beside:
                    raise Refusal(f"either `{self.find}` or `{sign.tokens}`", "both", signs[0])
                return NothingToDo(sign.state, sign.because, sign.since)
        if self.effect and self.effect.holds(code.conditions):
            return NothingToDo(State.UPSTREAMED, self.effect.because)
        if self._adds and (made := code.lines(self.replace)):
            raise Refusal(f"`{self.find}` alone", f"`{self.replace}`", made[0], advice=ADDED)
        if not places and self.replace and (made := code.lines(self.replace)):
            raise Refusal(f"{self.count} of `{self.find}`", f"`{self.replace}` in its place", made[0], advice=ADDED)
        if len(places) != self.count:
            line, near = (places[-1], "") if places else code.nearest(self.find)
            where = f" in `{self.within}`" if self.within else ""
            raise Refusal(f"{self.count} of `{self.find}`{where}", f"{len(places)}", line, near)
        return code.replaced(self.find, self.replace)._replace(reversal=self.reversal)

    def searches(self, language: str, /) -> Iterator[Search]:
        """Yield the search for what is replaced, unless only a part of each file is searched, or it stays."""
        if language == self.language and not (self.within or self._adds):
            yield Search(Look(words_of(re.findall(r"\w+", self.find))), self._left)

    @property
    def checked_condition(self) -> Condition | None:
        """The condition, which begins with what the edit is about unless it says otherwise."""
        if self.condition is None:
            return None
        return replace(self.condition, begins=self.condition.begins or self.subject)

    def _left(self, _tree: PatchedTree, _file: str, text: str, /) -> Iterable[Place]:
        """Yield the code to replace that is left in a text, where no sign shows that it stays."""
        try:
            code = _CODE[self.language](LANGUAGES[self.language].read(text), "")
            beside = any(code.lines(sign.tokens) for sign in self.retired if sign.beside)
            lines = [] if beside else code.lines(self.find)
        except (LexError, SyntaxError, ValueError, RecursionError) as error:
            return [Place(1, f"{self.find}: {error}")]
        return [Place(line, " ".join(text.split("\n")[line - 1].split())[:200]) for line in lines]

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield texts that cannot be read, an edit for no files, and CMake commands of another shape."""
        if not self.subject:
            yield Mistake("about", "`about`, or `within`", "neither")
        if self.effect and not self.effect.is_sound:
            yield Mistake("effect", "three cases or more, and a value of each name in all", repr(self.effect.of))
        wrong = list(super().mistakes(folder))
        yield from wrong
        if self.language == "cmake" and not wrong:
            old, new = ([(c.name, len(c.arguments)) for c in parse(t).commands] for t in (self.find, self.replace))
            if new[: len(old)] != old:
                expected = f"the commands of `{self.find}`, with as many arguments, and others behind them"
                yield Mistake("replace", expected, repr(self.replace))
