"""Checks that an edit's own patterns and replacements can be read: an author's error is not a drifted tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fp4patch.edits.cmakelists import alike, read_command
from fp4patch.edits.cxx import words
from fp4patch.edits.kinds import (
    AddElement,
    AddOperand,
    DropOperand,
    Edit,
    Insert,
    InsertCommands,
    ReplaceCommand,
    ReplaceExpression,
    ReplaceTokens,
    WrapAsm,
)
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.python_expression import read_expression


def mistakes(edit: Edit) -> Iterator[tuple[str, str, str]]:
    """Key, what was expected there, and what was found, of each text that is not in the language of its edit."""
    language, read, keys = _LANGUAGES[type(edit)]
    texts = [(key, getattr(edit, key)) for key in keys]
    texts += [(f"retired[{number}].tokens", sign.tokens) for number, sign in enumerate(getattr(edit, "retired", ()))]
    for key, said in texts:
        for text in said if isinstance(said, tuple) else (said,):
            try:
                sound = not text or read(text)
            except (LexError, ValueError, SyntaxError):
                sound = False
            if not sound:
                yield key, language, repr(text)
    if isinstance(edit, ReplaceCommand):
        yield from _unlike(edit)


def _unlike(edit: ReplaceCommand) -> Iterator[tuple[str, str, str]]:
    try:
        old, new = read_command(edit.find), read_command(edit.replace)
    except (LexError, ValueError):
        return
    if not alike(old, new):
        yield "replace", f"the command of `{edit.find}`, with as many arguments", repr(edit.replace)


_CXX = "C++ tokens"
_PYTHON = "a Python expression"
_CMAKE = "one CMake command, with its parentheses"

_LANGUAGES: Mapping[type, tuple[str, Callable[[str], object], tuple[str, ...]]] = {
    DropOperand: (_CXX, words, ("defines", "operands")),
    AddOperand: (_CXX, words, ("defines", "operands", "beside", "signs")),
    Insert: (_CXX, words, ("before", "absent", "about")),
    WrapAsm: (_CXX, words, ("floor", "lowered", "callers")),
    ReplaceTokens: (_CXX, words, ("about", "within", "find", "replace")),
    ReplaceExpression: (_PYTHON, read_expression, ("find", "replace")),
    AddElement: (_CMAKE, read_command, ()),
    ReplaceCommand: (_CMAKE, read_command, ("find", "replace")),
    InsertCommands: (_CMAKE, read_command, ("after",)),
}
"""The language of each kind of edit, what reads it, and the keys that are in it."""
