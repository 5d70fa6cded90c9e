"""The base of the edit operations: each operation is one file that subclasses it, and one entry of ``edits``.

An operation is a table of ``patch.toml`` whose fields are the keys, and a pure function: source text in; new text, a
reason to do nothing, or a refusal out. It checks its own keys, and knows what it must leave nowhere in the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from fp4patch.core.release import is_version
from fp4patch.core.results import Drift, Outcome, Rewritten, State
from fp4patch.core.table import Globs, Manifest, SomeText, Specifier, must
from fp4patch.edits.cmake import parse
from fp4patch.edits.cxx import words
from fp4patch.edits.language import language as language_of
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.python_code import read_expression
from fp4patch.edits.refusal import Refusal

Template = Callable[[str], str]
"""The text of a template by the name that the edit gives."""
Look = Callable[[bytes], object]
"""A quick look at the bytes of a file."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def containing(word: str, search: Look = bool) -> Look:
    """Return the quick look that passes each file with a word in it, where a slower search finds something too."""
    letters = word.encode()
    return lambda content: letters in content and search(content)


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


class Place(NamedTuple):
    """Code that an edit must leave nowhere, and that is there."""

    line: int
    found: str
    because: str = ""
    """The edit's own reason to leave it."""


class Search(NamedTuple):
    """Search for code that an operation must leave nowhere, in the files of one language."""

    look: Look
    """Quick look that passes every file with such a place."""
    places: Callable[[PatchedTree, str, str], Iterable[Place]]
    """Yields the places in a file, by its path and its text, to which all edits were applied."""


@dataclass(frozen=True, kw_only=True)
class Retired(Manifest):
    """Text in the pristine source that shows that an edit has nothing to do, and the reason.

    ``tokens`` is C++ text compared token by token (white space, comments and continuations do not count); for edits of
    Python and CMake it is an expression or a command.
    """

    tokens: SomeText
    """Text to search in the pristine source."""
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED] = State.UPSTREAMED
    """State that the text shows."""
    since: Annotated[str, must(lambda text: not text or is_version(text), "a version")] = ""
    """First release that has the text."""
    because: SomeText = "upstream has made this change"
    """Reason, as printed."""
    beside: bool = False
    """True if upstream added the text, and left the code that the edit replaces as it is."""


class _Language(NamedTuple):
    title: str
    text: str
    """Description of the texts that an edit gives."""
    read: Callable[[str], object]


_LANGUAGES: Mapping[str, _Language] = {
    "c++": _Language("C++", "C++ tokens", words),
    "python": _Language("Python", "a Python expression", read_expression),
    "cmake": _Language("CMake", "CMake commands, with their parentheses", lambda text: parse(text).commands),
}


@dataclass(frozen=True, kw_only=True)
class Operation(Manifest):
    """Base of the edit operations. An edit is about the files below ``search`` that have what it changes."""

    op: str
    search: Globs
    """Globs of the files to search."""
    otherwise: str = ""
    """Reason why a tree without the code that the edit is about needs no edit. Empty: ``present`` gives it, or such a
    tree has drifted."""
    present: Specifier = ""
    """Version specifier of the releases that have what the edit changes. In these releases, its absence is drift."""

    @property
    def subject(self) -> str:
        """Code by which the edit tells the files that it applies to, as a message names it."""
        return ""

    @property
    def not_needed(self) -> str:
        """Reason why a tree without such files needs no edit; empty if it has drifted."""
        return self.otherwise or (f"releases {self.present} alone have this code" if self.present else "")

    @property
    def language(self) -> str:
        """Language of the files, and of the operation's texts: ``c++``, ``python`` or ``cmake``."""
        return language_of(self.search[0] if self.search else "")

    @property
    def texts(self) -> tuple[str, ...]:
        """Keys that hold text in that language, beside the ``tokens`` of ``retired``."""
        return ()

    @property
    def always(self) -> tuple[str, ...]:
        """Globs of the files that the operation reads, whatever is in them."""
        return self.search

    def rewrite(self, text: str, template: Template, options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Apply the edit to a text. Refusals are values; only a template that cannot be read raises."""
        try:
            return self.change(text, template, options)
        except Refusal as refusal:
            return refusal.drift
        except (LexError, SyntaxError) as error:
            message, line = (error.message, error.line) if isinstance(error, LexError) else (error.msg, error.lineno)
            expected = f"{_LANGUAGES[self.language].title} that can be read to its end"
            return Drift(expected, message, line, help="is this file whole? fetch it again")

    def change(self, text: str, template: Template, options: Mapping[str, str], /) -> Outcome:
        """As :meth:`rewrite`. May raise a Refusal, and what the reader of the language raises."""
        raise NotImplementedError

    def searches(self, _language: str, /) -> Iterator[Search]:
        """Yield the searches for what the edit must leave nowhere, in files of a language."""
        yield from ()

    def looks(self, language: str, /) -> Iterator[Look]:
        """Yield quick looks, one of which passes each file of a language that the edit or its searches may concern."""
        return (search.look for search in self.searches(language))

    def mistakes(self, _folder: Path, /) -> Iterator[Mistake]:
        """Yield the author's errors that types do not show. ``_folder`` is the directory of ``patch.toml``."""
        languages = {language_of(glob) for glob in self.search}
        if len(languages) > 1:
            yield Mistake("search", "files of one language", ", ".join(sorted(languages)))
        language = _LANGUAGES.get(self.language)
        if language is None:
            yield Mistake("search", "files of C++, Python or CMake", ", ".join(self.search))
            return
        texts = [(key, getattr(self, key)) for key in self.texts]
        texts += [(f"retired[{n}].tokens", sign.tokens) for n, sign in enumerate(getattr(self, "retired", ()))]
        for key, value in texts:
            for text in value if isinstance(value, tuple) else (value,):
                try:
                    sound = not text or language.read(text)
                except (ValueError, SyntaxError):
                    sound = False
                if not sound:
                    yield Mistake(key, language.text, repr(text))


Step = tuple[Operation, Template, Mapping[str, str]]
"""One edit of a fold, where its templates come from, and the options that the variant sets for the patch."""


class Fold(NamedTuple):
    """The text after all edits, and what each came to, in their order. One that drifts leaves the text as it was."""

    text: str
    outcomes: tuple[Outcome, ...]


def fold(text: str, steps: Sequence[Step]) -> Fold:
    """Apply the edits in order, each to what the one before left. All are tried, so that all refusals are known."""
    outcomes: list[Outcome] = []
    for edit, template, options in steps:
        outcomes.append(edit.rewrite(text, template, options))
        if isinstance(outcomes[-1], Rewritten):
            text = outcomes[-1].text
    return Fold(text, tuple(outcomes))
