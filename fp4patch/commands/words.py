"""Words that the output of several commands shares: problems, and text made printable."""

from fp4patch.core.problem import Problem
from fp4patch.core.wording import joined


def problem_title(problem: Problem) -> str:
    """Return patch and state, ``cutlass/e2m1-guard: drifted``; empty if the place contains both."""
    if problem.patch == problem.file or not problem.patch:
        return ""  # the place contains it, with the line
    return joined(problem.patch, problem.state.value if problem.state else "", by=": ")


def problem_place(problem: Problem) -> str:
    """Return ``include/cutlass/float_subbyte.h:47``; with the state of a file that no one patch refuses."""
    place = f"{problem.file}:{problem.line}" if problem.file and problem.line is not None else problem.file
    return joined(place, problem.state.value, by=": ") if problem.state and not problem.patch else place


def problem_sentence(problem: Problem) -> str:
    """Return expected, found and nearest in one sentence."""
    facts = (("expected ", problem.expected), ("found ", problem.found))
    sentence = joined(*(word + text for word, text in facts if text), by=", ")
    return f"{sentence}; nearest: {problem.nearest}" if problem.nearest else sentence


LINES = "\t\n\xa0"
"""Characters that a text of several lines can contain beside printable ones."""

VERBATIM = "verbatim"
"""The meta key of a style under which not a character is escaped: a diff is for programs."""


def printable(text: str, kept: str = "") -> str:
    """Return the text with control characters and lone surrogates escaped, except those in ``kept``.

    A path, a name in a third-party wheel or a compiler's message must not control the terminal, nor add lines.
    """
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
