"""The languages that edits are for: how a text is read, and how parts of it are replaced so that it reads as meant."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fp4patch.cxx import edit as cxx_edit
from fp4patch.cxx.tokens import lex, words
from fp4patch.edits import cmake, python_source


class Language(NamedTuple):
    """A language. Its sources and cuts are its own: an edit knows those of its language."""

    title: str
    patterns: str
    """Description of the code that an edit gives."""
    pattern: Callable[[str], object]
    """Reads such code. ValueError or SyntaxError: it is none."""
    read: Callable[[str], Any]
    """Reads a text. LexError or SyntaxError: it cannot be read to its end."""
    spliced: Callable[[Any, Any], Any]
    """Replaces parts of a source by cuts, and reads the result. Overlap: two cuts are about one place. NotAsMeant: it
    does not read as it is meant."""


LANGUAGES: Mapping[str, Language] = {
    "c++": Language("C++", "C++ tokens", words, lex, cxx_edit.spliced),
    "python": Language(
        "Python",
        "a Python expression",
        python_source.read_expression,
        python_source.read,
        python_source.spliced,
    ),
    "cmake": Language(
        "CMake",
        "CMake commands, with their parentheses",
        lambda text: cmake.parse(text).commands,
        cmake.parse,
        cmake.spliced,
    ),
}
"""By the names that ``language.py`` gives, of those that edits search."""
