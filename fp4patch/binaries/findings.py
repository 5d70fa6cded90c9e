"""Severity of what ``fp4patch doctor`` finds, the finding, and an answer as the worst of what was observed."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, shown


class Level(StrEnum):
    """Severity of a finding. Closed; the worst severity of all findings decides the exit status."""

    GREEN = "green"
    """The state is right, or the thing is absent and not needed."""
    YELLOW = "yellow"
    """It works now, or for some GPUs only. Read the remedy before you build."""
    RED = "red"
    """It fails in the present state."""
    NONE = "not-judged"
    """The thing is absent or was not examined, so nothing is known about it."""
    OTHER = "not-for-fp4"
    """It loads, and has no FP4 code for the GPU: it is made for other things, and nothing of it is to be repaired."""


def worst(levels: Iterable[Level]) -> Level:
    """Return RED if any level is RED, else YELLOW if any is YELLOW, else GREEN, else OTHER if any is, else NONE."""
    found = set(levels)
    order = (Level.RED, Level.YELLOW, Level.GREEN, Level.OTHER)
    return next((level for level in order if level in found), Level.NONE)


ANSWERS = {
    Level.RED: "no",
    Level.NONE: "not-judged",
    Level.OTHER: "not-for-fp4",
    Level.YELLOW: "reservation",
    Level.GREEN: "yes",
}
"""The answer to "does FP4 work on this GPU" for each level of its observations, the worst first."""
_ORDER = tuple(ANSWERS)


class Axis(StrEnum):
    """What an answer rests on, in the order in which axes of one level decide. Closed."""

    LOADS = "loads"
    """Whether the GPU's driver takes code of it."""
    CONVERTS = "converts"
    """Whether it converts to FP4, and by which instructions."""
    MULTIPLIES = "multiplies"
    """Whether it multiplies FP4 values by matrix instructions."""
    DEFECTS = "known defects"
    """Whether the release fails on the GPU for a reason that is recorded."""
    TOOLS = "driver and toolkit"
    """Whether the compiler takes the targets, and the driver the PTX."""
    PROCESSOR = "processor"
    """Whether it is built for the processor of the GPU's machine."""
    READ = "not read"
    """Whether what decides was read."""


@dataclass(frozen=True)
class Observation(Document):
    """What was found about one GPU on one axis."""

    axis: Axis
    level: Level
    sentence: str
    """What holds, in a few words: ``none of its code loads``."""
    evidence: tuple[str, ...] = ()
    """Facts that the sentence rests on, the most important one first."""
    todo: str = ""
    """The one next step; empty if none is needed."""
    excepted: tuple[str, ...] = ()
    """Parts for which it does not hold, and which are few: ``6 kernels (minimax_m3)``."""


@dataclass(frozen=True)
class Answer(Document):
    """Answer for one GPU: whether FP4 works on it. It is the worst of what was observed; the first of these decides."""

    gpu: Arch
    observations: tuple[Observation, ...]

    @classmethod
    def of(cls, gpu: Arch, *observations: Observation) -> "Answer":
        """Return the answer of some observations, in the order of their axes."""
        axes = list(Axis)
        return cls(gpu, tuple(sorted(observations, key=lambda one: axes.index(one.axis))))

    def beside(self, *observations: Observation) -> "Answer":
        """Return the answer that takes other observations into account too."""
        return Answer.of(self.gpu, *self.observations, *observations)

    @property
    def deciding(self) -> Observation:
        """The observation that decides."""
        return min(self.observations, key=lambda one: _ORDER.index(one.level))

    @property
    @shown()
    def level(self) -> Level:
        """The worst level of the observations."""
        return self.deciding.level

    @property
    @shown()
    def axis(self) -> Axis:
        """The axis that decides."""
        return self.deciding.axis

    @property
    @shown()
    def answer(self) -> str:
        """``yes``, ``reservation``, ``not-for-fp4``, ``not-judged`` or ``no``."""
        return ANSWERS[self.level]

    @property
    @shown()
    def verdict(self) -> str:
        """What holds, in a few words; of a *yes* all that works: ``FP4 in hardware (1 conversion, ...)``."""
        if self.level is not Level.GREEN:
            return self.deciding.sentence
        told = [one.sentence for one in self.observations if one.axis in (Axis.CONVERTS, Axis.MULTIPLIES)]
        first, *others = dict.fromkeys(told or [self.deciding.sentence])
        return f"FP4 in hardware ({', '.join([first, *others])})" if others else first

    @property
    @shown()
    def evidence(self) -> tuple[str, ...]:
        """Facts that the answer rests on: what decides first, then other observations that are no *yes*."""
        rest = sorted(self.observations, key=lambda one: (one is not self.deciding, _ORDER.index(one.level)))
        facts = [fact for one in rest for fact in ([one.sentence] if one in self.lesser else []) + list(one.evidence)]
        return tuple(dict.fromkeys(facts))

    @property
    def lesser(self) -> tuple[Observation, ...]:
        """The observations beside the deciding one that are no *yes*."""
        others = (one for one in self.observations if one is not self.deciding)
        return tuple(one for one in others if one.level is not Level.GREEN)

    @property
    @shown()
    def todo(self) -> str:
        """The one next step; empty if none is needed."""
        return self.deciding.todo

    @property
    @shown()
    def excepted(self) -> tuple[str, ...]:
        """Parts for which the answer does not hold, and which are few."""
        return tuple(dict.fromkeys(part for one in self.observations for part in one.excepted))

    @property
    def said(self) -> str:
        """The answer in words: ``yes, with 2 reservations``."""
        if self.level is Level.YELLOW:
            number = 1 + sum(one.level is Level.YELLOW for one in self.lesser)
            return f"yes, with {f'{number} reservations' if number > 1 else 'a reservation'}"
        return "not what this package is for" if self.level is Level.OTHER else self.answer.replace("-", " ")

    @property
    @shown()
    def because(self) -> str:
        """The evidence in one line."""
        return "; ".join(self.evidence)


@dataclass(frozen=True)
class Finding(Document):
    """One thing that was checked: its subject, the state that was found and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    """Recommended action; empty if all is well."""
    cause: str = ""
    """Name of the remedy in remedies.toml, or title of the message in messages.toml; empty for other errors."""
    link: str = ""
    """Link to a public discussion of the finding; mostly empty."""
