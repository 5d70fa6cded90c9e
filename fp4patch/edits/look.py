"""Quick looks at the bytes of files: which of them a search, or an edit, need not read.

The words of all looks are found by one automaton in one pass over a file. A look passes every file in which its search
finds something, and few others; ``tests/edits/test_looks.py`` holds both against each other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

CloserLook = Callable[[bytes], object]
_FREQUENT = frozenset({b"in"})
"""Words that are looked for alone, where the first place is enough. The places of this one are 569,188 in vLLM 0.33.0,
those of all others 209,545."""
_SPLICE = re.compile(rb"\\[ \t]*\r?\n")


class Look(NamedTuple):
    """A look: it passes each file that has all words of one of the sets, and what a closer look passes of these."""

    words: tuple[frozenset[bytes], ...]
    closer: CloserLook | None = None
    others: tuple["Look", ...] = ()
    """Looks one of which is enough."""

    def passes(self, content: bytes) -> bool:
        """Tell whether a file is to be read."""
        content = _joined(content)
        found = frozenset(word for word in self.every_word if word in content)
        return any(closer is None or closer(content) for closer in self.closer_looks(found))

    @property
    def every_word(self) -> frozenset[bytes]:
        """The words of all sets."""
        return frozenset().union(*self.words, *(other.every_word for other in self.others))

    def closer_looks(self, found: frozenset[bytes]) -> Iterator[CloserLook | None]:
        """Yield what has to pass a file that has these words, among others: one of them, and None passes all."""
        if any(words <= found for words in self.words):
            yield self.closer
        for other in self.others:
            yield from other.closer_looks(found)


def words_of(*sets: Iterable[str]) -> tuple[frozenset[bytes], ...]:
    """Return sets of words as looks have them."""
    return tuple(frozenset(word.encode() for word in words) for words in sets)


class QuickLooks:
    """Looks at files of each language, all at once."""

    def __init__(self, looks: Mapping[str, Iterable[Look]]) -> None:
        self._automata = {language: _Automaton(dict.fromkeys(several)) for language, several in looks.items()}

    def passing(self, language: str, content: bytes) -> frozenset[Look]:
        """Return the looks that pass a file."""
        return self._automata[language].passing(_joined(content))


class _Automaton:
    """Looks, and an automaton that finds their words in one pass (Aho and Corasick, 1975)."""

    def __init__(self, looks: Iterable[Look]) -> None:
        self._looks = tuple(looks)
        words: frozenset[bytes] = frozenset().union(*(look.every_word for look in self._looks))
        self._frequent = words & _FREQUENT
        self._words = sorted(words - self._frequent)
        self._looks_with = cache(self._having)  # a tree has six times as many files as sets of words

    @cached_property
    def _find(self) -> Callable[[bytes], list[tuple[int, int, int]]]:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415 - for trees alone

        automaton = BytesAhoCorasick(self._words, implementation=Implementation.DFA)
        return lambda content: automaton.find_matches_as_indexes(content, overlapping=True)

    def passing(self, content: bytes) -> frozenset[Look]:
        looks = self._looks_with(self._words_in(content))
        passes = cache(lambda closer: closer(content) if closer else True)  # several looks may have the same closer one
        return frozenset(look for look, closer_looks in looks if any(map(passes, closer_looks)))

    def _words_in(self, content: bytes) -> frozenset[bytes]:
        frequent = (word for word in self._frequent if word in content)
        found = {index for index, _, _ in self._find(content)} if self._words else ()
        return frozenset((*frequent, *(self._words[index] for index in found)))

    def _having(self, found: frozenset[bytes]) -> list[tuple[Look, list[CloserLook | None]]]:
        """Return the looks that may pass a file with these words, and of each what has to."""
        several = ((look, list(look.closer_looks(found))) for look in self._looks)
        return [(look, closer_looks) for look, closer_looks in several if closer_looks]


def _joined(content: bytes) -> bytes:
    """Return the content without continuations, which may divide a word."""
    return _SPLICE.sub(b"", content) if b"\\" in content else content
