"""Statements of C++ as a tree: what is in the branches of an ``if``, behind a label, in a body.

No grammar is needed: a statement ends at its semicolon, or at the brace that closes its body, so that any text is read,
with macros and with code that does not compile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fp4patch.cxx.tokens import Source

_OF_BLOCKS = frozenset(("struct", "class", "namespace", "union", "enum", "extern"))
_BEFORE_BLOCKS = frozenset(("else", "do", "try", "const", "override", "noexcept", "final", "mutable"))
_OF_VALUES = frozenset(("=", ",", "(", "return", "<", "?", ":", "]"))
_HEADS = frozenset(("if", "while", "for", "switch"))
_LABELS = frozenset(("case", "default"))
_OPENS = {"(": ")", "[": "]"}
_DEEPEST = 200


@dataclass
class Statement:
    """A statement. ``tokens``: all of it but for its bodies. ``kind``: the word that it begins with.

    ``first``, ``last``: the tokens that it stands between, with its bodies.
    """

    tokens: list[int]
    kind: str = ""
    body: "list[Statement]" = field(default_factory=list)
    orelse: "list[Statement]" = field(default_factory=list)
    first: int = 0
    last: int = 0


def statements(source: Source) -> list[Statement]:
    """Return the statements of a file. RecursionError: they are nested deeper than any program has them."""
    code = [at for at, of in enumerate(source.directive_of) if of < 0]
    return _Reader(source.words, code).block(0, "")


class _Reader:
    def __init__(self, words: Sequence[str], code: Sequence[int]) -> None:
        self._words = [words[at] for at in code]
        self._code = code
        self._at = 0

    @property
    def _word(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def block(self, depth: int, closing: str) -> list[Statement]:
        """Return the statements up to a closing mark, which is passed."""
        if depth > _DEEPEST:
            raise RecursionError("blocks deeper than any program has them")
        found: list[Statement] = []
        while self._at < len(self._words):
            if self._word == "}":
                self._at += 1
                if closing:
                    break
            else:
                found.append(self._statement(depth))
        return found

    def _statement(self, depth: int) -> Statement:
        """Return what begins here: at least one token is read."""
        start = self._at
        read = self._read(depth)
        read.first, read.last = self._code[start], self._code[self._at - 1]
        return read

    def _read(self, depth: int) -> Statement:
        word, start = self._word, self._at
        if depth > _DEEPEST:
            raise RecursionError("statements deeper than any program has them")
        if word == "{":
            self._at += 1
            return Statement([], "{", self.block(depth + 1, "}"))
        if word in _HEADS:
            return self._branch(word, depth)
        if word in _LABELS:
            while self._at < len(self._words) and not self._ends_label():
                self._at += 1
            read = Statement([*self._code[start : self._at]], word)
            self._at += self._word == ":"
            return read
        if word in ("else", "do"):  # an `else` of an `if` that a directive cut off
            self._at += 1
            return Statement([self._code[start]], word, [self._statement(depth + 1)] if self._word else [])
        return self._plain(word, depth)

    def _ends_label(self) -> bool:
        return self._word in ("{", "}", ";") or (
            self._word == ":" and ":" not in (self._words[self._at - 1], *self._words[self._at + 1 : self._at + 2])
        )

    def _branch(self, word: str, depth: int) -> Statement:
        """Return a statement with a condition in parentheses."""
        read = Statement([self._code[self._at]], word)
        self._at += 1
        if self._word in ("constexpr", "consteval", "!"):
            read.tokens.append(self._code[self._at])
            self._at += 1
        if self._word == "(":
            self._rest(read, depth, within=True)
        if self._word not in ("", "}"):
            read.body += self._inner(depth)
        if word == "if" and self._word == "else":
            self._at += 1
            read.orelse = self._inner(depth) if self._word not in ("", "}") else []
        return read

    def _inner(self, depth: int) -> list[Statement]:
        one = self._statement(depth + 1)
        return one.body if one.kind == "{" else [one]

    def _plain(self, word: str, depth: int) -> Statement:
        read = Statement([], word)
        self._rest(read, depth, within=False)
        return read

    def _rest(self, read: Statement, depth: int, *, within: bool) -> None:
        """Read up to the end of a statement, or ``within`` the parentheses that begin here."""
        opened: list[str] = []
        while self._at < len(self._words):
            word = self._word
            if word == "{":
                if self._is_value(read, opened):
                    opened.append("}")
                else:
                    self._at += 1
                    read.body += self.block(depth + 1, "}")
                    if not opened:
                        return
                    continue
            elif word == "}" and "}" not in opened:
                return
            elif word == ";" and not within and ")" not in opened:
                self._at += 1
                return
            elif word in _OPENS:
                opened.append(_OPENS[word])
            elif word in (")", "]", "}") and opened:
                opened.pop()
            read.tokens.append(self._code[self._at])
            self._at += 1
            if within and not opened:
                return

    def _is_value(self, read: Statement, opened: Sequence[str]) -> bool:
        """Tell whether a brace here begins a value, such as a list: ``{1, 2}``, ``T{1}``."""
        if not read.tokens:
            return False
        before = self._words[self._at - 1]
        if opened[-1:] == ["}"] or before in _OF_VALUES:
            return True
        is_type = before[:1].isalpha() or before[:1] in ("_", ">")
        own = self._words[max(0, self._at - len(read.tokens)) : self._at]
        return is_type and before not in _BEFORE_BLOCKS and _OF_BLOCKS.isdisjoint(own)
