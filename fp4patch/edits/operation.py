"""The base of the edit operations: each operation is one file that subclasses it, and one entry of ``edits``.

An operation is a table of ``patch.toml`` whose fields are the keys, and a pure function: source text in; new text, a
reason to do nothing, or a refusal out. It checks its own keys, and knows what it must leave nowhere in the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from fp4patch.core.outcome import Outcome
from fp4patch.core.release import is_version
from fp4patch.core.state import State
from fp4patch.core.table import Globs, Manifest, OneFile, SomeText, Specifier, must
from fp4patch.edits.cmake import read_command
from fp4patch.edits.cxx import words
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.live_text import Place, Text
from fp4patch.edits.live_text import language as language_of
from fp4patch.edits.python_code import read_expression

Template = Callable[[str], str]
"""The text of a template by the name that the edit gives."""
Look = Callable[[bytes], object]
"""A quick look at the bytes of a file."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def within(word: str) -> Look:
    """Return what passes each file with a word in it."""
    letters = word.encode()
    return lambda content: letters in content


class Mistake(NamedTuple):
    """An author's error in an edit, by its key."""

    key: str
    expected: str
    found: str


@dataclass(frozen=True)
class PatchedTree:
    """What a search for remainders is told of the patched tree."""

    options: Mapping[str, str]
    """Options that the variant sets for the patch."""
    folded: Callable[[str], bool]
    """Tells if the edit was applied to a file."""


class Search(NamedTuple):
    """Search for code that an operation must leave nowhere, in the files of one language."""

    look: Look
    """Quick look that passes every file with such a place."""
    places: Callable[[PatchedTree, Text], Iterable[Place]]
    """Yields the places in a text to which all edits were applied."""


@dataclass(frozen=True, kw_only=True)
class Retired(Manifest):
    """Text in the pristine source that shows that an edit has nothing to do, and the reason.

    ``tokens`` is C++ text compared token by token (white space, comments and continuations do not count); for edits of
    Python and CMake it is an expression or a command.
    """

    tokens: SomeText
    """Text to search in the pristine source."""
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    """State that the text shows."""
    since: Annotated[str, must(lambda text: not text or is_version(text), "a version")] = ""
    """First release that has the text."""
    because: str = ""
    """Reason, as printed."""


_LANGUAGES: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "c++": ("C++ tokens", words),
    "python": ("a Python expression", read_expression),
    "cmake": ("one CMake command, with its parentheses", read_command),
}
"""Description and reader of the texts of each language."""


@dataclass(frozen=True, kw_only=True)
class Operation(Manifest):
    """Base of the edit operations."""

    takes_options: ClassVar[bool] = False
    """True if a variant sets options for it."""

    @property
    def places(self) -> tuple[str, ...]:
        """Globs of the files that the operation may change."""
        raise NotImplementedError

    @property
    def language(self) -> str:
        """Language of those files, and of the operation's texts: ``c++``, ``python`` or ``cmake``."""
        return language_of(self.places[0] if self.places else "")

    @property
    def texts(self) -> tuple[str, ...]:
        """Keys that hold text in that language, beside the ``tokens`` of ``retired``."""
        return ()

    @property
    def always(self) -> tuple[str, ...]:
        """Globs of the files that the operation reads, whatever is in them."""
        return self.places

    def rewrite(self, text: str, template: Template, options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Apply the edit to a text. Refusals are values; only a template that cannot be read raises."""
        raise NotImplementedError

    def may_be_about(self, _content: bytes, /) -> bool:
        """Pass every file that the edit is about, and few others: most files need no reading as tokens."""
        return True

    def searches(self, _language: str, /) -> Iterator[Search]:
        """Yield the searches for what the edit must leave nowhere, in files of a language."""
        yield from ()

    def looks(self, language: str, /) -> Iterator[Look]:
        """Yield quick looks, one of which passes each file of a language that the edit or its searches may concern."""
        return (search.look for search in self.searches(language))

    def mistakes(self, _folder: Path, /) -> Iterator[Mistake]:
        """Yield the author's errors that types do not show. ``_folder`` is the directory of ``patch.toml``."""
        languages = {language_of(place) for place in self.places}
        if len(languages) > 1:
            yield Mistake("search", "files of one language", ", ".join(sorted(languages)))
        expected, read = _LANGUAGES[self.language]
        said = [(key, getattr(self, key)) for key in self.texts]
        said += [(f"retired[{n}].tokens", sign.tokens) for n, sign in enumerate(getattr(self, "retired", ()))]
        for key, value in said:
            for text in value if isinstance(value, tuple) else (value,):
                try:
                    sound = not text or read(text)
                except (LexError, ValueError, SyntaxError):
                    sound = False
                if not sound:
                    yield Mistake(key, expected, repr(text))

    def option_mistakes(self, options: Mapping[str, str], _folder: Path, /) -> Iterator[Mistake]:
        """Yield the errors in the options that a variant sets for the patch."""
        for option, value in sorted(options.items()):
            yield Mistake(option, "no key of this name", f"{option} = {value!r}")


@dataclass(frozen=True, kw_only=True)
class InFile(Operation):
    """Base of the operations on one file, by its path."""

    file: OneFile
    """Path of the file in the tree."""

    @property
    def places(self) -> tuple[str, ...]:
        """The one file."""
        return (self.file,)


@dataclass(frozen=True, kw_only=True)
class BySearch(Operation):
    """Base of the operations on every file that they are about, wherever upstream moved it."""

    search: Globs
    """Globs of the files to search."""

    @property
    def places(self) -> tuple[str, ...]:
        """The globs of the files to search."""
        return self.search


@dataclass(frozen=True, kw_only=True)
class MayBeAbsent(Operation):
    """Base of the operations on code that not every release has."""

    subject: ClassVar[str]
    """Key that names this code."""
    otherwise: str = ""
    """Reason why a tree without that code needs no edit. Empty: it has drifted."""
    present: Specifier = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""
