"""Words that the output of several commands shares: problems, lists, counts, and text made printable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fp4patch.core.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


def problem_title(problem: Problem) -> str:
    """Return patch and state, ``cutlass/e2m1-guard: drifted``; empty if the place contains both."""
    if problem.patch == problem.file or not problem.patch:
        return ""  # the place contains it, with the line
    return ": ".join(part for part in (problem.patch, problem.state.value if problem.state else "") if part)


def problem_place(problem: Problem) -> str:
    """Return ``include/cutlass/float_subbyte.h:47``; with the state of a file that no one patch refuses."""
    place = f"{problem.file}:{problem.line}" if problem.file and problem.line is not None else problem.file
    return (
        ": ".join(part for part in (place, problem.state.value) if part)
        if problem.state and not problem.patch
        else place
    )


def problem_sentence(problem: Problem) -> str:
    """Return expected, found and nearest in one sentence."""
    sentence = ", ".join(
        f"{word} {text}" for word, text in (("expected", problem.expected), ("found", problem.found)) if text
    )
    return f"{sentence}; nearest: {problem.nearest}" if problem.nearest else sentence


def listed(items: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    *head, last = [item for item in items if item] or [""]
    return f"{', '.join(head)} and {last}" if head else last


def counted(number: int, noun: str) -> str:
    """Return ``1 check``, ``2 checks``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


LINES = "\t\n\xa0"
"""Characters that a text of several lines can contain beside printable ones."""

VERBATIM = "verbatim"
"""The meta key of a style under which not a character is escaped: a diff is for programs."""


def printable(text: str, kept: str = "") -> str:
    """Return the text with control characters and lone surrogates escaped, except those in ``kept``.

    A path, a name in a third-party wheel or a compiler's message must not control the terminal, nor add lines.
    """
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
