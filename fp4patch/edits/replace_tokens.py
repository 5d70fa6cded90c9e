"""The edit ``replace-tokens``: other C++ tokens in the place of some, in the files that contain the text.

White space, comments and continuations between the tokens do not count for finding them, and go with them. The result
is read again: its tokens must be the old ones with exactly these replaced, in the same directives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from fp4patch.core.outcome import NothingToDo, Outcome
from fp4patch.core.state import State
from fp4patch.edits.cxx import Cut, Directive, Kind, Source, lex, words
from fp4patch.edits.cxx_edit import rewritten, unreadable
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import NO_OPTIONS, Template
from fp4patch.edits.refusal import Refusal
from fp4patch.edits.sites import ADDED, Replacement, settle


@dataclass(frozen=True, kw_only=True)
class ReplaceTokens(Replacement):
    """Replace C++ tokens by others."""

    language: ClassVar = "c++"
    texts: ClassVar = ("about", "within", "find", "replace")
    op: Literal["replace-tokens"] = "replace-tokens"
    within: str = ""
    """Tokens that a declaration begins with. The edit searches only inside its braces. Empty: the whole file."""

    def rewrite(self, text: str, _template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with ``find`` replaced; NothingToDo if it does not apply; Drift if it is not understood."""
        about = lex(self.about).tokens
        # Most files of a tree are not worth reading as tokens.
        if all(token.text in text for token in about if token.kind is Kind.NAME):
            try:
                source = lex(text)
                if source.find([token.text for token in about]):
                    return _replace(self, source)
            except LexError as error:
                return unreadable(error)
            except Refusal as refusal:
                return refusal.drift
        return NothingToDo(State.NOT_NEEDED, self.otherwise, elsewhere=True)


def _replace(edit: ReplaceTokens, source: Source) -> Outcome:
    region = _region(source, edit.within) if edit.within else range(len(source.tokens))

    def indices(pattern: str) -> list[int]:
        return [at for at in source.find(words(pattern)) if at in region]

    def nearest() -> tuple[int | None, str]:
        near = source.nearest(words(edit.find))
        return (near.line, f"`{near.found}` where `{near.expected}` was expected") if near else (None, "")

    sites = indices(edit.find)
    if lex(edit.replace).find(words(edit.find)) and (there := indices(edit.replace)):
        raise Refusal(f"`{edit.find}` alone", f"`{edit.replace}`", source.tokens[there[0]].line, advice=ADDED)
    lines = [source.tokens[at].line for at in sites]
    retired = settle(edit, lines, lambda sign: [source.tokens[at].line for at in indices(sign)], nearest)
    if retired:
        return retired
    length, cuts = len(words(edit.find)), []
    for at in sites:
        old = source.tokens[at : at + length]
        if len({token.directive for token in old}) != 1:
            raise Refusal(f"`{edit.find}` in one directive or in code", "both", old[0].line)
        if old[0].directive >= 0 and words(edit.find)[:1] == ("defined",) and len(words(edit.find)) == 4:
            _alone(edit, source.directives[old[0].directive], length)
        cuts.append(Cut(old[0].start, old[-1].end, edit.replace))
    return rewritten(
        source, cuts, tuple(sorted({source.tokens[i].line for at in sites for i in range(at, at + length)}))
    )


def _alone(edit: ReplaceTokens, directive: Directive, length: int) -> None:
    """Refuse a condition with more than ``defined(X)``: the rest concerns X, not its successor."""
    condition = directive.tokens
    while len(condition) > length and condition[0].text == "(" and condition[-1].text == ")":
        condition = condition[1:-1]
    if directive.name in ("if", "elif") and len(condition) != length:
        found = " ".join(token.text for token in directive.tokens)
        raise Refusal(f"`{edit.find}` as the whole condition", f"`#{directive.name} {found}`", directive.line)


def _region(source: Source, within: str) -> range:
    """Return the tokens between the braces of the one declaration that begins so. Refusal if there is no such, or
    several."""
    beginning = words(within)
    found = source.find(beginning)
    inside = block(source, found[0] + len(beginning)) if len(found) == 1 else None
    if inside is not None:
        return inside
    line = source.tokens[found[-1]].line if found else None
    raise Refusal(f"one `{within}` with a body", f"{len(found)} that begin so", line)


def block(source: Source, after: int) -> range | None:
    """Return the tokens between the first braces from a token on; None if a declaration ends before them."""
    depth, first = 0, 0
    for at in range(after, len(source.tokens)):
        token = source.tokens[at]
        if token.directive >= 0:
            continue
        if token.text == "{":
            depth += 1
            first = first or at
        elif token.text == "}":
            depth -= 1
            if depth == 0:
                return range(first, at)
        elif token.text == ";" and not depth:
            break  # a declaration without a body
    return None
