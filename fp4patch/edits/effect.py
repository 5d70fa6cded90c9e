"""The effect of an edit on conditions: what they come to for some values of what they ask for, however they are
written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fp4patch.core.table import SOME, Manifest, SomeText

Given = int | str | bool
"""A value of a name."""
Case = Mapping[str, Given]
"""What each name is worth."""
Results = Sequence[object]
"""What one condition comes to in each case; None where that is not known."""
Conditions = Callable[[Sequence[Case]], Iterable[Results]]
"""Yields the conditions of some code that ask for one of the names, each with its results."""


@dataclass(frozen=True, kw_only=True)
class Effect(Manifest):
    """Two cases that no condition of the code tells from each other, and others that one of them tells from both.

    Each name has a value for each case: with ``of = { major = [12, 12, 9], minor = [0, 1, 0] }``, 12.0 and 12.1 are
    treated alike, and 9.0 is not. In C++ a name is a sequence of tokens, in Python an expression, in CMake a variable.
    ``target`` in C++ is the compile target, by which the conditions of the preprocessor are evaluated; a macro whose
    value is false is not defined, nor others that its name matches as a glob. A variable that is set once from such
    names is known, too. A condition that is not known in each case is a reason to say no.
    """

    of: Annotated[dict[SomeText, tuple[Given, ...]], SOME]
    """The names. The first two values of each are those of the cases that are treated alike."""
    because: SomeText
    """Reason why nothing is to do where it holds, as printed."""

    @property
    def is_sound(self) -> bool:
        """True if there are three cases or more, and each name has a value in all."""
        counts = {len(values) for values in self.of.values()}
        return len(counts) == 1 and min(counts) > _ALIKE

    def holds(self, conditions: Conditions) -> bool:
        """Tell whether some code has the effect already."""
        cases = [dict(zip(self.of, values, strict=True)) for values in zip(*self.of.values(), strict=True)]
        found = list(conditions(cases))
        if any(None in results or results[0] != results[1] for results in found):
            return False
        return all(any(results[0] != results[case] for results in found) for case in range(_ALIKE, len(cases)))


_ALIKE = 2
