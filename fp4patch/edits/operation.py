"""The base of the edit operations: each operation is one file that subclasses it, and one entry of ``edits``.

An operation is a table of ``patch.toml`` whose fields are the keys, and a pure function: a source in; changes of it, a
reason to do nothing, or a refusal out. It checks its own keys, and knows what it must leave nowhere in the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Self

from fp4patch.core.release import is_version
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import FileBeside, Globs, Manifest, SomeText, Specifier, must
from fp4patch.edits.language import language as language_of
from fp4patch.edits.look import Look
from fp4patch.edits.patch_file import FileChange
from fp4patch.edits.sources import LANGUAGES

Template = Callable[[str], str]
"""The text of a template by the name that the edit gives."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


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
    """Search for code that a patch must leave nowhere, in the files of one language."""

    look: Look
    """Quick look that passes every file with such a place."""
    places: Callable[[PatchedTree, str, str], Iterable[Place]]
    """Yields the places in a file, by its path and its text, to which all edits were applied."""
    expected: str = "nothing that this patch looks for outside the places that it changes"
    """What is expected where such a place has no reason to stay."""


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


class Change(NamedTuple):
    """What an edit makes of a source: the fold puts the changes of all edits of a pass into the text at once."""

    cuts: Sequence[Any]
    """Parts of the source to replace, in the form of its language."""
    lines: tuple[int, ...]
    """The 1-based lines that they touch."""
    reversal: str = ""
    """Change to upstream's text, made by others, that this takes back. Empty: it takes none back."""
    prove: Callable[[Any], None] | None = None
    """Raises a Refusal unless the source with the changes is as the edit wants it."""


@dataclass(frozen=True, kw_only=True)
class Condition(Manifest):
    """Compute capabilities for which the code around a replacement goes on: before the patch and after it.

    The code of each changed file is cut out, and run with a stand-in for the query of the capability.
    """

    shim: FileBeside
    """File beside ``patch.toml`` that runs the code: C++ (``.cpp``) that includes ``code.inc``, or Python (``.py``) or
    CMake (``.cmake``) that gets the path of the code. Its arguments are capabilities (``12.1``); it prints those for
    which the code goes on."""
    begins: str = ""
    """C++ tokens with which the code begins; of Python the name of a function, or one that statements have; of CMake
    the first command. Empty: what the edit is about."""
    through: str = ""
    """C++ tokens after these, whose block ends the code; of CMake the last command. Empty: the block of ``begins``."""
    before: tuple[str, ...]
    """Capabilities for which the pristine code must go on, of all that NVIDIA has since 7.5."""
    after: tuple[str, ...]
    """The same of the patched code."""

    @property
    def name(self) -> str:
        """Name of the check: that of the shim."""
        return Path(self.shim).stem


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
    after: str = ""
    """What earlier edits make that this one needs, in words. Then it looks at the text that they leave; edits that name
    nothing look at the text that is there before them."""

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
    def reads(self) -> tuple[str, ...]:
        """Globs of the files that the operation reads, whatever is in them."""
        return self.search

    @property
    def file_change(self) -> FileChange | None:
        """What it does to one file as a whole, by its name; None for an edit that searches for its files."""
        return None

    @property
    def checked_condition(self) -> Condition | None:
        """The check of the condition that the edit changes, which ``verify`` runs; None if it has none."""
        return None

    def expanded(self, _folder: Path, /) -> tuple[Self, ...]:
        """Return the edits that this one stands for. ``_folder`` is the directory of ``patch.toml``."""
        return (self,)

    def option_mistakes(self, _options: Mapping[str, str], _folder: Path, /) -> Iterator[Mistake]:
        """Yield what is wrong with the options that a variant sets for the patch."""
        yield from ()

    def passes_over(self, _text: str, /) -> NothingToDo | None:
        """Return the outcome for a text that need not be read, since a look at it is enough; None for any other."""
        return None

    def change(self, source: Any, template: Template, options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return what the edit makes of a source in its language. May raise a Refusal, and what the reader of the
        language raises."""
        raise NotImplementedError

    def searches(self, _language: str, /) -> Iterator[Search]:
        """Yield the searches for what the edit must leave nowhere, in files of a language."""
        yield from ()

    def looks(self, language: str, /) -> Iterator[Look]:
        """Yield quick looks, one of which passes each file of a language that the edit or its searches may concern,
        beside those that it reads anyway."""
        return (search.look for search in self.searches(language))

    def mistakes(self, _folder: Path, /) -> Iterator[Mistake]:
        """Yield the author's errors that types do not show. ``_folder`` is the directory of ``patch.toml``."""
        languages = {language_of(glob) for glob in self.search}
        if len(languages) > 1:
            yield Mistake("search", "files of one language", ", ".join(sorted(languages)))
        language = LANGUAGES.get(self.language)
        if language is None or self.language == "other":
            yield Mistake("search", "files of C++, Python or CMake", ", ".join(self.search))
            return
        texts = [(key, getattr(self, key)) for key in self.texts]
        texts += [(f"retired[{n}].tokens", sign.tokens) for n, sign in enumerate(getattr(self, "retired", ()))]
        for key, value in texts:
            for text in value if isinstance(value, tuple) else (value,):
                try:
                    sound = not text or language.pattern(text)
                except (ValueError, SyntaxError):
                    sound = False
                if not sound:
                    yield Mistake(key, language.patterns, repr(text))
