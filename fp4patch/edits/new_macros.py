"""Find what a text depends on since an edit beside its target and itself: macros, CMake's variables, the machine."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from fp4patch.core.arch import Arch
from fp4patch.core.cuda import known_gpus
from fp4patch.edits.cmake import Form, Script, parse
from fp4patch.edits.condition import holds
from fp4patch.edits.cxx import Directive, Source, lex

_OF_TARGETS = re.compile(r"__CUDACC__|__CUDA_ARCH(?!_LIST__)(_\w+)?__|__CUDA_ARCH_FEAT_\w+|FP4PATCH_\w+")
"""Macros that differ between the targets of a verification, and those that its probes define. The list of a build's
targets is not among them: a probe is compiled for one."""
_OF_COMPILERS = re.compile(
    r"__[A-Z][A-Z0-9_]*__|__(?:cplusplus|clang__|linux__)|NDEBUG|CUDA(?:RT)?_VERSION|wchar_t|W?CHAR_M(?:AX|IN)"
)
"""Macros that are known outside of conditions too, by their names, and a type whose sign is the host's."""


def macros_since(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and name of each macro that the later texts read and the earlier ones do not; LexError as of
    ``lex``.

    A macro that one of the texts defines does not count, nor one that moved from another condition.
    """
    new = {path: lex(text) for path, text in after.items()}
    every = (directive for source in new.values() for directive in source.directives)
    own = {directive.tokens[0].text for directive in every if directive.name == "define" and directive.tokens}
    for path, source in new.items():
        earlier = lex(before.get(path, ""))
        fresh, gone = _conditions(source) - _conditions(earlier), _conditions(earlier) - _conditions(source)
        known = own | {word for words in gone for word in words}
        for directive in source.directives:
            for word in dict.fromkeys(_words(directive)[1:]) if fresh[_words(directive)] else ():
                if word.isidentifier() and word != "defined" and word not in known and not _OF_TARGETS.fullmatch(word):
                    yield path, directive.line, word
        yield from ((path, line, name) for line, name in _more_often(_of_compilers(earlier), _of_compilers(source)))


def redefined_since(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and name of each macro that the later texts define or undefine more often; LexError as of
    ``lex``."""
    for path, text in after.items():
        earlier = _defined(lex(before.get(path, "")))
        yield from ((path, line, name) for line, name in _more_often(earlier, _defined(lex(text))))


def pragmas_since(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of each pragma that stands more often in the later texts and that what follows the
    file may feel; LexError as of ``lex``."""
    for path, text in after.items():
        earlier = _pragmas(lex(before.get(path, "")))
        yield from ((path, line, name) for line, name in _more_often(earlier, _pragmas(lex(text))))


def _pragmas(source: Source) -> Iterator[tuple[int, str]]:
    for directive in source.directives:
        text = " ".join(token.text for token in directive.tokens)
        if directive.name == "pragma" and not text.startswith(("once", "unroll")):
            yield directive.line, f"#pragma {text}"
    yield from ((token.line, token.text) for token in source.tokens if token.text in ("_Pragma", "__pragma"))


def _more_often(before: Iterable[tuple[int, str]], after: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the names that occur more often than before, each with the last of its lines."""
    earlier, lines = Counter(name for _, name in before), list(after)
    for name, count in Counter(name for _, name in lines).items():
        if count > earlier[name]:
            yield max(line for line, other in lines if other == name), name


def _defined(source: Source) -> Iterator[tuple[int, str]]:
    for directive in source.directives:
        if directive.name in ("define", "undef") and directive.tokens:
            yield directive.line, directive.tokens[0].text


def targets_unseen(
    before: Mapping[str, str], after: Mapping[str, str], seen: Collection[Arch]
) -> Iterator[tuple[str, int, str, Arch]]:
    """Yield file, line and text of each later condition with one value for all targets of ``seen``, and a Blackwell GPU
    for which it has another.

    What is not the target's counts as unknown. A condition in the place of another one may have the value of that for
    a target. LexError as of ``lex``.
    """
    every = [Arch(g.major, g.minor, suffix) for g in known_gpus() if g.major >= _BLACKWELL for suffix in _SUFFIXES]
    for path, text in after.items():
        source, earlier = lex(text), lex(before.get(path, ""))
        fresh, gone = _conditions(source) - _conditions(earlier), _conditions(earlier) - _conditions(source)
        for directive in source.directives:
            words = _words(directive)
            if fresh[words]:
                known = {_value(words, arch) for arch in seen}
                others = (arch for arch in every if _value(words, arch) not in known)
                missing = (a for a in others if all(_value(words, a) != _value(was, a) for was in gone))
                if arch := next(missing, None):
                    yield path, directive.line, " ".join(words), arch


_BLACKWELL = 10
_SUFFIXES: tuple[Literal["", "a", "f"], ...] = ("", "a", "f")


def _value(words: tuple[str, ...], arch: Arch) -> bool | None:
    """Return the value of a condition for a target; None if it depends on something else."""

    def value(name: str) -> int | None:
        return int(arch.macros.get(name) or 0) if _OF_DEVICES.fullmatch(name) else None

    def defined(name: str) -> int | None:
        return int(name in arch.macros) if _OF_DEVICES.fullmatch(name) else None

    return holds(words[0], words[1:], defined, value)


_OF_DEVICES = re.compile(r"__CUDA_ARCH(_\w+)?__|__CUDA_ARCH_FEAT_\w+")


def _words(directive: Directive) -> tuple[str, ...]:
    """Return the words of a condition, the directive's name first; none for another directive."""
    is_condition = directive.name.startswith(("if", "el"))
    return (directive.name, *(token.text for token in directive.tokens)) if is_condition else ()


def _conditions(source: Source) -> Counter[tuple[str, ...]]:
    return Counter(words for directive in source.directives if (words := _words(directive)))


def _of_compilers(source: Source) -> Iterator[tuple[int, str]]:
    for token in source.tokens:
        if token.directive < 0 and _OF_COMPILERS.fullmatch(token.text):
            yield token.line, token.text


_OF_MACHINES = re.compile(
    r"\b(?:(?<!\.)platform|environ|getenv|uname|machine|cpu_count|version_info|exists|__debug__)\b"
)


def asked_since(before: str, after: str) -> Iterator[tuple[int, str]]:
    """Yield line and word of each question for the machine that a later Python text has more often."""
    return _more_often(_asked(before), _asked(after))


def _asked(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((number, word) for word in _OF_MACHINES.findall(line))


_WORD = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"(?:(ENV|CACHE)|\$)\{(\w+)\}")
_CONDITIONS = frozenset(("if", "elseif", "while"))
_OPERATORS = re.compile(
    r"AND|OR|NOT|DEFINED|IN_LIST|MATCHES|ENV|TRUE|FALSE|ON|OFF|EXISTS|TARGET|COMMAND|(?:STR|VERSION_)?(?:EQUAL|LESS|GREATER)(_EQUAL)?"
)


def variables_since(before: str, after: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable that a later CMake text reads more often than the earlier one, and sets
    nowhere; LexError as of ``parse``."""
    script = parse(after)
    own = set(_set(script))
    yield from (found for found in _more_often(_read(parse(before)), _read(script)) if found[1] not in own)


def _read(script: Script) -> Iterator[tuple[int, str]]:
    """Yield the variables that commands read, those of the environment and of the cache as ``ENV{NAME}``."""
    for command in script.commands:
        for argument in command.arguments:
            for place, name in _REFERENCE.findall(argument.text):
                yield command.line, f"{place}{{{name}}}" if place else name
            bare = command.name in _CONDITIONS and argument.form is Form.UNQUOTED and _WORD.fullmatch(argument.text)
            if bare and not _OPERATORS.fullmatch(argument.text):
                yield command.line, argument.text


def _set(script: Script) -> Iterator[str]:
    """Yield all words that a command other than a condition may set, among them the parameters of functions."""
    for command in script.commands:
        if command.name not in _CONDITIONS:
            yield from (a.text for a in command.arguments if a.form is Form.UNQUOTED and _WORD.fullmatch(a.text))
