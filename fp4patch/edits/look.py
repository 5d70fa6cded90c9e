"""Quick looks at the bytes of files: which of them a search, or an edit, need not read.

The words of all looks are found by one automaton in one pass over a file. A look passes every file in which its search
finds something, and few others; ``tests/edits/test_looks.py`` holds both against each other.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

_SPLICE = re.compile(rb"\\[ \t]*\r?\n")


class Look(NamedTuple):
    """A look: it passes each file that has all words of one of the sets, and what a closer look passes of these."""

    words: tuple[frozenset[bytes], ...]
    closer: Callable[[bytes], object] | None = None
    others: tuple["Look", ...] = ()
    """Looks one of which is enough."""

    def passes(self, content: bytes) -> bool:
        """Tell whether a file is to be read."""
        content = _joined(content)
        return self.passes_with({word for word in self.every_word if word in content}, content)

    @property
    def every_word(self) -> frozenset[bytes]:
        """The words of all sets."""
        return frozenset().union(*self.words, *(other.every_word for other in self.others))

    def passes_with(self, found: set[bytes], content: bytes) -> bool:
        """Tell whether a file is to be read that has these words, among others."""
        if any(words <= found for words in self.words) and (self.closer is None or self.closer(content)):
            return True
        return any(other.passes_with(found, content) for other in self.others)


def words_of(*sets: Iterable[str]) -> tuple[frozenset[bytes], ...]:
    """Return sets of words as looks have them."""
    return tuple(frozenset(word.encode() for word in words) for words in sets)


class QuickLooks:
    """Looks at files of each language, all at once."""

    def __init__(self, looks: Mapping[str, Iterable[Look]]) -> None:
        self._automata = {language: _Automaton(dict.fromkeys(several)) for language, several in looks.items()}

    def passing(self, language: str, content: bytes) -> frozenset[Look]:
        """Return the looks that pass a file."""
        content = _joined(content)
        automaton = self._automata[language]
        found = automaton.words_in(content)
        return frozenset(look for look in automaton.looks_with(found) if look.passes_with(found, content))


class _Automaton:
    """Words that are found in one pass (Aho and Corasick, 1975)."""

    def __init__(self, looks: Iterable[Look]) -> None:
        self._with: dict[bytes, list[Look]] = {}
        self._without_words = []
        for look in looks:
            if frozenset() in look.words:
                self._without_words.append(look)
            for word in look.every_word:
                self._with.setdefault(word, []).append(look)
        self._words = sorted(self._with)

    @cached_property
    def _find(self) -> Callable[[bytes], list[tuple[int, int, int]]]:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415 - for trees alone

        automaton = BytesAhoCorasick(self._words, implementation=Implementation.DFA)
        return lambda content: automaton.find_matches_as_indexes(content, overlapping=True)

    def words_in(self, content: bytes) -> set[bytes]:
        if not self._words:
            return set()
        return {self._words[index] for index in {found[0] for found in self._find(content)}}

    def looks_with(self, words: Iterable[bytes]) -> set[Look]:
        """Return the looks that have one of these words, or need none."""
        return {look for word in words for look in self._with[word]}.union(self._without_words)


def _joined(content: bytes) -> bytes:
    """Return the content without continuations, which may divide a word."""
    return _SPLICE.sub(b"", content) if b"\\" in content else content
